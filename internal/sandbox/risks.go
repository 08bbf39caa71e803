package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Risk is a named exception from the policy, and why it is made.
type Risk struct {
	Rule   string
	Reason string
}

// The rules of the policy: what a sandbox must not be unless somebody says why.
const (
	RulePrivileged = "privileged"   // root inside is root on the node
	RuleHostMount  = "host_mount"   // a folder of the node is mounted
	RuleDevice     = "device"       // a device of the node is passed through
	RuleRawConfig  = "raw_config"   // raw lines or a hookscript that only root can write
	RuleNoLimits   = "no_cpu_limit" // all cores of the node
)

// Rules lists the rules of the policy.
func Rules() []string {
	return []string{RulePrivileged, RuleHostMount, RuleDevice, RuleRawConfig, RuleNoLimits}
}

// checkRisks checks the exceptions themselves.
func checkRisks(p *problems, spec Spec) {
	seen := map[string]bool{}
	for i, r := range spec.AllowRisks {
		at := fmt.Sprintf("allow_risks[%d]", i)
		switch {
		case !slices.Contains(Rules(), r.Rule):
			p.add(at+".rule", fmt.Sprintf("%q is no rule of the policy", r.Rule), "The rules are "+strings.Join(Rules(), ", ")+".")
		case seen[r.Rule]:
			p.add(at+".rule", fmt.Sprintf("%q is allowed twice", r.Rule), "One entry with one reason is enough.")
		}
		seen[r.Rule] = true
		if strings.TrimSpace(r.Reason) == "" {
			p.add(at+".reason", "There is no reason", "Say why this sandbox may have the risk: whoever reads the configuration later wants to know.")
		}
	}
}

// policy refuses what a new container would inherit from its source, unless the
// specification names the risk. source is the template's configuration, or an
// empty one.
func policy(spec Spec, source *pve.LXCConfig) []Problem {
	if spec.Source.RestoreFrom != "" {
		return nil // what a backup brings is judged by archived.risks
	}
	var p problems
	refuse := func(rule, attribute, summary, detail string) {
		if !slices.ContainsFunc(spec.AllowRisks, func(r Risk) bool { return r.Rule == rule }) {
			p.add(attribute, summary, detail+fmt.Sprintf(` If it must be, say so: allow_risks = [{ rule = %q, reason = "…" }].`, rule))
		}
	}
	if spec.Source.RestoreFrom != "" {
		// A restore by a token leaves out what only root may write; that the result
		// is unprivileged is the restore's own business.
		return nil
	}
	const from = "template_id"
	posture := postureOf(source)
	if spec.Source.IsClone() && !posture.Unprivileged {
		refuse(RulePrivileged, from, "The template is privileged", "Root inside its clones is root on the node, and a clone can't be made unprivileged afterwards. Make the template unprivileged.")
	}
	for n, mount := range source.Mounts() {
		if volume := mount.Volume(); strings.HasPrefix(volume, "/") {
			refuse(RuleHostMount, from, "The template mounts a folder of the node", fmt.Sprintf("mp%d is %s: what happens inside happens to the node. Take it out of the template.", n, volume))
		}
	}
	if len(posture.Devices) > 0 {
		refuse(RuleDevice, from, "The template passes devices of the node through", strings.Join(posture.Devices, ", ")+". Take them out of the template.")
	}
	if len(posture.Raw) > 0 || posture.Hookscript != "" {
		refuse(RuleRawConfig, from, "The template has raw lines or a hookscript", strings.Join(append(rawLines(posture.Raw), posture.Hookscript), " ")+". They can switch off what keeps a container in, and a clone inherits them.")
	}
	if _, limited := source.Int("cores"); !limited && spec.Cores == nil && !source.Has("cpulimit") && (spec.CPULimit == nil || *spec.CPULimit == 0) {
		refuse(RuleNoLimits, "cores", "The sandbox could use all cores of its node", "Neither it nor its template has a limit. Set cores or cpu_limit.")
	}
	return p
}
