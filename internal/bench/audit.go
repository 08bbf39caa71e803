package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
)

// Bounds of the audit of a root filesystem of 300 MB.
const (
	auditBytes      = 300 << 20
	maxAuditSeconds = 5.0
	maxAuditMemory  = 200 // MiB
)

// measureAudit audits a folder of 300 MB as a distribution fills it: many small files, some large, a tenth of it text where
// secrets are looked for.
func measureAudit(ctx context.Context, log io.Writer, report func(Metric)) (err error) {
	dir, err := os.MkdirTemp("", "sandbox-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files, err := fillRoot(dir)
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	stop := watchMemory()
	began := time.Now()
	r, err := audit.Run(ctx, audit.Target{Folder: dir}, audit.Options{})
	took := time.Since(began)
	peak := stop()
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "audit of %d files, %d MiB: %v, %d MiB more than before\n", files, auditBytes>>20, took.Round(time.Millisecond), peak>>20)
	for _, f := range r.Findings {
		if f.ID == "G13.2" && f.Status != audit.Failed {
			return fmt.Errorf("the secret in the folder was not found: %s, %v", f.Status, f.Evidence)
		}
	}
	report(Metric{Name: "audit_300mb_seconds", Value: fmt.Sprintf("%.2f", took.Seconds()), Bound: fmt.Sprintf("<=%.0f", maxAuditSeconds), OK: took.Seconds() <= maxAuditSeconds})
	report(atMost("audit_300mb_mib", int(peak>>20), maxAuditMemory))
	return nil
}

// fillRoot makes the files; the last has a secret in it.
func fillRoot(dir string) (files int, err error) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same folder every time
	write := func(name string, content []byte) error {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return err
		}
		files++
		return os.WriteFile(name, content, 0o600)
	}
	binary := make([]byte, 1<<20)
	for i := range binary {
		binary[i] = byte(random.Uint32())
	}
	text := []byte(strings.Repeat("The quick brown fox = jumps over: the lazy dog; token and key and https://example.org/path\n", 12000))
	if err := write("etc/passwd", []byte("root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n")); err != nil {
		return 0, err
	}
	for total := 0; total < auditBytes; {
		size := 1 << (9 + random.IntN(11)) // 512 bytes to 512 KiB
		name, content := fmt.Sprintf("usr/lib/p%03d/f%d", random.IntN(400), files), binary[:size]
		if random.IntN(10) == 0 {
			name, content = fmt.Sprintf("home/agent/project/d%02d/f%d.txt", random.IntN(40), files), text[:size]
		}
		if err := write(name, content); err != nil {
			return 0, err
		}
		total += size
	}
	for i := range 12000 {
		if err := write(fmt.Sprintf("usr/share/d%03d/f%d", i%300, i), text[:200]); err != nil {
			return 0, err
		}
	}
	return files, write("home/agent/notes", []byte("key: gh"+"p_"+strings.Repeat("aB3", 12)+"\n"))
}

// watchMemory samples what the program has from the system, until stop returns by how much that rose at most.
func watchMemory() (stop func() uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	held := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64() - sample[1].Value.Uint64()
	}
	base, peak := held(), uint64(0)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, held())
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		runtime.KeepAlive(sample)
		return peak - min(base, peak)
	}
}
