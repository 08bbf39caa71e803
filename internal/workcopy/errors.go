package workcopy

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of failure that a caller decides by. Use errors.Is.
var (
	// ErrRefused says that what a guest or a folder offers isn't taken: a path that leads outside, a link, a device, a
	// size over its limit.
	ErrRefused = errors.New("it is refused")
	// ErrOccupied says that the working folder holds something that no run put there.
	ErrOccupied = errors.New("the working folder isn't empty")
	// ErrNotClean says that changes can't be applied, because the folder isn't what was sent.
	ErrNotClean = errors.New("the folder isn't as it was sent")
	// ErrGit says that git failed.
	ErrGit = errors.New("git failed")
)

// MissingTool says that a program isn't there.
type MissingTool struct {
	Tool string
	// Here says that it is missing on the machine that applies, not in the guest.
	Here bool
	For  string // what it is needed for
}

func (e *MissingTool) Error() string {
	where, remedy := "the guest", "install it in the template"
	if e.Here {
		where, remedy = "this machine", "install it, or leave out what needs it"
	}
	return fmt.Sprintf("%s has no program %q, which is needed to %s: %s", where, e.Tool, e.For, remedy)
}

// refused makes an error of the kind ErrRefused.
func refused(format string, a ...any) error {
	return fmt.Errorf(format+": %w", append(a, ErrRefused)...)
}

// lastLines is the end of what a program said, fit for a message.
func lastLines(text []byte) string {
	const most = 12
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD")), "\n")
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return strings.Join(lines, "\n")
}
