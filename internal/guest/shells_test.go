//go:build unix

package guest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryPOSIXShellRunsTheWrapper has each shell of this machine as sh and as
// login shell: dash and bash are Debian's, busybox is Alpine's.
func TestEveryPOSIXShellRunsTheWrapper(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, name := range []string{"dash", "bash", "busybox", "ksh", "mksh", "zsh", "yash"} {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		tried++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			shell := filepath.Join(dir, "sh") // by which name busybox knows what to be, and bash to be POSIX
			if err := os.Symlink(program, shell); err != nil {
				t.Fatal(err)
			}
			_, p, target := guestAndPool(t, func(s *server) {
				s.exec = func(line string, ch *execChannel) {
					runShellIn(shell, []string{"PATH=" + dir + ":" + os.Getenv("PATH")}, line, ch)
				}
			})
			value := make([]byte, 0, 255)
			for b := 1; b < 256; b++ {
				value = append(value, byte(b))
			}
			input := append(bytes.Repeat(value, 100), 0, '\n')
			res, err := p.Exec(t.Context(), target, Command{
				Script: "printf '%s' \"$ALL\"\npwd\nprintf '[%s]' \"$@\"\ncat\nexit 5", Args: []string{"a b", "", "c\nd"},
				Env: map[string]string{"ALL": string(value)}, Dir: dir, Stdin: bytes.NewReader(input),
			})
			real, linkErr := filepath.EvalSymlinks(dir)
			if linkErr != nil {
				t.Fatal(linkErr)
			}
			want := string(value) + real + "\n[a b][][c\nd]" + string(input)
			got := strings.Replace(string(res.Stdout), dir+"\n", real+"\n", 1)
			if err != nil || res.ExitCode != 5 || got != want {
				t.Errorf("exit %d, %v, %q; %d bytes of %d", res.ExitCode, err, res.Stderr, len(got), len(want))
			}
			res, err = p.Exec(t.Context(), target, Command{Path: "no-such-program"})
			if err != nil || res.ExitCode != 127 {
				t.Errorf("a program that isn't there: %+v, %v", res, err)
			}
			res, err = p.Exec(t.Context(), target, Command{Script: "if then"})
			if err != nil || res.ExitCode == 0 || len(res.Stderr) == 0 {
				t.Errorf("a script that isn't one: %+v, %v", res, err)
			}
		})
	}
	if tried == 0 {
		t.Skip("none of these shells is on this machine")
	}
}
