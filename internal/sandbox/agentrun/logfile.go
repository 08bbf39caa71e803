package agentrun

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest/run"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
)

// logFile is a local file that a run's output is appended to while it comes.
// Without a file it only says what of the output a poll is to fetch.
type logFile struct {
	file   *os.File
	known  *redact.Writer // takes out the known values
	shapes *lineWriter    // and, line by line, what looks like a secret

	offset, most int64
}

func openLog(name string, spec *Spec, r *Run) (*logFile, error) {
	if name == "" {
		return &logFile{offset: -glance, most: glance}, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log_file: %w", err)
	}
	how := "started"
	if r.Adopted {
		how = "found again"
	}
	_, err = fmt.Fprintf(f, "== run %s of container %d, %s\n", r.ID, r.Ref.VMID, how)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("log_file: %w", err)
	}
	redactor := spec.redactor()
	shapes := &lineWriter{to: f, redact: redactor}
	return &logFile{file: f, shapes: shapes, known: redactor.Writer(shapes), most: portion}, nil
}

// wants is the part of the output that the next poll is to bring.
func (l *logFile) wants() (offset, most int64) { return l.offset, l.most }

// take writes what a poll brought.
func (l *logFile) take(s run.State) error {
	if l.file == nil {
		return nil
	}
	var err error
	if s.From > l.offset {
		_, err = fmt.Fprintf(l.known, "\n== %d bytes are gone\n", s.From-l.offset)
	}
	if err == nil {
		_, err = l.known.Write(s.Output)
	}
	if err != nil {
		return fmt.Errorf("log_file: %w", err)
	}
	l.offset = s.From + int64(len(s.Output))
	return nil
}

// behind says that there is more to be fetched at once.
func (l *logFile) behind(s run.State) bool { return l.file != nil && l.offset < s.Total }

// complete says that everything there is was fetched.
func (l *logFile) complete(s run.State) bool { return !l.behind(s) }

func (l *logFile) close() {
	if l.file == nil {
		return
	}
	_ = l.known.Close() // what it can't write any more, take has told already
	_ = l.shapes.flush()
	_ = l.file.Close()
}

// lineWriter redacts whole lines by what looks like a secret.
type lineWriter struct {
	to     io.Writer
	redact *redact.Redactor
	held   []byte
}

// longestLine is passed on without its end.
const longestLine = 64 << 10

func (w *lineWriter) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	whole := bytes.LastIndexByte(w.held, '\n') + 1
	if whole == 0 && len(w.held) > longestLine {
		whole = len(w.held)
	}
	if whole == 0 {
		return len(p), nil
	}
	_, err := io.WriteString(w.to, w.redact.Text(string(w.held[:whole])))
	w.held = append(w.held[:0], w.held[whole:]...)
	return len(p), err
}

func (w *lineWriter) flush() error {
	_, err := io.WriteString(w.to, w.redact.Text(string(w.held)))
	w.held = nil
	return err
}
