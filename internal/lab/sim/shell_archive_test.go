package sim_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
)

func TestArchivesAndIdsInASimulatedGuest(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	c := l.guest(t, 101, "root")
	_, errw, status := output(t, c, "mkdir -p /srv/a/b && echo hi >/srv/a/b/f && ln -s f /srv/a/b/l && ln /srv/a/b/f /srv/a/h && chmod 640 /srv/a/b/f && chown 1000:1000 /srv/a/b/f", "")
	if status != 0 {
		t.Fatal(errw)
	}
	for _, k := range []struct {
		name, command, want string
		status              int
	}{
		{"round trip by a pipe", "mkdir /srv/x; tar -C /srv -cf - a | tar -xf - -C /srv/x; cat /srv/x/a/b/l; stat -c '%a %u' /srv/x/a/b/f; readlink /srv/x/a/b/l; stat -c %h /srv/x/a/h", "hi\n640 1000\nf\n2\n", 0},
		{"gzip, without leading folders and owners", "mkdir /srv/y; tar czf /srv/a.tar.gz -C /srv a; tar -xf /srv/a.tar.gz -C /srv/y --strip-components=1 --no-same-owner; ls /srv/y; stat -c %u /srv/y/b/f", "b\nh\n0\n", 0},
		{"only what is named", "mkdir /srv/z; tar -cf - -C /srv a | tar -x -C /srv/z a/b; find /srv/z -type f", "/srv/z/a/b/f\n", 0},
		{"list", "tar -cf - -C /srv/a/b . | tar -t | sort", "./\n./f\n./l\n", 0},
		{"names that lead out stay inside", "mkdir /srv/w; cd /srv/w; tar -cf - -C /srv/a ../a/h | tar -xf -; ls /srv/w", "a\n", 0},
		{"no archive", "echo x | tar -xf - 2>&1", "tar: This does not look like a tar archive\ntar: Error is not recoverable: exiting now\n", 2},
		{"xz isn't there", "tar -xJf /srv/a.tar.gz", "", 2},
		{"setpriv", "setpriv --reuid 65534 --regid=65534 --clear-groups id -u", "65534\n", 0},
		{"setpriv needs root", "setpriv --reuid 1000 --regid 1000 setpriv --reuid 0 id -u", "", 1},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			out, errw, status := output(t, c, k.command, "")
			if out != k.want || status != k.status {
				t.Errorf("%q:\n got %q, status %d (%s)\nwant %q, status %d", k.command, out, status, strings.TrimSpace(errw), k.want, k.status)
			}
		})
	}
}
