package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
)

var builtChecks = []check{
	{Check: Check{ID: "G16", Title: "The agents are those of the manifest, and can't change themselves", Severity: Medium, How: "/etc/sandbox/template.json, owners and modes of the binaries, /etc/environment",
		Remedy: "Install them by sandbox-agents: pinned, owned by root, with their updates switched off."},
		guest: checkAgents},
	{Check: Check{ID: "G17.1", Title: "Hardening has left its record", Severity: Low, How: RecordPath,
		Remedy: "Run sandbox-harden: the record says with which profile and when."},
		guest: func(g *system) verdict {
			r, err := g.record()
			if err != nil {
				return failed(RecordPath, err.Error())
			}
			return passed(RecordPath, "profile "+string(r.Profile))
		}},
	{Check: Check{ID: "G17.2", Title: "The system is the template that its manifest and marker name", Severity: Medium, How: "/etc/sandbox/template.json against the marker's digest",
		Remedy: "Build the template anew. Somebody changed the manifest, or the sandbox was made from something else."},
		guest: checkManifest},
	{Check: Check{ID: "G18", Title: "No proxy or resolver of the build is left", Severity: Low, How: "/etc/apt/apt.conf.d and /etc/environment",
		Remedy: "Remove it: clones run elsewhere, and get their DNS from Proxmox VE."},
		guest: checkProxies},
}

func (g *system) manifest() (manifest.Manifest, []byte, error) {
	content, err := g.bigFile(manifest.Path)
	if err != nil {
		return manifest.Manifest{}, nil, err
	}
	m, err := manifest.Parse(content)
	return m, content, err
}

func checkAgents(g *system) verdict {
	const by = "/etc/sandbox/template.json, owners and modes of the binaries, /etc/environment"
	m, _, err := g.manifest()
	_, there := g.stat(manifest.Path)
	switch {
	case !there && len(g.o.Agents) == 0:
		return notApplicable("there is no manifest, and none was asked for")
	case err != nil && len(g.o.Agents) == 0:
		return unknown(by, err.Error())
	case err != nil:
		return failed(by, "there is no manifest that can be read: "+err.Error())
	}
	agentUser, _ := g.account(g.o.AgentUser)
	var found, seen []string
	for _, name := range slices.Sorted(maps.Keys(m.Agents)) {
		a := m.Agents[name]
		seen = append(seen, name+" "+a.Version)
		if want, ok := g.o.Agents[name]; ok && want != a.Version {
			found = append(found, fmt.Sprintf("%s is %s, not %s", name, a.Version, want))
		}
		if a.Binary == "" {
			continue
		}
		e, ok := g.stat(a.Binary)
		switch {
		case !ok:
			found = append(found, name+": "+a.Binary+" is not there")
		case e.perm()&0o111 == 0:
			found = append(found, e.show()+" can't be run")
		case fmt.Sprint(e.uid) == agentUser.uid, e.perm()&0o002 != 0:
			found = append(found, e.show()+" can be changed by the agent")
		}
		found = append(found, g.updatesItself(name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(g.o.Agents)) {
		if _, ok := m.Agents[name]; !ok {
			found = append(found, name+" is not in the manifest")
		}
	}
	if len(found) == 0 && len(seen) == 0 {
		return notApplicable("no agent is installed")
	}
	return judge(by, found, seen...)
}

// updatesItself says which switch of an agent that we know isn't set for everybody.
func (g *system) updatesItself(name string) []string {
	known, err := agents.Find(name)
	if err != nil {
		return nil // a custom one
	}
	var found []string
	settings := g.lines("etc/environment")
	for _, variable := range slices.Sorted(maps.Keys(known.AutoUpdateOff.Environment)) {
		if !slices.Contains(settings, variable+"="+known.AutoUpdateOff.Environment[variable]) {
			found = append(found, fmt.Sprintf("%s may update itself: %s is not set in /etc/environment", name, variable))
		}
	}
	return found
}

func checkManifest(g *system) verdict {
	const by = "/etc/sandbox/template.json against the marker's digest"
	if _, ok := g.stat(manifest.Path); !ok {
		if g.o.ManifestDigest != "" {
			return failed(by, "there is no manifest, and the marker names one")
		}
		return notApplicable("there is no manifest")
	}
	m, content, err := g.manifest()
	if err != nil {
		return failed(by, err.Error())
	}
	if g.o.ManifestDigest != "" && manifest.Digest(content) != g.o.ManifestDigest {
		return failed(by, "its SHA-256 is "+manifest.Digest(content)+", the marker says "+g.o.ManifestDigest)
	}
	return passed(by, fmt.Sprintf("build %s of %s", m.BuildID, m.Source.Reference))
}

func checkProxies(g *system) verdict {
	const by = "/etc/apt/apt.conf.d and /etc/environment"
	var found []string
	for _, e := range append(g.children("etc/apt/apt.conf.d"), entry{path: "etc/apt/apt.conf"}) {
		for _, l := range g.lines(e.path) {
			if strings.Contains(strings.ToLower(l), "::proxy") && !strings.HasPrefix(l, "//") {
				found = append(found, "/"+e.path+" sets a proxy")
			}
		}
	}
	for _, l := range g.lines("etc/environment") {
		if name, _, ok := strings.Cut(strings.ToLower(l), "="); ok && strings.HasSuffix(name, "_proxy") && name != "no_proxy" {
			found = append(found, "/etc/environment sets "+name)
		}
	}
	return judge(by, found)
}
