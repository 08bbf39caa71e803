package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
)

// writeEnv writes the provider's variables as a file that a POSIX shell can source. It holds the token and the key.
func writeEnv(path string, l *lab.Lab) error {
	var b strings.Builder
	variables := l.Variables()
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(variables[name], "'", `'\''`))
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}
