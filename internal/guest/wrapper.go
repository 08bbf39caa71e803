package guest

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"sort"
	"strings"
)

// wrapper is all that stands in the command line, the same for every command:
// it names its process (see startWatch), reads one line of shell code from
// standard input and runs it. What follows that line is the command's own
// input, which works because a POSIX shell's read takes no byte beyond the
// line. The code finds a newline in $__n, since it can't hold one itself. No
// single quotes: the wrapper is put in such.
const wrapper = `echo "` + pidMark + `$$"; __n=$(printf "\nx"); __n=${__n%x}; IFS= read -r __h || exit 126; eval "$__h"`

var (
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// userName is what shadow-utils and adduser accept, which a shell takes as
	// it is and no program for an option.
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*\$?$`)
)

// encode returns the command line that sshd is given and the header line that
// goes first over standard input. Errors never show values.
func (c Command) encode(login string) (line, header string, err error) {
	if c.Line != "" {
		if c.Path != "" || c.Script != "" || len(c.Env) > 0 || c.Dir != "" || c.User != "" || strings.ContainsAny(c.Line, "\x00\n") {
			return "", "", errors.New("a line that is sent as it is goes with nothing else, and is one line")
		}
		return c.Line, "", nil
	}
	if (c.Path == "") == (c.Script == "") {
		return "", "", errors.New("either a program (path) or a script must be given, not both")
	}
	var code strings.Builder
	line = "exec sh -c '" + wrapper + "'"
	if c.User != "" && c.User != login {
		if !userName.MatchString(c.User) {
			return "", "", fmt.Errorf("user %q is not a user name", c.User)
		}
		line = becoming(c.User)
		if c.Dir == "" {
			code.WriteString(`cd "$HOME" || exit 126; `) // su stays where root was
		}
	}
	if c.Dir != "" {
		if !path.IsAbs(c.Dir) {
			return "", "", fmt.Errorf("working directory %q is not an absolute path", c.Dir)
		}
		fmt.Fprintf(&code, "cd %s || exit 126; ", quote(c.Dir))
	}
	names := make([]string, 0, len(c.Env))
	for name := range c.Env {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if !envName.MatchString(name) {
			return "", "", fmt.Errorf("%q can't be the name of an environment variable: letters, digits and _ only, no digit first", name)
		}
		if strings.ContainsRune(c.Env[name], 0) {
			return "", "", fmt.Errorf("environment variable %s holds a NUL byte, which no environment can", name)
		}
		fmt.Fprintf(&code, "export %s=%s; ", name, quote(c.Env[name]))
	}
	for _, text := range append([]string{c.Path, c.Script, c.Dir}, c.Args...) {
		if strings.ContainsRune(text, 0) {
			return "", "", errors.New("program, arguments, script and directory can't hold a NUL byte")
		}
	}
	words := make([]string, len(c.Args))
	for i, arg := range c.Args {
		words[i] = " " + quote(arg)
	}
	if c.Path != "" {
		fmt.Fprintf(&code, "exec %s%s", quote(c.Path), strings.Join(words, ""))
	} else {
		// In the wrapper's own shell, so that the script is in no command line.
		fmt.Fprintf(&code, "set --%s; __h=%s; eval \"$__h\"", strings.Join(words, ""), quote(c.Script))
	}
	return line, code.String() + "\n", nil
}

// becoming is the command line that runs the wrapper as another user. Some small templates have a su that never works,
// having no PAM configuration; setpriv needs none. su's options go first: the form that util-linux and busybox agree on.
func becoming(user string) string {
	setpriv := `setpriv --reuid=` + user + ` --regid="$(id -g ` + user + `)" --init-groups`
	return `if ` + setpriv + ` true 2>/dev/null </dev/null; then HOME=~` + user + ` USER=` + user + ` LOGNAME=` + user + ` exec ` + setpriv + ` sh -c '` + wrapper + `'; ` +
		`else exec su -s /bin/sh ` + user + ` -c '` + wrapper + `'; fi`
}

// quote is Quote on one line: a line break becomes a variable.
func quote(text string) string { return strings.ReplaceAll(Quote(text), "\n", `'"$__n"'`) }
