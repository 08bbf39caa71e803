package run

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// answer is what the script printed.
type answer struct {
	fields map[string]string
	steps  []string
	body   []byte
}

func call(ctx context.Context, g Guest, limit int64, code string, args ...string) (answer, error) {
	result, err := g.Exec(ctx, guest.Command{Script: code, Args: args, Dir: "/", StdoutLimit: int(limit), StderrLimit: 4 << 10})
	if err != nil {
		return answer{}, err
	}
	if result.ExitCode == 127 {
		return answer{}, ErrAbsent
	}
	a := parse(result.Stdout)
	if kind := a.fields["error"]; kind != "" {
		return a, &Error{Kind: Kind(kind), Message: a.fields["message"]}
	}
	if result.ExitCode != 0 {
		return a, fmt.Errorf("the supervisor in the guest ended with exit code %d: %s", result.ExitCode, strings.TrimSpace(strings.ToValidUTF8(string(result.Stderr), "\uFFFD")))
	}
	return a, nil
}

func parse(text []byte) answer {
	a := answer{fields: map[string]string{}}
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		text = rest
		if len(line) == 0 && whole {
			break
		}
		name, value, _ := strings.Cut(string(line), "=")
		if name == "step" {
			a.steps = append(a.steps, value)
		} else {
			a.fields[name] = value
		}
	}
	a.body = text
	return a
}

func (a answer) number(name string) int64 {
	n, _ := strconv.ParseInt(a.fields[name], 10, 64) // an empty field is 0
	return n
}

// time reads seconds since 1970; the zero time where there is nothing.
func (a answer) time(name string) time.Time {
	if n := a.number(name); n > 0 {
		return time.Unix(n, 0).UTC()
	}
	return time.Time{}
}
