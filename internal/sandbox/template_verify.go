package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// ErrTemplateUnfit says that a clone of a new template isn't what a clone has to be.
var ErrTemplateUnfit = errors.New("the template's clone isn't fit for use")

// Identity is what no two guests may have in common.
type Identity struct {
	HostKey   string // in authorized_keys format; empty without an SSH server
	MachineID string
}

// Entering runs a shell script as root in a container. It is how a clone is looked into where nobody can log in: over
// the node's SSH.
type Entering func(ctx context.Context, vmid int, script remote.Script) (remote.Result, error)

// VerifySpec says how a template is proved.
type VerifySpec struct {
	// Before is the identity that the template had while it was built: none of its clones may have it.
	Before Identity
	// Enter looks inside by the node; nil logs in over SSH, as the provider will.
	Enter Entering
	// Inspect looks further into the running clone (the audit); nil for nothing more.
	Inspect func(ctx context.Context, clone VerifyClone) error
}

// VerifyClone is the clone while it runs.
type VerifyClone struct {
	Ref    Ref
	Config *pve.LXCConfig
	// Runner runs scripts in it as root.
	Runner remote.Runner
}

// Verify proves the template: a throwaway clone boots twice, with a host key and a machine id that the template did
// not have, and has the same ones after the second boot; the provider's key logs in. The clone is always removed.
func (b *TemplateBuild) Verify(ctx context.Context, spec VerifySpec) (Identity, error) {
	v := &verification{b: b, spec: spec}
	err := v.run(ctx)
	if v.ref.VMID != 0 {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyCleanup)
		defer cancel()
		if _, removeErr := b.m.Destroy(cleanup, v.ref, v.upid); removeErr != nil {
			b.throwaway = &v.ref
			err = errors.Join(err, &Error{Op: "verify", Ref: v.ref, What: "remove the throwaway clone", Err: removeErr})
		}
	}
	return v.second, err
}

// verifyCleanup bounds the removal of the throwaway clone.
const verifyCleanup = 2 * time.Minute

// verification is one run of Verify.
type verification struct {
	b             *TemplateBuild
	spec          VerifySpec
	ref           Ref
	upid          string
	cfg           *pve.LXCConfig
	address       netip.Addr
	first, second Identity
}

func (v *verification) run(ctx context.Context) error {
	m := v.b.m
	if err := v.clone(ctx); err != nil {
		return err
	}
	if err := m.start(ctx, v.ref, v.b.warnings); err != nil {
		return err
	}
	var err error
	if v.first, err = v.identity(ctx, ""); err != nil {
		return err
	}
	if err := v.differs(); err != nil {
		return err
	}
	if v.spec.Inspect != nil {
		if err := v.spec.Inspect(ctx, VerifyClone{Ref: v.ref, Config: v.cfg, Runner: v}); err != nil {
			return err
		}
	}
	if err := m.restart(ctx, v.ref, v.b.warnings); err != nil {
		return err
	}
	if v.second, err = v.identity(ctx, v.first.HostKey); err != nil {
		return err
	}
	if v.second != v.first {
		return v.unfit("it has another host key or machine id after its second boot", "the first-boot unit must run only while there are no host keys (ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key)")
	}
	return nil
}

// clone makes the clone, with a marker of its own: a process that is killed now leaves something that the next build
// removes.
func (v *verification) clone(ctx context.Context) error {
	m, b := v.b.m, v.b
	cfg, err := m.pve.LXCConfig(ctx, b.ref.Node, b.ref.VMID)
	if err != nil {
		return m.step("verify", b.ref, "read the template's configuration", err)
	}
	v.cfg = cfg
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(DefaultCreateTimeout)
	}
	c := &creation{
		m: m, accepted: func(ref Ref, upid string) { v.ref, v.upid = ref, upid }, started: m.clock.Now(), warnings: b.warnings,
		origin: b.ref.Node, base: cfg,
		spec: Spec{Hostname: b.verifyName(), PoolID: b.spec.PoolID, Source: Source{TemplateID: b.ref.VMID},
			Description: "A throwaway clone that proves a template. It is removed within minutes."},
		marker: Marker{Owner: m.settings.Owner, Kind: KindContainer, Phase: PhaseCreating, TemplateID: b.ref.VMID, TemplateBuild: b.buildID,
			Until: m.clock.Now().Add(time.Until(deadline)).Add(time.Minute)},
	}
	b.taken[b.ref.VMID] = true
	err = c.make(ctx, b.taken)
	if c.ref.VMID != 0 {
		v.ref = c.ref
	}
	return m.step("verify", v.ref, "clone the new template", err)
}

// identityScript prints the machine id and the public host key.
const identityScript = `cat /etc/machine-id; for k in ed25519 ecdsa rsa; do if [ -f /etc/ssh/ssh_host_${k}_key.pub ]; then cat /etc/ssh/ssh_host_${k}_key.pub; break; fi; done; true`

// IdentityScript prints the identity of the container that it runs in, for ParseIdentity.
func IdentityScript() string { return identityScript }

// ParseIdentity reads what IdentityScript has printed.
func ParseIdentity(output string) Identity {
	var id Identity
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 2 && strings.Contains(fields[0], "-"):
			id.HostKey = fields[0] + " " + fields[1]
		case len(fields) == 1 && len(fields[0]) == 32:
			id.MachineID = fields[0]
		}
	}
	return id
}

// identity waits until the clone can be entered, and reads who it is.
func (v *verification) identity(ctx context.Context, pinned string) (Identity, error) {
	m := v.b.m
	if v.spec.Enter == nil {
		cfg, err := m.pve.LXCConfig(ctx, v.ref.Node, v.ref.VMID)
		if err != nil {
			return Identity{}, m.step("verify", v.ref, "read the clone's configuration", err)
		}
		if v.address, err = m.addressOf(ctx, v.ref, macsOf(cfg)); err != nil {
			return Identity{}, err
		}
		if _, err := m.guests.WaitReady(ctx, v.target(pinned)); err != nil {
			e := &Error{Op: "verify", Ref: v.ref, Kind: ErrTemplateUnfit, What: "log in to a clone of the new template, as the provider will", Err: err}
			if errors.As(err, new(*guest.AuthRefused)) {
				e.Remedy = "provider_public_keys must hold the public half of the key that the provider logs in with"
			} else if errors.As(err, new(*guest.NotReady)) {
				e.Remedy = "a template without host keys needs a unit that makes them at first boot, before sshd starts"
			}
			return Identity{}, e
		}
	}
	out, err := v.Run(ctx, remote.Script{Text: identityScript})
	if err != nil || out.ExitCode != 0 {
		return Identity{}, &Error{Op: "verify", Ref: v.ref, Kind: ErrTemplateUnfit, What: fmt.Sprintf("read the clone's identity (exit %d: %s)", out.ExitCode, strings.TrimSpace(string(out.Stderr))), Err: err}
	}
	return ParseIdentity(string(out.Stdout)), nil
}

func (v *verification) target(hostKey string) guest.Target {
	return guest.Target{ID: fmt.Sprint(v.ref.VMID), Name: v.b.verifyName(), Address: v.address.String(), HostKey: hostKey}
}

// Run implements remote.Runner on the clone.
func (v *verification) Run(ctx context.Context, s remote.Script) (remote.Result, error) {
	if v.spec.Enter != nil {
		return v.spec.Enter(ctx, v.ref.VMID, s)
	}
	limit := cmp.Or(s.Limit, remote.DefaultLimit)
	r, err := v.b.m.guests.Exec(ctx, v.target(v.first.HostKey), guest.Command{Script: s.Text, Args: s.Args, Stdin: s.Stdin, StdoutLimit: limit, StderrLimit: limit})
	return remote.Result{ExitCode: r.ExitCode, Stdout: r.Stdout, Stderr: r.Stderr, Truncated: r.StdoutTruncated}, err
}

// differs holds the clone's identity against the one that the template had while it was built.
func (v *verification) differs() error {
	switch before := v.spec.Before; {
	case v.first.MachineID == "":
		return v.unfit("it has no machine id", "/etc/machine-id must be there and empty in the template")
	case before.MachineID != "" && v.first.MachineID == before.MachineID:
		return v.unfit("it has the machine id that the template had while it was built", "the last step in the template must empty /etc/machine-id")
	case before.HostKey != "" && v.first.HostKey == before.HostKey:
		return v.unfit("it has the SSH host key that the template had while it was built: whoever is root in one clone could pose as every other", "the template must hold no /etc/ssh/ssh_host_* when it is sealed")
	}
	return nil
}

func (v *verification) unfit(what, remedy string) error {
	return &Error{Op: "verify", Ref: v.ref, Kind: ErrTemplateUnfit, What: "a clone of the new template is not fit for use: " + what, Remedy: remedy}
}
