package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// Signal numbers of Linux, which the lab's host need not have.
const (
	SIGHUP  = 1
	SIGINT  = 2
	SIGQUIT = 3
	SIGKILL = 9
	SIGUSR1 = 10
	SIGUSR2 = 12
	SIGPIPE = 13
	SIGALRM = 14
	SIGTERM = 15
)

// Signals are the names, without SIG, as SSH and kill use them.
var Signals = map[string]int{"HUP": SIGHUP, "INT": SIGINT, "QUIT": SIGQUIT, "KILL": SIGKILL, "USR1": SIGUSR1,
	"USR2": SIGUSR2, "PIPE": SIGPIPE, "ALRM": SIGALRM, "TERM": SIGTERM}

// Killed is the cause of a process' context's end when a signal did it.
type Killed int

func (k Killed) Error() string { return fmt.Sprintf("killed by signal %d", int(k)) }

// KilledBy returns the signal that ended a context, or 0.
func KilledBy(ctx context.Context) int {
	var k Killed
	if errors.As(context.Cause(ctx), &k) {
		return int(k)
	}
	if ctx.Err() != nil {
		return SIGTERM
	}
	return 0
}

// Process is a program that runs in a machine.
type Process struct {
	PID, PPID int
	// Group and Session are the process group and the session, by their leader's number.
	Group, Session int
	Cred           vfs.Cred
	Argv           []string
	Env            []string // as it was started with
	Started        time.Time
	Context        context.Context // ends when the process is killed

	machine *Machine
	kill    context.CancelCauseFunc
	gone    sync.Once
	mu      sync.Mutex
	ignored map[int]bool // signals; children inherit them
}

// Spawn is what a new process is made of.
type Spawn struct {
	PPID int
	Cred vfs.Cred
	Argv []string
	Env  []string
	// NewSession has the process lead a session and a group of its own, as after setsid(2).
	NewSession bool
	// Replaces has it take the place and the number of its parent, as execve(2) does.
	Replaces bool
}

// Spawn enters a process into the table. A signal that ends the parent ends it too, unless it ignores that signal, and
// so does the machine's end. The caller calls Exit when the program is done.
func (m *Machine) Spawn(ctx context.Context, s Spawn) *Process {
	own, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &Process{PPID: s.PPID, Cred: s.Cred, Argv: slices.Clone(s.Argv), Env: slices.Clone(s.Env), Started: m.Clock.Now(), Context: own, machine: m, kill: kill,
		ignored: map[int]bool{}}
	m.mu.Lock()
	parent := m.processes[s.PPID]
	replaces := s.Replaces && parent != nil
	if replaces {
		p.PID, p.PPID = parent.PID, parent.PPID
	} else {
		p.PID = m.nextPID
		m.nextPID++
	}
	p.Cred.PID = p.PID
	p.Group, p.Session = p.PID, p.PID
	if parent != nil {
		p.ignored = parent.ignoredSignals()
		if !s.NewSession && parent.PID > 1 {
			p.Group, p.Session = parent.Group, parent.Session
		}
	}
	context.AfterFunc(ctx, func() {
		if !p.Ignores(KilledBy(ctx)) {
			kill(context.Cause(ctx))
		}
	})
	context.AfterFunc(m.Down, func() { kill(context.Cause(m.Down)) })
	m.processes[p.PID] = p
	if p.PID > 1 {
		m.running.Add(1)
	}
	watch := m.watch
	m.mu.Unlock()
	if watch != nil && replaces {
		watch(parent, false)
	}
	if watch != nil {
		watch(p, true)
	}
	return p
}

// Exit takes the process out of the table. Its context stays as it is: what it left in the background goes on.
func (p *Process) Exit() {
	p.gone.Do(func() {
		p.machine.mu.Lock()
		inTable := p.machine.processes[p.PID] == p // not so where exec has replaced it
		if inTable {
			delete(p.machine.processes, p.PID)
		}
		watch := p.machine.watch
		p.machine.mu.Unlock()
		if watch != nil && inTable {
			watch(p, false)
		}
		if p.PID > 1 {
			p.machine.running.Done()
		}
	})
}

// Kill ends the process by a signal, with what it started in the foreground.
func (p *Process) Kill(signal int) { p.kill(Killed(signal)) }

// Ignore sets what a signal does to the process and to those that it starts from now on: nothing, or what it does by
// default. KILL can't be ignored.
func (p *Process) Ignore(signal int, ignore bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ignored[signal] = ignore && signal != SIGKILL
}

// Ignores says whether a signal does nothing to the process.
func (p *Process) Ignores(signal int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ignored[signal]
}

func (p *Process) ignoredSignals() map[int]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.ignored)
}

// Process finds a process by number.
func (m *Machine) Process(pid int) (*Process, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.processes[pid]
	return p, ok
}

// Processes lists the table by number.
func (m *Machine) Processes() []*Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*Process, 0, len(m.processes))
	for _, pid := range slices.Sorted(maps.Keys(m.processes)) {
		all = append(all, m.processes[pid])
	}
	return all
}

// Signal does kill(2): 0 only asks whether the process is there. Signals that programs ignore or handle harmlessly
// by default (USR1 and the like end them, as on Linux) are not told apart.
func (m *Machine) Signal(c vfs.Cred, pid, signal int) error {
	p, ok := m.Process(pid)
	if !ok {
		return syscall.ESRCH
	}
	if c.UID != 0 && c.UID != p.Cred.UID {
		return syscall.EPERM
	}
	if signal == 0 || pid == 1 || p.Ignores(signal) {
		return nil
	}
	p.Kill(signal)
	return nil
}

// SignalGroup signals every process of a group that the caller may signal.
func (m *Machine) SignalGroup(c vfs.Cred, group, signal int) error {
	err := error(syscall.ESRCH)
	for _, p := range m.Processes() {
		if p.Group != group {
			continue
		}
		// One that may be signalled is enough for a success.
		if one := m.Signal(c, p.PID, signal); one == nil || errors.Is(err, syscall.ESRCH) {
			err = one
		}
	}
	return err
}

// User is a line of /etc/passwd.
type User struct {
	Name        string
	UID, GID    int
	Home, Shell string
}

// Users reads /etc/passwd.
func (m *Machine) Users() []User {
	b, err := m.FS.ReadFile(vfs.Root, "/etc/passwd")
	if err != nil {
		return nil
	}
	var all []User
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 7 {
			continue
		}
		u := User{Name: f[0], Home: f[5], Shell: f[6]}
		if _, err := fmt.Sscan(f[2]+" "+f[3], &u.UID, &u.GID); err == nil {
			all = append(all, u)
		}
	}
	return all
}

// User finds a user by name.
func (m *Machine) User(name string) (User, bool) {
	all := m.Users()
	i := slices.IndexFunc(all, func(u User) bool { return u.Name == name })
	if i < 0 {
		return User{}, false
	}
	return all[i], true
}

// Groups reads /etc/group: names and numbers, with the members that are listed there.
func (m *Machine) Groups() (ids map[string]int, members map[string][]string) {
	ids, members = map[string]int{}, map[string][]string{}
	b, err := m.FS.ReadFile(vfs.Root, "/etc/group")
	if err != nil {
		return ids, members
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 4 {
			continue
		}
		var id int
		if _, err := fmt.Sscan(f[2], &id); err == nil {
			ids[f[0]] = id
			members[f[0]] = strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' })
		}
	}
	return ids, members
}

// Cred is the identity that a user logs in with.
func (m *Machine) Cred(u User) vfs.Cred {
	c := vfs.Cred{UID: u.UID, GID: u.GID}
	ids, members := m.Groups()
	for name, id := range ids {
		if slices.Contains(members[name], u.Name) {
			c.Groups = append(c.Groups, id)
		}
	}
	slices.Sort(c.Groups)
	return c
}

// UserName and GroupName give names for numbers; the number where there is none.
func (m *Machine) UserName(uid int) string {
	for _, u := range m.Users() {
		if u.UID == uid {
			return u.Name
		}
	}
	return fmt.Sprint(uid)
}

// GroupName is a group's name.
func (m *Machine) GroupName(gid int) string {
	ids, _ := m.Groups()
	for name, id := range ids {
		if id == gid {
			return name
		}
	}
	return fmt.Sprint(gid)
}

// Message is an error as C programs print it: the reason alone, with a capital.
func Message(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	s := err.Error()
	if errors.Is(err, syscall.ESRCH) {
		s = "no such process"
	}
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
