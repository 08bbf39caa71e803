package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"mvdan.cc/sh/v3/expand"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
)

// environ is what a script starts with. It answers everything that the interpreter would otherwise ask of the lab's
// host: home directories, user numbers, process numbers.
type environ struct {
	machine  *machine.Machine
	exported []string // NAME=value; later ones win
	hidden   map[string]string
	ready    atomic.Bool
}

// noTempDir is where the interpreter is told to make its named pipes and to look for them: a path that no system call
// accepts, so that no file of the host's can be opened under such a name.
const noTempDir = "/\x00"

func newEnviron(m *machine.Machine, p *machine.Process, exported []string, umask string) *environ {
	return &environ{machine: m, exported: exported, hidden: map[string]string{
		"UID": strconv.Itoa(p.Cred.UID), "EUID": strconv.Itoa(p.Cred.UID), "GID": strconv.Itoa(p.Cred.GID),
		varPID: strconv.Itoa(p.PID), varPPID: strconv.Itoa(p.PPID), varBG: "", varJob: "", varJobs: "", varUmask: umask,
	}}
}

// Get looks a variable up.
func (e *environ) Get(name string) expand.Variable {
	if name == "TMPDIR" && !e.ready.Load() {
		return text(noTempDir, false)
	}
	if user, ok := strings.CutPrefix(name, "HOME "); ok { // ~user
		if u, known := e.machine.User(user); known {
			return text(u.Home, false)
		}
		return text("~"+user, false)
	}
	if v, ok := e.hidden[name]; ok {
		return text(v, false)
	}
	for _, kv := range slices.Backward(e.exported) {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return text(v, true)
		}
	}
	if name == "HOME" {
		return text("/", false)
	}
	return expand.Variable{}
}

// Each visits all variables.
func (e *environ) Each(f func(string, expand.Variable) bool) {
	for name, v := range e.hidden {
		if !f(name, text(v, false)) {
			return
		}
	}
	for _, kv := range e.exported {
		n, v, _ := strings.Cut(kv, "=")
		if _, own := e.hidden[n]; !own && n != "" && !f(n, text(v, true)) {
			return
		}
	}
}

func text(s string, exported bool) expand.Variable {
	return expand.Variable{Set: true, Kind: expand.String, Str: s, Exported: exported}
}

// exportedFrom lists what a child process gets, sorted by name.
func exportedFrom(env expand.Environ) []string {
	vars := map[string]string{}
	env.Each(func(n string, v expand.Variable) bool {
		if v.Exported && v.IsSet() && !strings.HasPrefix(n, hidden) {
			vars[n] = v.String()
		} else {
			delete(vars, n)
		}
		return true
	})
	list := make([]string, 0, len(vars))
	for n, v := range vars {
		list = append(list, n+"="+v)
	}
	slices.Sort(list)
	return list
}

// Getenv finds a variable in a list of NAME=value.
func Getenv(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return v
		}
	}
	return ""
}

// Setenv returns the list with a variable set.
func Setenv(env []string, name, value string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(env, name+"="+value)
}

// UserEnv is the environment of a login.
func UserEnv(u machine.User) []string {
	path := "/usr/local/bin:/usr/bin:/bin:/usr/games"
	if u.UID == 0 {
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return []string{"HOME=" + u.Home, "LANG=C.UTF-8", "LOGNAME=" + u.Name, "PATH=" + path, "SHELL=" + u.Shell, "USER=" + u.Name}
}

// parseUmask reads an octal mask; 022 where it isn't one.
func parseUmask(s string) int {
	n, err := strconv.ParseInt(s, 8, 32)
	if err != nil {
		return 0o022
	}
	return int(n) & 0o777
}

func formatUmask(m int) string { return fmt.Sprintf("%04o", m) }
