package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// poolMarkOpen begins what follows the user's text in a Proxmox pool's comment:
// "[sandbox_pool owner=O id=CLAIM]". It is the pool's ownership marker.
const poolMarkOpen = "[sandbox_pool owner="

func joinPoolComment(comment, owner, claim string) string {
	mark := poolMarkOpen + owner + " id=" + claim + "]"
	if comment == "" {
		return mark
	}
	return comment + " " + mark
}

// splitPoolComment takes a comment apart; owner is empty where there is no mark.
func splitPoolComment(s string) (comment, owner, claim string) {
	at := strings.LastIndex(s, poolMarkOpen)
	if at < 0 || !strings.HasSuffix(s, "]") {
		return s, "", ""
	}
	owner, claim, ok := strings.Cut(strings.TrimSuffix(s[at+len(poolMarkOpen):], "]"), " id=")
	if !ok || owner == "" || claim == "" {
		return s, "", ""
	}
	return strings.TrimSuffix(s[:at], " "), owner, claim
}

func poolError(op, name, what string, err error) error {
	if err == nil {
		return nil
	}
	if what == "" {
		what = op
	}
	var e *Error
	var p *ProblemsError
	if errors.As(err, &e) || errors.As(err, &p) {
		return err
	}
	kind := error(nil)
	if pve.Means(err, pve.NoSuchPool) {
		kind = ErrGone
	}
	return &Error{Op: op, What: fmt.Sprintf("pool %q: %s", name, what), Kind: kind, Err: err}
}

// makePool makes the Proxmox pool. When the answer gets lost, its comment tells
// whether the pool that is there then is ours.
func (m *Manager) makePool(ctx context.Context, spec PoolSpec) (claim string, err error) {
	claim = m.newClaim()
	comment := joinPoolComment(spec.Comment, m.settings.Owner, claim)
	for attempt := 1; ; attempt++ {
		err := m.pve.CreatePool(context.WithoutCancel(ctx), spec.Name, comment)
		switch {
		case err == nil:
			return claim, nil
		case attempt == 1 && pve.Means(err, pve.AlreadyExists):
			return "", &Error{Op: "create", What: fmt.Sprintf("pool %q", spec.Name), Kind: ErrPoolExists, Err: err,
				Remedy: fmt.Sprintf("it may belong to somebody else, so it is not taken over. If it is yours: terraform import sandbox_pool.<name> %s. If two configurations name one pool, give each its own", spec.Name)}
		case !pve.LostAnswer(err) && !pve.Means(err, pve.AlreadyExists) || attempt == lostAttempts:
			return "", poolError("create", spec.Name, "make the Proxmox pool", err)
		}
		found, readErr := m.pve.Pool(ctx, spec.Name)
		switch {
		case pve.Means(readErr, pve.NoSuchPool):
		case readErr != nil:
			return "", poolError("create", spec.Name, "find out whether the Proxmox pool was made", errors.Join(err, readErr))
		case found.Comment == comment:
			return claim, nil
		default:
			return "", poolError("create", spec.Name, "make the Proxmox pool", err)
		}
		if err := m.pause(ctx, lockedMin<<attempt); err != nil {
			return "", poolError("create", spec.Name, "make the Proxmox pool", err)
		}
	}
}

// provePool reads the Proxmox pool and says whether it is the one that is meant.
// An empty claim takes any of our owner.
func (m *Manager) provePool(ctx context.Context, op, name, claim string) (pve.Pool, string, error) {
	found, err := m.pve.Pool(ctx, name)
	if err != nil {
		return pve.Pool{}, "", poolError(op, name, "read the Proxmox pool", err)
	}
	_, owner, is := splitPoolComment(found.Comment)
	var why string
	remedy := "it was left alone; remove this resource from the state, or see to the pool by hand"
	switch {
	case owner == "":
		why = "its comment carries no ownership mark"
		remedy = "it was left alone; if somebody has only changed its comment, remove this resource from the state and import it with adopt = true in the provider block, which writes the mark again"
	case owner != m.settings.Owner:
		why = fmt.Sprintf("its mark says owner %q, not %q", owner, m.settings.Owner)
	case claim != "" && is != claim:
		why = "its mark has another id: it was made anew"
	default:
		return found, is, nil
	}
	return found, "", &Error{Op: op, What: fmt.Sprintf("the Proxmox pool %q is not the one that was made here: %s", name, why), Kind: ErrForeign, Remedy: remedy}
}

// ImportPool finds a pool by its name. A Proxmox pool without our mark is taken
// over only with Settings.Adopt; its guests stay whose they are.
func (m *Manager) ImportPool(ctx context.Context, name string) (Pool, error) {
	if err := m.requireOwner("import"); err != nil {
		return Pool{}, err
	}
	found, err := m.pve.Pool(ctx, name)
	if err != nil {
		return Pool{}, poolError("import", name, "read the Proxmox pool", err)
	}
	comment, owner, claim := splitPoolComment(found.Comment)
	switch {
	case owner == "" && !m.settings.Adopt:
		return Pool{}, &Error{Op: "import", What: fmt.Sprintf("the Proxmox pool %q carries no ownership mark in its comment", name), Kind: ErrUnmarked,
			Remedy: "to take it over for good, set adopt = true in the provider block and import again: the mark is written then"}
	case owner == "":
		claim = m.newClaim()
		if err := m.pve.SetPoolComment(ctx, name, joinPoolComment(comment, m.settings.Owner, claim)); err != nil {
			return Pool{}, poolError("import", name, "write its ownership mark", err)
		}
	case owner != m.settings.Owner:
		_, _, err := m.provePool(ctx, "import", name, "")
		return Pool{}, err
	}
	return m.importedPool(ctx, name, claim)
}
