package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrNoTraces says that there are no recordings to replay.
var ErrNoTraces = errors.New("no recordings: set SANDBOX_TRACES to a folder with *.jsonl files")

// Exchange is one line of a recording: a call, or the final status of a task that an earlier call started.
type Exchange struct {
	Flow    string            `json:"flow"`
	N       int               `json:"n"`
	Step    string            `json:"step"`
	Auth    string            `json:"auth"`
	Kind    string            `json:"kind"` // "task", "note" or empty for a call
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Form    map[string]any    `json:"form"`
	RawBody string            `json:"raw_body"`
	Headers map[string]string `json:"headers"`
	Status  int               `json:"status"`
	Reason  string            `json:"reason"`
	Body    any               `json:"body"`
	Millis  float64           `json:"ms"`

	UPID       string         `json:"upid"`
	TaskStatus map[string]any `json:"task_status"`
	TaskMillis float64        `json:"task_ms"`
	Log        []string       `json:"log"`

	Noted bool `json:"-"` // something was done on the node before it
}

var parallel = regexp.MustCompile(`^(.*) \(parallel (\d+)/(\d+)\)$`)

// group is the name under which calls were made at the same time; empty for a call of its own.
func (e *Exchange) group() string {
	if m := parallel.FindStringSubmatch(e.Step); m != nil {
		return m[1]
	}
	return ""
}

// startedUPID is the task that a recorded answer names.
func (e *Exchange) startedUPID() string {
	if body, ok := e.Body.(map[string]any); ok {
		if upid, ok := body["data"].(string); ok && strings.HasPrefix(upid, "UPID:") {
			return upid
		}
	}
	return ""
}

// tracesDir finds the folder with the recordings.
func tracesDir() (string, error) {
	if dir := os.Getenv("SANDBOX_TRACES"); dir != "" {
		return dir, nil
	}
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			dir := filepath.Join(filepath.Dir(at), "shared", "pve", "traces")
			if _, err := os.Stat(dir); err != nil {
				return "", ErrNoTraces
			}
			return dir, nil
		}
		parent := filepath.Dir(at)
		if parent == at {
			return "", ErrNoTraces
		}
		at = parent
	}
}

// load reads a flow's recording; ErrNoTraces if there is none.
func load(flow string) ([]*Exchange, error) {
	dir, err := tracesDir()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, flow+".jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("flow %q: %w", flow, ErrNoTraces)
	}
	if err != nil {
		return nil, err
	}
	var out []*Exchange
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 16<<20)
	noted := false
	for lines.Scan() {
		e := &Exchange{}
		if err := json.Unmarshal(lines.Bytes(), e); err != nil {
			return nil, fmt.Errorf("flow %q, line %d: %w", flow, len(out)+1, err)
		}
		switch {
		case e.Kind == "note":
			noted = true
		case e.Method != "" || e.Kind == "task":
			e.Noted, noted = noted, false
			out = append(out, e)
		}
	}
	return out, lines.Err()
}
