package lxc

import (
	"fmt"
	"regexp"
	"strings"
)

// rawKeys are the keys of LXC's own that a template may carry: limits, and capabilities that are taken away. Others could
// undo what keeps a container in.
var rawKeys = regexp.MustCompile(`^lxc\.(cgroup2\.(pids\.max|memory\.(max|high|low|min|swap\.max)|cpu\.(max|weight)|io\.(max|weight))|prlimit\.[a-z]+|cap\.drop)$`)

var rawValue = regexp.MustCompile(`^[A-Za-z0-9_:=. -]+$`)

// parseRaw checks the lines of lxc_raw and writes them as they stand in a container's configuration.
func parseRaw(lines []string) ([]string, error) {
	var out []string
	for i, line := range lines {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			key, value, ok = strings.Cut(line, "=")
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok || value == "":
			return nil, fmt.Errorf("lxc_raw[%d]: %q is no line like \"lxc.cgroup2.pids.max: 4096\"; an empty value would reset what LXC has set", i, line)
		case !rawKeys.MatchString(key):
			return nil, fmt.Errorf("lxc_raw[%d]: %s may not be set. Allowed are limits (lxc.cgroup2.pids.max, lxc.cgroup2.memory.*, lxc.cgroup2.cpu.*, lxc.cgroup2.io.*, lxc.prlimit.*) and lxc.cap.drop: other keys could open the container", i, key)
		case !rawValue.MatchString(value):
			return nil, fmt.Errorf("lxc_raw[%d]: the value %q holds a character that isn't expected there", i, value)
		}
		out = append(out, key+": "+value)
	}
	return out, nil
}
