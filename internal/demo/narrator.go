package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// narrator tells what happens and how long it took.
type narrator struct {
	out   io.Writer
	steps []timing
}

type timing struct {
	title string
	took  time.Duration
}

// step announces, does, and says how long it took. What do returns is told line by line.
func (n *narrator) step(title string, do func() ([]string, error)) error {
	number := len(n.steps) + 1
	fmt.Fprintf(n.out, "\n%d. %s\n", number, title)
	began := time.Now()
	told, err := do()
	took := time.Since(began)
	for _, line := range told {
		fmt.Fprintf(n.out, "   %s\n", line)
	}
	if err != nil {
		return fmt.Errorf("step %d, %s: %w", number, lowerFirst(title), err)
	}
	n.steps = append(n.steps, timing{title, took})
	fmt.Fprintf(n.out, "   (%s)\n", seconds(took))
	return nil
}

// summary lists the steps with their times.
func (n *narrator) summary() {
	var total time.Duration
	fmt.Fprintf(n.out, "\nHow long each part took\n")
	for _, s := range n.steps {
		total += s.took
		fmt.Fprintf(n.out, "   %-58s %8s\n", s.title, seconds(s.took))
	}
	fmt.Fprintf(n.out, "   %-58s %8s\n", "in all", seconds(total))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
