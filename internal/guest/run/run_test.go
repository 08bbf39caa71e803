package run_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest/run"
)

func TestARunGoesThroughItsLife(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := request(`echo "as $(id -un) in $PWD: $A $SECRET"; cat; echo; exit 7`)
	r.Agent.Env = map[string]string{"A": "it's a"}
	r.Agent.PromptStdin = true
	r.Prompt = "do 'it'\n\"now\""
	r.Secrets, r.Forms = map[string]string{"SECRET": "hunter2!"}, []string{"hunter2!"}
	started := b.start(r)
	s := b.end(started.ID)
	if s.Status != run.Failed || s.Code != 7 || string(s.Output) != "as agent in /home/agent: it's a [redacted]\ndo 'it'\n\"now\"\n" {
		t.Errorf("%+v\n%s", s, s.Output)
	}
	if len(s.Steps) != 1 || s.Steps[0].Code != 7 || s.Steps[0].Test {
		t.Errorf("steps %+v", s.Steps)
	}
	if got := b.sh("grep -r hunter2 /var /run /home /tmp /etc; ls /run/sandbox/runs/*"); strings.Contains(got, "hunter2") || strings.Contains(got, "secrets") {
		t.Errorf("left in the guest: %s", got)
	}
}

// A process that ignores TERM, and children of it in sessions of their own, are all gone when the time is up.
func TestTheTimeLimitEndsEverything(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := request(`trap '' TERM; echo begun
(trap '' TERM; sleep 1000) &
setsid sh -c "trap '' TERM; sleep 1001" </dev/null >/dev/null 2>&1 &
sleep 1002`)
	r.Limit, r.Grace = time.Second, time.Second
	s := b.end(b.start(r).ID)
	// Where su starts the run, its own end by TERM is what is seen of it.
	if s.Status != run.TimedOut || s.Code != 137 && s.Code != 143 || string(s.Output) != "begun\n" || s.Duration < 2*time.Second || s.Duration > 20*time.Second {
		t.Errorf("%+v\n%s", s, s.Output)
	}
	b.nothingRuns()
}

// nothingRuns fails when a process of a run is left.
func (b *box) nothingRuns() {
	b.t.Helper()
	if left := b.sh(`grep -l SBX_RUN= /proc/[0-9]*/environ 2>/dev/null; for f in /proc/[0-9]*/stat; do grep -q "(sleep)" $f && ! grep -q ") Z" $f && cat $f; done; true`); left != "" {
		b.t.Errorf("processes are left: %s", left)
	}
}

func TestWhatARunLeavesBehindEndsWithIt(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := request(`setsid sleep 1000 </dev/null >/dev/null 2>&1 & sleep 1001 & echo done; kill -s KILL $$`)
	s := b.end(b.start(r).ID)
	if s.Status != run.Failed || s.Code != 137 || string(s.Output) != "done\n" {
		t.Errorf("%+v\n%s", s, s.Output)
	}
	b.nothingRuns()
}

func TestARunIsNeverStartedTwice(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := request("echo run >> /tmp/runs; while [ ! -e /tmp/go ]; do sleep 0.05; done")
	first := b.start(r)
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			again, err := run.Start(t.Context(), b, r)
			if err != nil || again.ID != first.ID || !again.Adopted {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
	others.Wait()
	facts, err := run.Look(t.Context(), b, key, "agent", "", nil)
	if err != nil || facts.ID != first.ID || facts.Attempt != 1 {
		t.Errorf("%+v, %v", facts, err)
	}
	b.sh("touch /tmp/go")
	if s := b.end(first.ID); s.Status != run.Succeeded {
		t.Errorf("%+v", s)
	}
	if again := b.start(r); again.ID != first.ID || !again.Adopted {
		t.Errorf("an uncollected result was not found: %+v", again)
	}
	if got := b.sh("cat /tmp/runs"); got != "run\n" {
		t.Errorf("it ran: %q", got)
	}
	if err := run.Collect(t.Context(), b, first.ID); err != nil {
		t.Fatal(err)
	}
	if again := b.start(r); again.Adopted || again.ID != key+".2" {
		t.Errorf("after its result was collected: %+v", again)
	}
	b.end(key + ".2")
	other := r
	other.Key = "ffffffffffffffffffffffff"
	if again := b.start(other); again.Adopted || again.ID != other.Key+".1" {
		t.Errorf("another key: %+v", again)
	}
}

// Two that ask at the very same time get the same run.
func TestStartsThatRaceMakeOneRun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if _, err := run.Look(t.Context(), b, key, "agent", "", nil); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	started := 0
	for range 6 {
		all.Go(func() {
			s, err := run.Start(t.Context(), b, request("echo run >> /tmp/runs; sleep 1"))
			if err != nil || s.ID != key+".1" {
				t.Errorf("%+v, %v", s, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !s.Adopted {
				started++
			}
		})
	}
	all.Wait()
	b.end(key + ".1")
	if got := b.sh("cat /tmp/runs"); started != 1 || got != "run\n" {
		t.Errorf("%d started, it ran: %q", started, got)
	}
}

func TestTestsDecideAndRepairsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := request(`cat > "prompt$SBX_ATTEMPT"; echo "attempt $SBX_ATTEMPT"; echo x >> done`)
	r.Agent.PromptStdin, r.Prompt = true, "build it"
	r.Test = &run.Launch{Code: `n=$(wc -l < done); echo "have $n"; [ "$n" -ge 3 ]`}
	r.Repair = 2
	s := b.end(b.start(r).ID)
	if s.Status != run.Succeeded || len(s.Steps) != 6 || s.Steps[1].Code != 1 || !s.Steps[1].Test || s.Steps[5].Code != 0 {
		t.Errorf("%+v\n%s", s, s.Output)
	}
	if want := "attempt 1\nhave 1\nattempt 2\nhave 2\nattempt 3\nhave 3\n"; string(s.Output) != want {
		t.Errorf("output %q", s.Output)
	}
	second := b.sh("cat /home/agent/prompt2")
	if !strings.HasPrefix(second, "build it\n\nThe tests failed") || !strings.HasSuffix(second, "have 1\n") || !strings.Contains(second, "exit code 1") {
		t.Errorf("the second prompt: %q", second)
	}
	r.Key, r.Repair = "ffffffffffffffffffffffff", 1
	r.Test.Code = "exit 9"
	if s := b.end(b.start(r).ID); s.Status != run.Failed || s.Code != 9 || len(s.Steps) != 4 {
		t.Errorf("%+v", s)
	}
}

// The prompt may be anything but NUL, by input, by file and by argument.
func TestAPromptArrivesAsItIs(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	prompt := strings.Repeat("it's \"quoted\" `and` $(odd) \\n\n\ttab é\r\n", 1700)[:64<<10-1] + "\n"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(prompt)))
	for name, launch := range map[string]run.Launch{
		"input": {Code: "sha256sum", PromptStdin: true},
		"file":  {Argv: []string{"sha256sum", ""}, PromptFileArg: 1},
		// printf is given the text as an argument by a shell of its own.
		"argument": {Argv: []string{"sh", "-c", `printf %s "$1" | sha256sum`, "sh", ""}, PromptArg: 4},
	} {
		r := request("")
		r.Agent, r.Prompt = launch, prompt
		r.Key = fmt.Sprintf("%024x", len(name))
		if s := b.end(b.start(r).ID); s.Status != run.Succeeded || !strings.HasPrefix(string(s.Output), sum) {
			t.Errorf("%s: %s, %s", name, s.Status, s.Output)
		}
	}
}

func TestMuchOutputIsBoundedAndBinaryOutputPasses(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := request(fmt.Sprintf(`printf '\000\377begin\n'; head -c %d /dev/zero; printf '\000\376end'`, muchOutput))
	s := b.end(b.start(r).ID)
	if s.Status != run.Succeeded || s.Total != muchOutput+13 || !s.Dropped || !bytes.HasSuffix(s.Output, []byte("\x00\xfeend")) {
		t.Errorf("%s, %d bytes, dropped %t, ends in %q", s.Status, s.Total, s.Dropped, s.Output[max(0, len(s.Output)-8):])
	}
	first, err := run.Poll(t.Context(), b, key+".1", 0, 16)
	if err != nil || !bytes.HasPrefix(first.Output, []byte("\x00\xffbegin\n")) || len(first.Output) != 16 {
		t.Errorf("%q, %v", first.Output, err)
	}
	gap, err := run.Poll(t.Context(), b, key+".1", 5<<20, 16)
	if err != nil || gap.From <= 5<<20 || len(gap.Output) != 16 {
		t.Errorf("a part that is gone: from %d, %d bytes, %v", gap.From, len(gap.Output), err)
	}
	if size, _ := strconv.Atoi(strings.Fields(b.sh("du -sk /var/lib/sandbox/runs"))[0]); size > 20<<10 {
		t.Errorf("the log takes %d KiB", size)
	}
}

func TestSecretsAreTakenOutOfTheLog(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	secret := "a/b*c[d]^e$.\\f&g'h"
	r := request(`printf 'plain: %s.\n' "$TOKEN"; printf %s "$TOKEN" | base64; env | grep -c SBX_SECRETS; ls -ln "$SBX_IN" | grep -c secrets; d=${SBX_IN%/in}; stat -c '%a %U' /run/sandbox/runs/${d##*/}/secrets`)
	r.Secrets = map[string]string{"TOKEN": secret}
	r.Forms = []string{base64.StdEncoding.EncodeToString([]byte(secret)), secret}
	s := b.end(b.start(r).ID)
	if want := "plain: [redacted].\n[redacted]\n0\n0\n600 agent\n"; string(s.Output) != want {
		t.Errorf("output %q", s.Output)
	}
	if got := b.sh(`grep -rlF "$1" /var /run /home /tmp /etc /root; ls -R /run/sandbox`, secret); strings.Contains(got, "secrets") || strings.HasPrefix(got, "/var") || strings.Contains(got, "\n/home") {
		t.Errorf("left in the guest: %s", got)
	}
}

func TestWithoutMemoryNoSecretIsSent(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.sh("mkdir /var/notmemory; mount --bind /var/notmemory /run 2>/dev/null || umount -l /run")
	r := request("true")
	r.Secrets = map[string]string{"TOKEN": "hunter2!"}
	facts, err := run.Look(t.Context(), b, r.Key, r.User, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if facts.Memory {
		t.Skip("this guest's /run can't be made anything but tmpfs")
	}
	var refused *run.Error
	if _, err := run.Start(t.Context(), b, r); !errors.As(err, &refused) || refused.Kind != run.NoMemory {
		t.Errorf("%v", err)
	}
	if got := b.sh("grep -rl hunter2 /var /run; ls /var/lib/sandbox/runs"); got != "" {
		t.Errorf("left in the guest: %s", got)
	}
}

func TestADiskThatFillsUpEndsTheLogOnly(t *testing.T) {
	t.Parallel()
	b := newBoxOf(t, 12<<20)
	b.sh("mkdir -p /var/lib/sandbox && mount -t tmpfs -o size=12m none /var/lib/sandbox") // where the root has no limit
	r := request(`echo begun; head -c 30000000 /dev/zero; echo went on > /dev/shm/out; exit 5`)
	s := b.end(b.start(r).ID)
	if s.Status != run.Failed || s.Code != 5 || !s.Dropped {
		t.Errorf("%s, %d, %d bytes", s.Status, s.Code, s.Total)
	}
	if first, err := run.Poll(t.Context(), b, key+".1", 0, 6); err != nil || string(first.Output) != "begun\n" {
		t.Errorf("the log begins with %q, %v", first.Output, err)
	}
	if got := b.sh("cat /dev/shm/out"); got != "went on\n" {
		t.Errorf("the run: %q", got)
	}
	var refused *run.Error
	r.Key, r.Prompt = "ffffffffffffffffffffffff", strings.Repeat("x", 64<<10)
	if _, err := run.Start(t.Context(), b, r); !errors.As(err, &refused) || refused.Kind != run.NoSpace {
		t.Errorf("with a full disk: %v", err)
	}
	if got := b.sh("ls -d /var/lib/sandbox/runs/ffff* /run/sandbox/runs/ffff* 2>/dev/null"); got != "" {
		t.Errorf("left of a run that couldn't start: %s", got)
	}
}

func TestARebootLosesARun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := request("sleep 1000")
	r.Secrets = map[string]string{"TOKEN": "hunter2!"}
	id := b.start(r).ID
	ended := request("echo fine")
	ended.Key = "ffffffffffffffffffffffff"
	endedID := b.start(ended).ID
	b.end(endedID)
	if err := b.engine.Stop(t.Context(), 101); err != nil {
		t.Fatal(err)
	}
	b.pool.Disconnect(b.target)
	if err := b.engine.Start(t.Context(), 101); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pool.WaitReady(t.Context(), b.target); err != nil {
		t.Fatal(err)
	}
	if s, err := run.Poll(t.Context(), b, id, 0, 0); err != nil || s.Status != run.Lost {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := run.Poll(t.Context(), b, endedID, 0, 100); err != nil || s.Status != run.Succeeded || string(s.Output) != "fine\n" {
		t.Errorf("a result from before: %+v, %v", s, err)
	}
	if again := b.start(r); again.Adopted || again.ID != key+".2" {
		t.Errorf("after a run was lost: %+v", again)
	}
	if err := run.Discard(t.Context(), b, key+".2"); err != nil {
		t.Error(err)
	}
	b.nothingRuns()
	if s, err := run.Poll(t.Context(), b, key+".2", 0, 0); err != nil || s.Status != run.Stopped || !s.Collected {
		t.Errorf("discarded: %+v, %v", s, err)
	}
	if _, err := run.Poll(t.Context(), b, "aaaa.1", 0, 0); !errors.Is(err, run.ErrAbsent) {
		t.Errorf("unknown: %v", err)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var refused *run.Error
	if _, err := run.Look(t.Context(), b, key, "nobody-at-all", "", nil); !errors.As(err, &refused) || refused.Kind != run.NoUser || refused.Message != "nobody-at-all" {
		t.Errorf("no user: %v", err)
	}
	b.sh(`mkdir -p /etc/sandbox; echo '{"agents":[]}' > /etc/sandbox/template.json`)
	if facts, err := run.Look(t.Context(), b, key, "agent", "no-such-agent", nil); err != nil || facts.Binary != "" || strings.TrimSpace(string(facts.Manifest)) != `{"agents":[]}` {
		t.Errorf("no program: %+v, %v", facts, err)
	}
	b.sh(`mkdir -p /home/agent/.local/bin; printf '#!/bin/sh\necho "tool $2 as $(id -un)"\n' > /home/agent/.local/bin/tool; chmod 755 /home/agent/.local /home/agent/.local/bin /home/agent/.local/bin/tool`)
	if facts, err := run.Look(t.Context(), b, key, "agent", "tool", []string{"tool", "-v", "1.2 3"}); err != nil || facts.Binary != "/home/agent/.local/bin/tool" || facts.Version != "tool 1.2 3 as agent" {
		t.Errorf("a program: %+v, %v", facts, err)
	}
	b.sh("rm -f $(command -v setsid) $(command -v tee)")
	if _, err := run.Look(t.Context(), b, key, "agent", "", nil); !errors.As(err, &refused) || refused.Kind != run.NoTools || refused.Message != "tee setsid" {
		t.Errorf("no tools: %v", err)
	}
}

func TestTheScriptServesPeople(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	id := b.start(request("echo one; sleep 0.3; echo two")).ID
	if got := b.sh("sbx-run tail " + id); got != "one\ntwo\n" {
		t.Errorf("tail: %q", got)
	}
	if got := b.sh("sbx-run list"); got != id+" succeeded\n" {
		t.Errorf("list: %q", got)
	}
	if got := b.sh("sbx-run status " + id); !strings.Contains(got, "status=succeeded\ncode=0\n") {
		t.Errorf("status: %q", got)
	}
	for _, line := range []string{"sbx-run tail ../../etc", "sbx-run stop", "sbx-run status abc.1", "sbx-run"} {
		if got := b.sh(line + "; echo $?"); !strings.HasPrefix(got, "2\n") && !strings.HasPrefix(got, "1\n") {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// Without setpriv the run's user is reached by su, which may put its command into another session.
func TestTheUserIsReachedBySuToo(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.sh("rm -f $(command -v setpriv)")
	if got := b.sh("su -s /bin/sh agent -c 'id -un' 2>&1"); got != "agent\n" {
		t.Skipf("su doesn't work in this guest: %s", got)
	}
	r := request(`echo "$(id -un) $PWD $HOME $A"; trap '' TERM; sleep 1000 & sleep 1001`)
	r.Agent.Env, r.Limit, r.Grace = map[string]string{"A": "b c"}, time.Second, time.Second
	s := b.end(b.start(r).ID)
	// su has words of its own when it is told to end.
	if s.Status != run.TimedOut || !strings.HasPrefix(string(s.Output), "agent /home/agent /home/agent b c\n") {
		t.Errorf("%+v\n%s", s, s.Output)
	}
	b.nothingRuns()
}

// Where systemd runs, the supervisor is a unit of its own, so that no end of a login session takes it along; and where
// systemd-run doesn't work, it goes without.
func TestUnderSystemdTheSupervisorIsAUnit(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.sh(`mkdir -p /run/systemd/system; cat > /usr/bin/systemd-run <<'END'
#!/bin/sh
[ -e /tmp/works ] || exit 1
echo "$*" > /tmp/called
while [ "${1#--}" != "$1" ]; do shift; done
setsid "$@" &
END
chmod 755 /usr/bin/systemd-run`)
	if s := b.end(b.start(request("echo without")).ID); s.Status != run.Succeeded || string(s.Output) != "without\n" {
		t.Errorf("%+v", s)
	}
	b.sh("touch /tmp/works")
	r := request("echo with; sleep 1000 & exit 4")
	r.Key = "ffffffffffffffffffffffff"
	if s := b.end(b.start(r).ID); s.Status != run.Failed || s.Code != 4 || string(s.Output) != "with\n" {
		t.Errorf("%+v", s)
	}
	b.nothingRuns()
	if got := b.sh("cat /tmp/called"); !strings.Contains(got, "--unit=sbx-run-"+r.Key+".1 ") || !strings.HasSuffix(got, " /bin/sh /usr/local/bin/sbx-run supervise "+r.Key+".1\n") {
		t.Errorf("systemd-run was called with %q", got)
	}
}

// A login that isn't root has runs of its own, in its home.
func TestAnOrdinaryLoginRunsAsItself(t *testing.T) {
	t.Parallel()
	b := newBox(t).as("agent")
	r := request(`echo "$(id -un) $PWD"; cat; sleep 1000 & exit 3`)
	r.Agent.PromptStdin, r.Prompt = true, "the task\n"
	id := b.start(r).ID
	if s := b.end(id); s.Status != run.Failed || s.Code != 3 || string(s.Output) != "agent /home/agent\nthe task\n" {
		t.Errorf("%+v\n%s", s, s.Output)
	}
	b.nothingRuns()
	if again := b.start(r); again.ID != id || !again.Adopted {
		t.Errorf("%+v", again)
	}
	if got := b.sh(`ls "$HOME/.local/state/sandbox/runs"; "$HOME/.local/bin/sbx-run" list`); got != id+"\n"+id+" failed\n" {
		t.Errorf("%q", got)
	}
	var refused *run.Error
	if _, err := run.Look(t.Context(), b, key, "root", "", nil); !errors.As(err, &refused) || refused.Kind != run.OtherUser || refused.Message != "agent" {
		t.Errorf("%v", err)
	}
	r.Key, r.Secrets = "ffffffffffffffffffffffff", map[string]string{"TOKEN": "hunter2!"}
	if facts, err := run.Look(t.Context(), b, r.Key, "agent", "", nil); err != nil || facts.Memory {
		t.Skipf("this login has a folder in memory: %+v, %v", facts, err)
	}
	if _, err := run.Start(t.Context(), b, r); !errors.As(err, &refused) || refused.Kind != run.NoMemory {
		t.Errorf("%v", err)
	}
}
