package agentrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest/run"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// explain turns what the supervisor refused into an error with a remedy.
func (e *Engine) explain(ref sandbox.Ref, spec *Spec, err error) error {
	out := &sandbox.Error{Op: "run", Ref: ref, What: fmt.Sprintf("start %q", spec.Name), Err: err}
	var refused *run.Error
	if !errors.As(err, &refused) {
		if errors.Is(err, run.ErrAbsent) {
			out.Kind, out.Remedy = sandbox.ErrRunNeeds, "the container must not be rolled back or rebuilt while a run is being started; apply again"
			return out
		}
		var known *sandbox.Error
		if errors.As(err, &known) {
			return err
		}
		return out
	}
	switch refused.Kind {
	case run.NoTools:
		out.Kind, out.Remedy = sandbox.ErrRunNeeds, "install them in the template: on Debian they are in coreutils, util-linux, grep and sed; /proc must be mounted"
	case run.NoUser:
		out.Kind, out.Remedy = sandbox.ErrRunNeeds, fmt.Sprintf("create the user in the template (useradd --create-home %s), or set user to one that is there", spec.User)
	case run.OtherUser:
		out.Kind, out.Remedy = sandbox.ErrRunNeeds, fmt.Sprintf("set guest_ssh.username = \"root\", or user = %q", refused.Message)
	case run.NoSpace:
		out.Kind, out.Remedy = sandbox.ErrGuestFull, "free space in the container, or give it a larger disk"
	case run.NoMemory:
		out.Kind, out.Remedy = sandbox.ErrNoTmpfs, "mount a tmpfs on /run in the template (systemd does), or run without secrets"
	case run.NoSupervisor:
		out.Kind = sandbox.ErrRunNeeds
	}
	return out
}

// noAgent names what the template has instead.
func noAgent(ref sandbox.Ref, spec *Spec, manifest []byte) error {
	has := "The template has no manifest (/etc/sandbox/template.json), so it isn't known what it was made with"
	if list, ok := installed(manifest); ok && len(list) == 0 {
		has = "By its manifest (/etc/sandbox/template.json) the template has no agents"
	} else if ok {
		has = "By its manifest (/etc/sandbox/template.json) the template has: " + strings.Join(list, ", ")
	}
	return &sandbox.Error{Op: "run", Ref: ref, Kind: sandbox.ErrNoAgent,
		What:   fmt.Sprintf("start %q: %s (%s) isn't in the PATH of user %s", spec.Name, spec.Agent.Name, spec.Agent.Binary, spec.User),
		Remedy: has + ". Build a template with the agent, or take another agent"}
}

// installed reads the agents' names from a template's manifest, whatever else it holds.
func installed(manifest []byte) (names []string, ok bool) {
	var m struct {
		Agents json.RawMessage `json:"agents"`
	}
	if json.Unmarshal(manifest, &m) != nil {
		return nil, false
	}
	var list []struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if json.Unmarshal(m.Agents, &list) == nil {
		for _, a := range list {
			names = append(names, strings.TrimSpace(a.Name+" "+a.Version))
		}
		return names, true
	}
	var versions map[string]any
	if json.Unmarshal(m.Agents, &versions) == nil {
		for name := range versions {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	return names, true
}
