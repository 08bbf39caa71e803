package install

import (
	"os/exec"
	"testing"
)

func TestScriptsAreShellcheckClean(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("there is no shellcheck on this machine; CI has one")
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", "shellcheck -s sh scripts/*.sh").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
