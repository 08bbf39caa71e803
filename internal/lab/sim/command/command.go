// Package command has the programs of simulated guests: what scripts, readiness checks and people use of coreutils and
// its neighbours, written in Go against the machine's own files, processes and clock. Flags that would change what a
// script sees are done or refused, never ignored.
package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

// Sbin are the programs that live in /usr/sbin.
var Sbin = []string{"runuser", "reboot", "poweroff", "shutdown", "useradd", "groupadd", "usermod", "ip"}

var all = map[string]shell.Command{}

// register is called by init functions beside the commands.
func register(commands map[string]shell.Command) { maps.Copy(all, commands) }

// All returns every program by name.
func All() shell.Programs { return maps.Clone(all) }

// Names lists the programs.
func Names() []string { return slices.Sorted(maps.Keys(all)) }

// flags are a command line's options and operands.
type flags struct {
	count map[string]int
	value map[string]string
	args  []string
}

func (f *flags) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return f.count[n] > 0 })
}

// parse reads options as getopt_long does: short is "ab:" (b takes a value), long are "name", "name=" or "name=x",
// where a single letter x makes the long option another name of a short one and "=" alone means that it takes a value.
// A wrong option is reported, and nil returned.
func parse(c *shell.Call, short string, long ...string) *flags {
	f := &flags{count: map[string]int{}, value: map[string]string{}}
	takes := func(letter string) bool { return strings.Contains(short, letter+":") }
	names := map[string]string{}
	valued := map[string]bool{}
	for _, l := range long {
		name, as, eq := strings.Cut(l, "=")
		switch {
		case !eq:
			names[name] = name
		case as == "":
			names[name], valued[name] = name, true
		default:
			names[name], valued[name] = as, takes(as)
		}
	}
	args := c.Argv[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			f.args = append(f.args, args...)
			return f
		case strings.HasPrefix(a, "--"):
			name, v, given := strings.Cut(a[2:], "=")
			as, known := names[name]
			if !known {
				c.Fail("unrecognized option '--%s'", name)
				return nil
			}
			if valued[name] && !given {
				if len(args) == 0 {
					c.Fail("option '--%s' requires an argument", name)
					return nil
				}
				v, args = args[0], args[1:]
			}
			f.count[as]++
			f.value[as] = v
		case len(a) > 1 && a[0] == '-':
			for i := 1; i < len(a); i++ {
				letter := a[i : i+1]
				if letter == ":" || !strings.Contains(short, letter) {
					c.Fail("invalid option -- '%s'", letter)
					return nil
				}
				f.count[letter]++
				if takes(letter) {
					v := a[i+1:]
					if v == "" {
						if len(args) == 0 {
							c.Fail("option requires an argument -- '%s'", letter)
							return nil
						}
						v, args = args[0], args[1:]
					}
					f.value[letter] = v
					break
				}
			}
		default:
			if strings.HasPrefix(short, "+") { // operands end the options
				f.args = append([]string{a}, args...)
				return f
			}
			f.args = append(f.args, a)
		}
	}
	return f
}
