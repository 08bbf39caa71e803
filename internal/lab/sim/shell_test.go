package sim_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
)

func TestShellRunsScriptsAsADebianGuestDoes(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	c := l.guest(t, 101, "root")
	for _, k := range []struct {
		name, command, stdin, want string
		status                     int
	}{
		{"host name and user", "hostname; id -u; whoami", "", "sb-101\n0\nroot\n", 0},
		{"redirection and cd", "mkdir /srv/r; echo hi > /srv/r/a && cat < /srv/r/a; cd /srv/r; ls; pwd", "", "hi\na\n/srv/r\n", 0},
		{"append", "echo a > /tmp/x; echo b >> /tmp/x; cat /tmp/x", "", "a\nb\n", 0},
		{"pipes", "for i in 1 2 3; do echo $i; done | wc -l", "", "3\n", 0},
		{"exit status", "exit 42", "", "", 42},
		{"or", "false || exit 3", "", "", 3},
		{"set -e", "sh -c 'set -e; false; echo no'", "", "", 1},
		{"set -e as an option", "sh -ec 'false; echo no'", "", "", 1},
		{"here-document", "cat <<E | tee /root/h\nheredoc $((1+2))\nE", "", "heredoc 3\n", 0},
		{"standard input", "cat; echo end", "one\ntwo", "one\ntwoend\n", 0},
		{"environment", "A=1; export B=2; env | grep -c '^A='; printenv B", "", "0\n2\n", 0},
		{"functions", "f() { echo f$1; return 4; }; f x; echo $?", "", "fx\n4\n", 0},
		{"command -v", "command -v cat sh; command -v nothere; echo $?", "", "/usr/bin/cat\n/usr/bin/sh\n127\n", 0},
		{"umask", "umask 077; echo x > /root/u; stat -c %a /root/u; (umask 022; touch /root/v); stat -c %a /root/v; umask", "", "600\n644\n0077\n", 0},
		{"umask of children", "umask 027; sh -c 'echo > /root/w'; stat -c %a /root/w", "", "640\n", 0},
		{"process number", "[ $$ -gt 1 ] && sh -c 'echo $PPID' | grep -qx $$ && echo same", "", "same\n", 0},
		{"background job and wait", "(sleep 0.01; exit 7) & p=$!; kill -0 $p && wait $p; echo $?", "", "7\n", 0},
		{"killed job", "sleep 100 & p=$!; kill $p; wait $p; echo $?", "", "143\n", 0},
		{"killed loop", "while :; do :; done & p=$!; kill -9 $p; wait $p; echo $?", "", "137\n", 0},
		{"timeout", "timeout 0.01 sleep 100; echo $?", "", "124\n", 0},
		{"exit trap", "trap 'echo bye' EXIT TERM; echo hi; exit 5", "", "hi\nbye\n", 5},
		{"source", "echo 'V=$((40+2))' > /tmp/s; . /tmp/s; echo $V", "", "42\n", 0},
		{"script with an interpreter line", "printf '#!/bin/sh\\necho \"$0 $1\"\\n' > /root/s; chmod +x /root/s; /root/s a", "", "/root/s a\n", 0},
		{"script without permission", "echo > /root/n; /root/n", "", "", 126},
		{"globbing", "mkdir -p /tmp/g; touch /tmp/g/b /tmp/g/a; echo /tmp/g/*", "", "/tmp/g/a /tmp/g/b\n", 0},
		{"eval of a header from input", `exec sh -c 'n=$(printf "\nx");n=${n%x};IFS= read -r h||exit 126;eval "$h"'`, "export K='v w'; cd /tmp; exec sh -c 'echo $K; pwd; cat'\nrest of input", "v w\n/tmp\nrest of input", 0},
		{"shell from standard input", "sh -s a b", "echo $2\nexit 9\n", "b\n", 9},
		{"other user", "su -s /bin/sh agent -c 'id -un; echo $HOME; cd; pwd; exit 3'", "", "agent\n/home/agent\n/home/agent\n", 3},
		{"root's files are closed to others", "su -s /bin/sh agent -c 'cat /root/h'", "", "", 1},
		{"runuser", "runuser -u agent -- id -u", "", "1000\n", 0},
		{"boot id", "wc -c < /proc/sys/kernel/random/boot_id", "", "37\n", 0},
		{"file system type", "stat -f -c %T /run /", "", "tmpfs\next2/ext3\n", 0},
		{"sed", "echo 'a=1 b=2' | sed 's/b=\\([0-9]\\)/c=\\1/;s/a/x/'", "", "x=1 c=2\n", 0},
		{"grep status", "echo x | grep -q y; echo $?", "", "1\n", 0},
		{"sort and uniq", "printf 'b\\na\\nb\\n' | sort | uniq -c | tr -s ' '", "", " 1 a\n 2 b\n", 0},
		{"cut", "cut -d: -f1,7 /etc/passwd | head -n 1", "", "root:/bin/bash\n", 0},
		{"base64", "printf abc | base64 | base64 -d", "", "abc", 0},
		{"checksum", "printf abc | sha256sum | cut -c1-8", "", "ba7816bf\n", 0},
		{"find", "mkdir -p /srv/f/d; touch /srv/f/a.txt; find /srv/f -name '*.txt' -type f", "", "/srv/f/a.txt\n", 0},
		{"xargs", "printf 'a\\nb\\n' | xargs -n1 echo x", "", "x a\nx b\n", 0},
		{"seq", "seq -s, 3", "", "1,2,3\n", 0},
		{"processors", "nproc; grep -c ^processor /proc/cpuinfo", "", "2\n2\n", 0},
		{"writer of a pipe that nobody reads ends", "yes | head -n 1", "", "y\n", 0},
		{"home of a user", "echo ~agent ~root ~nobodyhere", "", "/home/agent /root ~nobodyhere\n", 0},
		{"systemd", "systemctl is-system-running; systemctl is-active ssh nothing", "", "running\nactive\ninactive\n", 0},
		{"chmod symbolic", "touch /tmp/m; chmod u=rw,go= /tmp/m; chmod g+r /tmp/m; stat -c '%a %U' /tmp/m", "", "640 root\n", 0},
		{"env starts programs", "env -i A=b /usr/bin/printenv A", "", "b\n", 0},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			out, errw, status := output(t, c, k.command, k.stdin)
			if out != k.want || status != k.status {
				t.Errorf("%q:\n got %q, status %d (%s)\nwant %q, status %d", k.command, out, status, strings.TrimSpace(errw), k.want, k.status)
			}
		})
	}
}

func TestShellSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	for command, want := range map[string]string{
		"sh -c 'apt-get update'":   "sh: 1: apt-get: not found\n",
		"bash -c '\napt-get'":      "bash: line 2: apt-get: command not found\n",
		"cat /nonexistent":         "cat: /nonexistent: No such file or directory\n",
		"cat < <(echo x)":          "process substitution is not supported",
		"rm -r /":                  "dangerous",
		"ls --quoting-style=shell": "unrecognized option",
	} {
		if out, status := l.pct(t, 101, command); !strings.Contains(out, want) || status == 0 {
			t.Errorf("%q: got %q, status %d; want %q", command, out, status, want)
		}
	}
}
