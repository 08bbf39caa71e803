package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// DefaultAuditPatience is how long an audit waits for the inside of a container.
const DefaultAuditPatience = 2 * time.Minute

// AuditSpec says what of a container to audit.
type AuditSpec struct {
	// Prior names the container. It may be a template, and one that isn't ours: only
	// ours are entered.
	Prior Prior
	// ConfigurationOnly leaves out the inside.
	ConfigurationOnly bool
	// Profile is what the container should be hardened for; empty takes its
	// template's, else "standard".
	Profile string
	// AllowedKeys are the public keys that may log in, beside the manager's own; nil
	// means that nobody said.
	AllowedKeys []string
	// Ports are TCP ports that may listen on more than the loopback, beside 22.
	Ports []int
	// Agents are versions that must be installed, by name.
	Agents map[string]string
}

// Audited is an audit and what it is of.
type Audited struct {
	audit.Report
	Ref
	// Hostname is the container's name.
	Hostname string
	// Template says that it is one: its inside can't be looked at from here.
	Template bool
}

// Audit checks a container: its configuration and firewall, which costs four
// requests at most, and its inside over SSH. It waits for nothing. An inside that
// should be looked at and can't be, because the container is stopped or isn't
// ours, leaves its checks unknown; it is no error.
func (m *Manager) Audit(ctx context.Context, spec AuditSpec) (Audited, error) {
	ref := spec.Prior.Ref
	fleet, err := m.pve.Lists().Fleet(ctx)
	if err != nil {
		return Audited{}, m.step("audit", ref, "list the cluster's guests", err)
	}
	node, cfg, err := m.readConfig(ctx, fleet, ref)
	if err != nil {
		return Audited{}, m.keepKind("audit", ref, "read its configuration", err)
	}
	ref.Node = node
	s := m.fromConfig(node, ref.VMID, cfg)
	out := Audited{Ref: ref, Hostname: s.Hostname, Template: s.Template}
	container, err := m.auditedContainer(ctx, ref, s, cfg)
	if err != nil {
		return Audited{}, err
	}
	options := audit.Options{
		Stage: audit.StageGuest, Profile: audit.Profile(spec.Profile), Ports: spec.Ports, Agents: spec.Agents, Now: m.clock.Now(),
	}
	if spec.AllowedKeys != nil {
		own, err := m.guests.AuthorizedKeys()
		if err != nil {
			m.log.DebugContext(ctx, "the own keys aren't known", "cause", err)
		}
		options.AllowedKeys = append(own, spec.AllowedKeys...)
	}
	if summary := m.summaryFor(ctx, fleet, s); summary != nil {
		options.ManifestDigest = summary.Digest
		if spec.Profile == "" && slices.Contains(audit.Profiles(), audit.Profile(summary.Profile)) {
			options.Profile = audit.Profile(summary.Profile)
		}
	}
	target := audit.Target{Container: container}
	switch {
	case s.Template:
		options.Stage = audit.StageTemplate
	case spec.ConfigurationOnly:
	default:
		t, why := m.auditInside(ctx, spec.Prior, s)
		if why == "" {
			target.Runner = guestRunner{m.guests, t}
		} else {
			target.Unreached = why
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, m.auditPatience, fmt.Errorf("it didn't answer in %s", m.auditPatience))
	defer cancel()
	out.Report, err = audit.Run(limited, target, options)
	if err != nil && ctx.Err() == nil && target.Runner != nil {
		// It was there a moment ago. What is known of it from outside stays known.
		target.Runner, target.Unreached = nil, unreachedText(err)
		out.Report, err = audit.Run(ctx, target, options)
	}
	if err != nil {
		return Audited{}, &Error{Op: "audit", Ref: ref, Err: err}
	}
	return out, nil
}

// auditInside is how the inside is reached, or why it isn't.
func (m *Manager) auditInside(ctx context.Context, prior Prior, s Sandbox) (guest.Target, string) {
	if s.Marker == nil || s.Marker.VMID != s.VMID || s.Marker.Owner != m.settings.Owner {
		return guest.Target{}, fmt.Sprintf("it doesn't carry the marker of owner %q, so it is not entered", m.settings.Owner)
	}
	_, t, err := m.enter(ctx, prior)
	if err != nil {
		return guest.Target{}, unreachedText(err)
	}
	return t, ""
}

func unreachedText(err error) string { return "the inside could not be looked at: " + err.Error() }

// auditedContainer is the configuration as the audit wants it.
func (m *Manager) auditedContainer(ctx context.Context, ref Ref, s Sandbox, cfg *pve.LXCConfig) (*audit.Container, error) {
	c := AuditContainer(cfg)
	if s.Template {
		snapshots, err := m.pve.Lists().Snapshots(ctx, ref.Node, ref.VMID)
		switch {
		case err == nil:
			c.Snapshots = ptr(len(snapshots.Items))
		case !pve.Means(err, pve.Forbidden):
			return nil, m.step("audit", ref, "list its snapshots", err)
		}
		return c, nil
	}
	if !s.Network.Present {
		return c, nil
	}
	wall, err := egress.ReadGuest(ctx, m.pve, ref.Node, ref.VMID, false)
	if pve.Means(err, pve.Forbidden) {
		return c, nil
	}
	if err != nil {
		return nil, m.step("audit", ref, "read its firewall", err)
	}
	on, err := m.surroundings.datacenterFirewall(ctx)
	if pve.Means(err, pve.Forbidden) {
		return c, nil
	}
	if err != nil {
		return nil, m.step("audit", ref, "read the datacenter's firewall", err)
	}
	c.Firewall = &audit.Firewall{Datacenter: on, Enabled: wall.Options.Enable, PolicyIn: wall.Options.PolicyIn, MACFilter: wall.Options.MACFilter}
	return c, nil
}

// AuditContainer is a container's configuration as the audit wants it. Workspaces
// that its marker records are no mounts of somebody's.
func AuditContainer(cfg *pve.LXCConfig) *audit.Container {
	p := postureOf(cfg)
	c := &audit.Container{
		Unprivileged: p.Unprivileged, Template: cfg.Template(), OnBoot: cfg.OnBoot(), Protection: cfg.Protection(),
		Features: p.Features, Devices: p.Devices, Hookscript: p.Hookscript,
	}
	for _, line := range p.Raw {
		c.Raw = append(c.Raw, [2]string{line[0], line[1]})
	}
	for _, line := range p.Mounts {
		slot, _, _ := strings.Cut(line, "=")
		if slot == "rootfs" {
			continue
		}
		m := mountIn(cfg, slot)
		c.Mounts = append(c.Mounts, audit.Mount{Slot: slot, Source: m.Volume(), Path: m.Path()})
	}
	number := func(key string) *int {
		n, ok := cfg.Int(key)
		if !ok {
			return nil
		}
		return ptr(int(n))
	}
	c.Cores, c.MemoryMiB, c.SwapMiB = number("cores"), number("memory"), number("swap")
	c.CPULimit, _ = cfg.Float("cpulimit")
	if bytes, ok := cfg.RootFS().SizeBytes(); ok {
		c.DiskGiB = float64(bytes) / gib
	}
	nets := cfg.Nets()
	for i := range 32 { // the server's limit
		if n, ok := nets[i]; ok {
			c.Interfaces = append(c.Interfaces, audit.Interface{Slot: fmt.Sprintf("net%d", i), Bridge: n.Bridge(), Firewall: n.Firewall()})
		}
	}
	return c
}

// summaryFor is what the marker of a template says, or of the template that a
// sandbox was cloned from if that is still the same build; nil if it isn't known.
func (m *Manager) summaryFor(ctx context.Context, fleet pve.Fleet, s Sandbox) *TemplateSummary {
	marker := s.Marker
	if marker == nil || marker.VMID != s.VMID {
		return nil
	}
	if !s.Template {
		entry, listed := fleet.Guests[marker.TemplateID]
		if marker.TemplateID == 0 || marker.TemplateBuild == "" || !listed {
			return nil
		}
		cfg, err := m.templates.config(ctx, entry.Node, marker.TemplateID)
		if err != nil || buildOf(cfg) != marker.TemplateBuild {
			return nil
		}
		_, marker = SplitDescription(cfg.Text("description"))
	}
	summary, ok := marker.Summary()
	if !ok {
		return nil
	}
	return &summary
}

// guestRunner runs scripts in a guest as the user who logs in.
type guestRunner struct {
	guests *guest.Pool
	target guest.Target
}

// Run implements remote.Runner.
func (g guestRunner) Run(ctx context.Context, s remote.Script) (remote.Result, error) {
	limit := s.Limit
	if limit == 0 {
		limit = remote.DefaultLimit
	}
	res, err := g.guests.Exec(ctx, g.target, guest.Command{Script: s.Text, Args: s.Args, Stdin: s.Stdin, StdoutLimit: limit, StderrLimit: limit})
	return remote.Result{ExitCode: res.ExitCode, Stdout: res.Stdout, Stderr: res.Stderr, Truncated: res.StdoutTruncated}, err
}
