package agents

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	namePattern     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	binaryPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	variablePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	versionPattern  = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*([.+-][0-9A-Za-z.-]+)?$`)
	npmPattern      = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`)
	pypiPattern     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	domainPattern   = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$`)
	statePattern    = regexp.MustCompile(`^~/[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
	sha256Pattern   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Check says what is wrong with a record: all of it, not the first.
func (a Agent) Check() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	matches := func(what, value string, pattern *regexp.Regexp) {
		if !pattern.MatchString(value) {
			bad("%s: %q doesn't match %s", what, value, pattern)
		}
	}

	matches("name", a.Name, namePattern)
	matches("binary", a.Binary, binaryPattern)
	a.checkSource(bad, matches)
	a.checkHeadless(bad)
	if len(a.Version.Arguments) > 0 {
		if pattern, err := regexp.Compile(a.Version.Pattern); err != nil || pattern.NumSubexp() != 1 {
			bad("version.pattern: %q must be a regular expression with one group, the version", a.Version.Pattern)
		}
	} else if a.Source.Kind != Installed {
		bad("version.arguments: needed, so that what was installed can be told from the pin")
	}

	for what, names := range map[string][]string{"keys.any_of": a.Keys.AnyOf, "keys.all_of": a.Keys.AllOf, "keys.optional": a.Keys.Optional} {
		for _, name := range names {
			matches(what, name, variablePattern)
		}
	}
	for what, s := range map[string]Switch{"auto_approve": a.AutoApprove, "auto_update_off": a.AutoUpdateOff, "telemetry_off": a.TelemetryOff} {
		for name := range s.Environment {
			matches(what+".environment", name, variablePattern)
			if a.isKey(name) {
				bad("%s.environment: %s is a key; keys come from secrets only", what, name)
			}
		}
	}
	for what, v := range map[string]string{"needs.node": a.Needs.Node, "needs.python": a.Needs.Python, "needs.python_below": a.Needs.PythonBelow} {
		if v != "" {
			matches(what, v, versionPattern)
		}
	}
	for _, name := range a.Needs.Commands {
		matches("needs.commands", name, binaryPattern)
	}
	for _, dir := range a.StateDirs {
		if matches("state_dirs", dir, statePattern); strings.Contains(dir, "..") {
			bad("state_dirs: %q leaves the home directory", dir)
		}
	}
	for _, domain := range a.EgressDomains {
		matches("egress_domains", domain, domainPattern)
	}
	return errors.Join(problems...)
}

func (a Agent) checkSource(bad func(string, ...any), matches func(string, string, *regexp.Regexp)) {
	s := a.Source
	switch s.Kind {
	case NPM:
		matches("source.package", s.Package, npmPattern)
	case PyPI:
		matches("source.package", s.Package, pypiPattern)
	case Binary:
		if !strings.HasPrefix(s.URL, "https://") || !strings.Contains(s.URL, "{version}") {
			bad("source.url: %q must be https and hold {version}, so that a pin pins", s.URL)
		}
	case Installed:
	default:
		bad("source.kind: %q is none of npm, pypi, binary, installed", s.Kind)
	}
	if s.Version != "" || s.Kind != Installed {
		matches("source.version", s.Version, versionPattern)
	}
	for arch, sum := range s.SHA256 {
		matches("source.sha256."+arch, sum, sha256Pattern)
	}
	if s.Kind != Installed && a.Licence.Name == "" {
		bad("licence.name: needed; LicenseRef-Proprietary where the makers' terms hold")
	}
	if strings.HasPrefix(a.Licence.Name, "LicenseRef-") && a.Licence.Redistributable {
		bad("licence: %s is not redistributable", a.Licence.Name)
	}
}

func (a Agent) checkHeadless(bad func(string, ...any)) {
	h := a.Headless
	switch h.PromptVia {
	case ViaStdin, ViaFile, ViaArgument:
	default:
		bad("headless.prompt_via: %q is none of stdin, file, argument", h.PromptVia)
	}
	all := append(append([]string{h.PromptOption, h.ModelOption}, h.Arguments...), a.AutoApprove.Arguments...)
	for _, argument := range append(all, a.AutoUpdateOff.Arguments...) {
		if strings.ContainsAny(argument, "\x00\n") {
			bad("headless: %q holds a line break", argument)
		}
		if strings.Contains(argument, "{{") || strings.Contains(argument, "$") {
			bad("headless: %q looks like a template; arguments are taken literally", argument)
		}
	}
}

func (a Agent) isKey(name string) bool {
	for _, list := range [][]string{a.Keys.AnyOf, a.Keys.AllOf, a.Keys.Optional} {
		for _, key := range list {
			if key == name {
				return true
			}
		}
	}
	return false
}
