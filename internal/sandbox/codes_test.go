package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func TestCodesAreUniqueOrderedAndExplained(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^SBX[1-9][0-9]{2}$`)
	var all []string
	for _, c := range sandbox.Codes() {
		all = append(all, string(c.Code))
		if !form.MatchString(string(c.Code)) {
			t.Errorf("%s is not of the form SBX123", c.Code)
		}
		for _, text := range []string{c.Means, c.Remedy} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", c.Code, text)
			}
		}
		if c.Title == "" || strings.HasSuffix(c.Title, ".") {
			t.Errorf("%s: the title is %q", c.Code, c.Title)
		}
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(all))); !slices.Equal(all, sorted) {
		t.Errorf("the codes are not unique and in order: %v", all)
	}
}

// A code never changes its meaning: programs and search results hold on to it.
func TestCodesOfFailures(t *testing.T) {
	t.Parallel()
	server := func(m pve.Meaning) error { return &pve.Error{Meaning: m} }
	kind := func(k error) error {
		return fmt.Errorf("outer: %w", &sandbox.Error{Op: "x", Kind: k, Err: errors.New("cause")})
	}
	for want, errs := range map[sandbox.Code][]error{
		"SBX100": {&sandbox.ProblemsError{}},
		"SBX101": {kind(sandbox.ErrNoOwner)},
		"SBX201": {&pve.TransportError{Err: &pve.TLSError{Err: errors.New("x")}}},
		"SBX202": {&pve.TransportError{Err: errors.New("refused")}},
		"SBX203": {server(pve.Unauthorised)},
		"SBX204": {server(pve.Forbidden), &sandbox.Error{Err: server(pve.Forbidden)}},
		"SBX205": {server(pve.RootOnly)},
		"SBX206": {server(pve.NotProxmox), &pve.AnswerError{Err: errors.New("x")}},
		"SBX207": {server(pve.NodeUnreachable)},
		"SBX301": {kind(sandbox.ErrGone), server(pve.NoSuchGuest)},
		"SBX302": {kind(sandbox.ErrForeign)},
		"SBX303": {kind(sandbox.ErrUnmarked)},
		"SBX304": {kind(sandbox.ErrNoFreeID), server(pve.GuestExists)},
		"SBX306": {server(pve.NoSuchStorage)},
		"SBX305": {kind(sandbox.ErrGroupExists), kind(sandbox.ErrGuardExists)},
		"SBX307": {kind(sandbox.ErrInUse), kind(sandbox.ErrGroupInUse)},
		"SBX310": {server(pve.DigestMismatch)},
		"SBX311": {kind(sandbox.ErrLockout)},
		"SBX401": {kind(sandbox.ErrLocked), &pve.TaskError{Meaning: pve.LockTimeout},
			&sandbox.Error{Kind: sandbox.ErrLocked, Err: context.DeadlineExceeded}},
		"SBX403": {&pve.TaskError{Meaning: pve.NoSpace}},
		"SBX405": {&pve.TaskError{Meaning: pve.StartFailed}},
		"SBX431": {kind(sandbox.ErrReaping)},
		"SBX432": {kind(sandbox.ErrClock)},
		"SBX501": {kind(sandbox.ErrNotReady), &guest.NotReady{Cause: context.DeadlineExceeded}},
		"SBX502": {&sandbox.Error{Kind: sandbox.ErrNotReady, Err: &guest.NotReady{Cause: &guest.AuthRefused{}}}},
		"SBX503": {&sandbox.Error{Kind: sandbox.ErrNotReady, Err: &guest.NotReady{Cause: &guest.HostKeyChanged{}}}},
		"SBX504": {&sandbox.Error{Kind: sandbox.ErrNotReady, Err: &guest.JumpError{Cause: errors.New("x")}}},
		"SBX505": {&guest.LostError{Cause: errors.New("x")}},
		"SBX801": {context.DeadlineExceeded, &pve.TransportError{Err: context.DeadlineExceeded}},
		"SBX802": {context.Canceled},
		"SBX803": {&pve.TaskError{Meaning: pve.Unknown}},
		"SBX900": {errors.New("anything")},
	} {
		for _, err := range errs {
			if got := sandbox.CodeOf(err); got != want {
				t.Errorf("%T %v: got %s, want %s", err, err, got, want)
			}
		}
	}
}
