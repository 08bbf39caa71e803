package run

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Launch is a program as the run's user starts it.
type Launch struct {
	// Code is shell code; else Argv is a program with its arguments.
	Code string
	Argv []string
	// PromptArg and PromptFileArg are the places in Argv of the prompt's text
	// and of its file's path; 0 for none. PromptStdin gives it as input.
	PromptArg, PromptFileArg int
	PromptStdin              bool
	// Dir is an absolute path; empty means the user's home.
	Dir string
	Env map[string]string
}

// path is where programs are looked for; the same as paths in the script.
const path = `PATH=$HOME/.local/bin:$HOME/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin`

// script is the file that the supervisor has the run's user execute, with the
// attempt's number as its argument. SBX_IN is its folder.
func (l Launch) script() (string, error) {
	var b strings.Builder
	b.WriteString(path + "\nLANG=C.UTF-8\nexport PATH LANG\n")
	env, err := exports(l.Env)
	if err != nil {
		return "", err
	}
	b.WriteString(env)
	b.WriteString("\n[ -z \"$SBX_SECRETS\" ] || . \"$SBX_SECRETS\"\nunset SBX_SECRETS\n")
	b.WriteString("SBX_PROMPT=$SBX_IN/prompt.$1 SBX_ATTEMPT=$1\nexport SBX_PROMPT SBX_ATTEMPT\n")
	dir := `"$HOME"`
	if l.Dir != "" {
		dir = guest.Quote(l.Dir)
	}
	b.WriteString("cd " + dir + " || exit 126\nshift\n")
	if strings.ContainsRune(l.Code+l.Dir+strings.Join(l.Argv, ""), 0) {
		return "", fmt.Errorf("a command can't hold a NUL byte")
	}
	input := "/dev/null"
	if l.PromptStdin {
		input = `"$SBX_PROMPT"`
	}
	if len(l.Argv) == 0 {
		b.WriteString("exec <" + input + "\n" + l.Code)
		return b.String(), nil
	}
	words := make([]string, len(l.Argv))
	for i, word := range l.Argv {
		switch {
		case i > 0 && i == l.PromptArg:
			// With a mark behind it, as a substitution takes line ends away.
			b.WriteString("prompt=$(cat \"$SBX_PROMPT\" && echo x) || exit 126\nprompt=${prompt%x}\n")
			words[i] = `"$prompt"`
		case i > 0 && i == l.PromptFileArg:
			words[i] = `"$SBX_PROMPT"`
		default:
			words[i] = guest.Quote(word)
		}
	}
	b.WriteString("exec " + strings.Join(words, " ") + " <" + input)
	return b.String(), nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// exports writes variables as shell code, sorted. Errors never show values.
func exports(env map[string]string) (string, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !variable.MatchString(name) {
			return "", fmt.Errorf("%q can't be the name of an environment variable: letters, digits and _ only, no digit first", name)
		}
		if strings.ContainsRune(env[name], 0) {
			return "", fmt.Errorf("environment variable %s holds a NUL byte, which no environment can", name)
		}
		fmt.Fprintf(&b, "export %s=%s\n", name, guest.Quote(env[name]))
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// redaction is the sed script that takes texts out of a line.
func redaction(forms []string) string {
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, `/`, `\/`, `.`, `\.`, `*`, `\*`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `$`, `\$`)
	for _, form := range forms {
		if form != "" && !strings.ContainsAny(form, "\n\x00") {
			b.WriteString("s/" + escape.Replace(form) + "/[redacted]/g\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
