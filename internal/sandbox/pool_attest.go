package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

func isGone(err error) bool    { return errors.Is(err, ErrGone) }
func isForeign(err error) bool { return errors.Is(err, ErrForeign) }

// attest compares a member with what it should be, and notes the first thing that
// is wrong: a cut run, then that it doesn't run, then drift, then its age.
func (w *watched) attest(ctx context.Context, member *Member, g pve.FleetGuest, cfg *pve.LXCConfig) error {
	marker := member.marker
	bad := func(status MemberStatus, why string) error {
		member.Status, member.Why = status, why
		return nil
	}
	switch {
	case marker.Phase != PhaseReady:
		return bad(MemberUnfinished, "a run was cut while it made, changed or removed it")
	case g.LXC != nil && g.LXC.Status != string(StatusRunning):
		return bad(MemberStopped, "it is "+g.LXC.Status)
	case w.spec == nil:
		return nil
	}
	old := outdated(marker, w.member, w.template)
	if old == "" {
		why, err := w.drift(ctx, member.Ref, cfg)
		if err != nil {
			return err
		}
		if len(why) > 0 {
			return bad(MemberDrifted, strings.Join(why, "; "))
		}
		return nil
	}
	return bad(MemberOutdated, old)
}

// drift lists how a member of the present generation deviates from what was made.
func (w *watched) drift(ctx context.Context, ref Ref, cfg *pve.LXCConfig) ([]string, error) {
	var why []string
	spec := w.member
	spec.Hostname = cfg.Hostname() // given when it was made
	_, marker := SplitDescription(cfg.Text("description"))
	change, err := w.m.difference(spec, ref.VMID, cfg, marker)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(splitTags(cfg.Text("tags")), MemberTag) {
		why = append(why, "its tag "+MemberTag+" is gone")
	}
	for _, key := range change.keys() {
		why = append(why, fmt.Sprintf("%s was changed to %q", key, cfg.Text(key)))
	}
	net0 := cfg.Nets()[0]
	if net0.LinkDown() {
		why = append(why, "its link is down")
	}
	if w.template != nil {
		for _, d := range withoutVolumes(postureOf(cfg)).Diff(withoutVolumes(postureOf(w.template))) {
			why = append(why, d.What)
		}
	}
	if !spec.Network.Mode.Managed() {
		return why, nil
	}
	nameservers := strings.FieldsFunc(cfg.Text("nameserver"), func(r rune) bool { return r == ' ' || r == ',' })
	wall, err := w.m.wallFor(ctx, spec, ref.Node, net0.Properties, nameservers)
	if err != nil {
		return nil, err
	}
	has, err := egress.ReadGuest(ctx, w.m.pve, ref.Node, ref.VMID, false)
	if pve.Means(err, pve.NoSuchGuest) {
		return why, nil // gone since: the next look tells
	}
	if err != nil {
		return nil, err
	}
	want := wall.want
	want.Sets = nil // not read
	return append(why, egress.Differences(want, has)...), nil
}

// withoutVolumes leaves the volumes out of a posture: a clone has its own.
func withoutVolumes(p Posture) Posture {
	mounts := make([]string, 0, len(p.Mounts))
	for _, line := range p.Mounts {
		key, value, _ := strings.Cut(line, "=")
		volume, options, _ := strings.Cut(value, ",")
		if key != "rootfs" && !strings.HasPrefix(volume, "/") {
			line = key + "=" + options
		}
		mounts = append(mounts, line)
	}
	p.Mounts, p.Firewall = mounts, nil
	return p
}
