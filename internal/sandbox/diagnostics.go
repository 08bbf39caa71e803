package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
)

// DiagnosticsSpec says how much a bundle holds.
type DiagnosticsSpec struct {
	// Tasks is how many of the container's newest tasks; 0 means DefaultDiagnosticsTasks.
	Tasks int
	// JournalLines is how many of the guest's newest log lines; 0 means DefaultJournalLines.
	JournalLines int
}

// Defaults and limits of a bundle.
const (
	DefaultDiagnosticsTasks = 20
	DefaultJournalLines     = 200

	// diagnosticsLog is how many lines of a failed task's log are taken, of at most diagnosticsLogs tasks.
	diagnosticsLog, diagnosticsLogs = 50, 5
	// journalBytes and journalPatience bound what the guest may say, and for how long it may take.
	journalBytes    = 512 << 10
	journalPatience = 30 * time.Second
)

// Diagnostics is what is to know about one sandbox when something is wrong with it, without secrets. A part that couldn't
// be had is in Unavailable, with why; the rest is there.
type Diagnostics struct {
	Ref
	At       time.Time
	Hostname string
	Status   Status
	Phase    Phase
	// Config is the configuration as the server has it, by key.
	Config  map[string]string
	Pending []string
	// Tasks are the container's, the newest first.
	Tasks    []DiagnosticsTask
	Firewall DiagnosticsFirewall
	// Journal is the guest's log.
	Journal []string
	// Unavailable says why a part is missing: "pending", "tasks", "firewall", "datacenter_firewall", "node_firewall",
	// "journal".
	Unavailable map[string]string
}

// DiagnosticsTask is a task of the server about the container.
type DiagnosticsTask struct {
	UPID, Type, User string
	// Status is "OK", "WARNINGS: n", an error's text, or "running".
	Status         string
	Started, Ended time.Time // Ended is zero while it runs
	// Log is the end of a failed task's log.
	Log []string
}

// DiagnosticsFirewall is what filters the container, with its three switches.
type DiagnosticsFirewall struct {
	// Datacenter, Node and Guest are the switches; nil where one couldn't be read.
	Datacenter, Node, Guest *bool
	// Interface is firewall=1 of net0.
	Interface           bool
	PolicyIn, PolicyOut string
	// Rules are the guest's own, and NodeRules the node's, in their order, as one line each.
	Rules, NodeRules []string
}

// Diagnose collects a bundle. The container must be the manager's own; it waits for nothing.
func (m *Manager) Diagnose(ctx context.Context, prior Prior, spec DiagnosticsSpec) (Diagnostics, error) {
	if spec.Tasks == 0 {
		spec.Tasks = DefaultDiagnosticsTasks
	}
	if spec.JournalLines == 0 {
		spec.JournalLines = DefaultJournalLines
	}
	prior.WithPending, prior.WithTemplate = false, false
	s, err := m.read(ctx, prior, true)
	if err != nil {
		return Diagnostics{}, err
	}
	cfg, err := m.pve.LXCConfig(ctx, s.Node, s.VMID)
	if err != nil {
		return Diagnostics{}, m.step("diagnose", s.Ref, "read its configuration", err)
	}
	d := Diagnostics{Ref: s.Ref, At: m.clock.Now().UTC(), Hostname: s.Hostname, Status: s.Status, Unavailable: map[string]string{}}
	if s.Marker != nil {
		d.Phase = s.Marker.Phase
	}
	clean := m.cleaner()
	d.Config = cleanConfig(cfg, clean)
	if d.Pending, err = m.pending(ctx, s.Ref); err != nil {
		d.missing("pending", err, clean)
	}
	m.diagnoseTasks(ctx, &d, spec, clean)
	m.diagnoseFirewall(ctx, &d, clean)
	d.Firewall.Interface = s.Network.Firewall
	m.diagnoseJournal(ctx, &d, prior, spec, clean)
	if err := context.Cause(ctx); err != nil {
		return d, m.step("diagnose", s.Ref, "collect the bundle", err)
	}
	return d, nil
}

func (d *Diagnostics) missing(part string, err error, clean func(string) string) {
	d.Unavailable[part] = clean(err.Error())
}

// cleaner takes out the secrets that the provider holds, and what looks like one.
func (m *Manager) cleaner() func(string) string {
	keys := []string{m.settings.Guest.Auth.PrivateKey}
	if jump := m.settings.Guest.ProxyJump; jump != nil {
		keys = append(keys, jump.Auth.PrivateKey)
	}
	r := redact.New(keys...)
	return func(text string) string { return r.Text(m.pve.Redact(text)) }
}

// cleanConfig leaves out the environment of the container's init, whatever is in it: it is where people put secrets.
func cleanConfig(cfg *pve.LXCConfig, clean func(string) string) map[string]string {
	out := map[string]string{}
	for _, key := range cfg.Keys() {
		switch key {
		case "digest":
		case "env":
			out[key] = redact.Mark
		default:
			out[key] = clean(cfg.Text(key))
		}
	}
	for i, line := range cfg.RawLines {
		value := clean(line.Value)
		if line.Key == "lxc.environment" {
			value = redact.Mark
		}
		out[fmt.Sprintf("lxc[%d]", i)] = line.Key + " = " + value
	}
	return out
}

func (m *Manager) diagnoseTasks(ctx context.Context, d *Diagnostics, spec DiagnosticsSpec, clean func(string) string) {
	tasks, err := m.pve.Tasks(ctx, d.Node, pve.TaskFilter{VMID: d.VMID, All: true, Limit: spec.Tasks})
	if err != nil {
		d.missing("tasks", err, clean)
		return
	}
	logs := 0
	for _, t := range tasks {
		entry := DiagnosticsTask{UPID: string(t.UPID), Type: t.Type, User: t.User, Status: clean(t.Status), Started: time.Unix(t.StartTime, 0).UTC()}
		switch t.EndTime {
		case 0:
			entry.Status = "running"
		default:
			entry.Ended = time.Unix(t.EndTime, 0).UTC()
			if failed := t.Status != "OK"; failed && logs < diagnosticsLogs {
				logs++
				if lines, err := m.pve.TaskLogTail(ctx, t.UPID, diagnosticsLog); err == nil {
					entry.Log = strings.Split(clean(strings.Join(lines, "\n")), "\n")
				}
			}
		}
		d.Tasks = append(d.Tasks, entry)
	}
}

func (m *Manager) diagnoseFirewall(ctx context.Context, d *Diagnostics, clean func(string) string) {
	options, err := m.pve.FirewallOptions(ctx, pve.LXCFirewall(d.Node, d.VMID))
	if err == nil {
		// The server's defaults where a guest has no value of its own.
		d.Firewall.Guest, d.Firewall.PolicyIn, d.Firewall.PolicyOut = ptr(flagOr(options.Enable, false)), "DROP", "ACCEPT"
		if options.PolicyIn != nil {
			d.Firewall.PolicyIn = *options.PolicyIn
		}
		if options.PolicyOut != nil {
			d.Firewall.PolicyOut = *options.PolicyOut
		}
		d.Firewall.Rules, err = m.ruleLines(ctx, pve.LXCFirewall(d.Node, d.VMID), clean)
	}
	if err != nil {
		d.missing("firewall", err, clean)
	}
	if options, err := m.pve.FirewallOptions(ctx, pve.ClusterFirewall()); err != nil {
		d.missing("datacenter_firewall", err, clean)
	} else {
		d.Firewall.Datacenter = ptr(flagOr(options.Enable, false))
	}
	options, err = m.pve.FirewallOptions(ctx, pve.NodeFirewall(d.Node))
	if err == nil {
		d.Firewall.Node = ptr(flagOr(options.Enable, true))
		d.Firewall.NodeRules, err = m.ruleLines(ctx, pve.NodeFirewall(d.Node), clean)
	}
	if err != nil {
		d.missing("node_firewall", err, clean)
	}
}

func flagOr(flag *bool, def bool) bool {
	if flag == nil {
		return def
	}
	return *flag
}

// ruleLines writes rules as the firewall's files do.
func (m *Manager) ruleLines(ctx context.Context, scope pve.FirewallScope, clean func(string) string) ([]string, error) {
	rules, err := m.pve.FirewallRules(ctx, scope)
	if err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(rules))
	for _, r := range rules {
		var b strings.Builder
		if !r.Enable {
			b.WriteString("|")
		}
		if r.Type == "group" {
			fmt.Fprintf(&b, "GROUP %s", r.Action)
		} else {
			fmt.Fprintf(&b, "%s ", strings.ToUpper(r.Type))
			if r.Macro != "" {
				fmt.Fprintf(&b, "%s(%s)", r.Macro, r.Action)
			} else {
				b.WriteString(r.Action)
			}
		}
		for _, option := range []struct{ name, value string }{
			{"-i", r.Iface}, {"-source", r.Source}, {"-dest", r.Dest}, {"-p", r.Proto}, {"-dport", r.DPort}, {"-sport", r.SPort}, {"-icmp-type", r.ICMPType}, {"-log", r.Log},
		} {
			if option.value != "" {
				fmt.Fprintf(&b, " %s %s", option.name, option.value)
			}
		}
		if r.Comment != "" {
			fmt.Fprintf(&b, " # %s", clean(r.Comment))
		}
		lines = append(lines, b.String())
	}
	return lines, nil
}

// journalScript prints the newest $1 lines of the guest's log: of systemd's journal, else of syslog's files or ring.
const journalScript = `
n=$1
if command -v journalctl >/dev/null 2>&1; then
  lines=$(journalctl --quiet --no-pager --output=short-iso --lines="$n" 2>/dev/null)
  if [ -n "$lines" ]; then printf '%s\n' "$lines"; exit 0; fi
fi
for file in /var/log/syslog /var/log/messages; do
  if [ -r "$file" ]; then tail -n "$n" "$file"; exit 0; fi
done
if command -v logread >/dev/null 2>&1; then logread | tail -n "$n"; exit 0; fi
echo "it has neither a journal nor a syslog that this user may read" >&2
exit 3
`

func (m *Manager) diagnoseJournal(ctx context.Context, d *Diagnostics, prior Prior, spec DiagnosticsSpec, clean func(string) string) {
	_, t, err := m.enter(ctx, prior)
	if err != nil {
		d.missing("journal", err, clean)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	result, err := m.guests.Exec(ctx, t, guest.Command{
		Script: journalScript, Args: []string{fmt.Sprint(spec.JournalLines)}, StdoutLimit: journalBytes, KeepTail: true,
	})
	switch {
	case err != nil:
		d.missing("journal", err, clean)
	case result.ExitCode != 0:
		d.missing("journal", fmt.Errorf("the guest answered: %s", strings.TrimSpace(string(result.Stderr))), clean)
	default:
		d.Journal = strings.Split(clean(strings.TrimRight(string(result.Stdout), "\n")), "\n")
	}
}
