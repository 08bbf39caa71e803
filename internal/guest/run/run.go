package run

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

//go:embed sbx-run.sh
var script string

// Guest runs commands in one guest.
type Guest interface {
	Exec(ctx context.Context, cmd guest.Command) (guest.Result, error)
}

// Kind says what the supervisor could not do, or what it didn't find.
type Kind string

// The kinds of errors. What Error.Message is stands beside them.
const (
	NoTools      Kind = "needs"      // the programs that are missing
	NoUser       Kind = "user"       // the user's name
	OtherUser    Kind = "other"      // who is logged in, and may not run as another
	NoSpace      Kind = "space"      // the path that couldn't be written
	NoMemory     Kind = "memory"     // the path that should be on tmpfs
	NoSupervisor Kind = "supervisor" // what it said
)

// Error is what the supervisor refused.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string {
	switch e.Kind {
	case NoTools:
		return "the template lacks what a run needs: " + e.Message
	case NoUser:
		return fmt.Sprintf("there is no user %q", e.Message)
	case OtherUser:
		return fmt.Sprintf("the login is %q, which can't run anything as another user", e.Message)
	case NoSpace:
		return fmt.Sprintf("%s can't be written: the disk is full or read-only", e.Message)
	case NoMemory:
		return fmt.Sprintf("%s is on no file system in memory (tmpfs), so no secret was sent", e.Message)
	}
	return "the supervisor didn't start: " + e.Message
}

// ErrAbsent says that the guest has no such run, or no supervisor at all: it
// was rolled back to before, or rebuilt.
var ErrAbsent = errors.New("the guest doesn't know the run")

// Facts are what Look found.
type Facts struct {
	Now time.Time // by the guest's clock, to the second
	// ID is the run of the key that is to be adopted; empty for none. Attempt is
	// the number of the newest run of the key, 0 for none.
	ID      string
	Attempt int
	// Memory says that secrets could be kept in memory.
	Memory bool
	// Binary is the path of the program that was asked for; empty if it isn't
	// there, in which case Manifest holds the template's manifest, if any.
	Binary   string
	Manifest []byte
	// Version is the first line that the version command printed.
	Version string
}

// Look asks what is there before a run of key is started as user: whether the
// guest can supervise runs, whether it has the program binary ("" for any), and
// whether there is a run to be adopted. It installs the script.
func Look(ctx context.Context, g Guest, key, user, binary string, version []string) (Facts, error) {
	words := make([]string, len(version))
	for i, word := range version {
		words[i] = guest.Quote(word)
	}
	a, err := call(ctx, g, 128<<10, brought, strings.TrimSpace(script), "look", key, user, binary, strings.Join(words, " "))
	if err != nil {
		return Facts{}, err
	}
	return Facts{Now: a.time("now"), ID: a.fields["id"], Attempt: int(a.number("attempt")), Memory: a.fields["memory"] == "1",
		Binary: a.fields["binary"], Manifest: a.body, Version: a.fields["version"]}, nil
}

// Request is a run to be started.
type Request struct {
	Key    string
	User   string
	Limit  time.Duration // of all attempts together; at least a second
	Grace  time.Duration // between TERM and KILL
	Agent  Launch
	Test   *Launch // nil for none
	Repair int     // how often the agent is run again after failed tests
	Prompt string
	// Secrets are environment variables. Forms are the texts by which they are
	// taken out of the output before it gets to a disk.
	Secrets map[string]string
	Forms   []string
}

// Started is what became of a Request.
type Started struct {
	ID      string
	Adopted bool // there was one of that key already
	Now     time.Time
}

// Start starts a run, unless there is one of the key that nobody has collected:
// then it returns that. It may be called again when it isn't known whether an
// earlier call got through.
func Start(ctx context.Context, g Guest, r Request) (Started, error) {
	agent, err := r.Agent.script()
	if err != nil {
		return Started{}, err
	}
	test := ""
	if r.Test != nil {
		if test, err = r.Test.script(); err != nil {
			return Started{}, err
		}
	}
	secrets, err := exports(r.Secrets)
	if err != nil {
		return Started{}, err
	}
	a, err := call(ctx, g, 64<<10, brought, strings.TrimSpace(script), "start", r.Key, r.User, seconds(r.Limit), seconds(r.Grace), strconv.Itoa(r.Repair),
		agent, test, r.Prompt, secrets, redaction(r.Forms))
	if err != nil {
		return Started{}, err
	}
	return Started{ID: a.fields["id"], Adopted: a.fields["adopted"] == "1", Now: a.time("now")}, nil
}

// The states of a run as the supervisor has them.
const (
	Starting  = "starting"
	Running   = "running"
	Succeeded = "succeeded"
	Failed    = "failed"
	TimedOut  = "timed_out"
	Stopped   = "stopped"
	Lost      = "lost" // it had no end, and its supervisor is gone
)

// State is how a run stands.
type State struct {
	Now       time.Time
	Status    string
	Code      int           // of the last step; only for a run that ended
	HasCode   bool          // it has got as far as that
	Started   time.Time     // by the guest's clock; zero if not known
	Ended     time.Time     // likewise
	Duration  time.Duration // by a clock that isn't set
	Collected bool
	Steps     []Step
	// Total is how many bytes of output there have been. Dropped says that some
	// in the middle are gone.
	Total   int64
	Dropped bool
	// Output is the part from From on.
	From   int64
	Output []byte
}

// Step is one run of the agent, or of the tests.
type Step struct {
	Test     bool
	Attempt  int
	Code     int
	Duration time.Duration
}

// Poll says how a run stands, with at most most bytes of its output from offset
// on; a negative offset counts from the end. ErrAbsent if the guest has no such
// run.
func Poll(ctx context.Context, g Guest, id string, offset, most int64) (State, error) {
	a, err := call(ctx, g, most+64<<10, installed, "poll", id, strconv.FormatInt(offset, 10), strconv.FormatInt(most, 10))
	if err != nil {
		return State{}, err
	}
	if a.fields["status"] == "absent" {
		return State{}, ErrAbsent
	}
	s := State{Now: a.time("now"), Status: a.fields["status"], Code: int(a.number("code")), HasCode: a.fields["code"] != "",
		Started: a.time("started"), Ended: a.time("ended"), Duration: time.Duration(a.number("duration")) * 10 * time.Millisecond,
		Collected: a.fields["collected"] == "1", Total: a.number("total"), Dropped: a.fields["dropped"] == "1", From: a.number("from"), Output: a.body}
	for _, line := range a.steps {
		var kind string
		var step Step
		var cs int64
		if _, err := fmt.Sscan(line, &kind, &step.Attempt, &step.Code, &cs); err == nil {
			step.Test, step.Duration = kind == "test", time.Duration(cs)*10*time.Millisecond
			s.Steps = append(s.Steps, step)
		}
	}
	return s, nil
}

// Discard marks a run's result as taken, and ends the run if it still goes on.
// A run that isn't there is a success.
func Discard(ctx context.Context, g Guest, id string) error {
	_, err := call(ctx, g, 64<<10, installed, "discard", id)
	if errors.Is(err, ErrAbsent) {
		return nil
	}
	return err
}

// Collect marks a run's result as taken: nobody will adopt the run any more.
func Collect(ctx context.Context, g Guest, id string) error {
	_, err := call(ctx, g, 64<<10, installed, "collect", id)
	return err
}

// brought runs the script that comes as the first argument.
const brought = `sbx_text=$1; shift; eval "$sbx_text"`

// installed runs the script that Look has left in the guest; 127 when there is none.
const installed = `if [ "$(id -u)" = 0 ]; then p=/usr/local/bin/sbx-run; else p=$HOME/.local/bin/sbx-run; fi; [ -r "$p" ] || exit 127; exec sh "$p" "$@"`

func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// UnderWay lists the runs that go on in a guest, whoever started them. A guest
// without the supervisor has none.
func UnderWay(ctx context.Context, g Guest) ([]string, error) {
	a, err := call(ctx, g, 64<<10, installed, "under-way")
	if errors.Is(err, ErrAbsent) {
		return nil, nil
	}
	return strings.Fields(string(a.body)), err
}
