package acctest

import (
	"context"
	"os"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/target"
)

// Lab is the lab that a test has to itself, and its control API: faults, time, counted requests.
type Lab struct {
	*lab.Lab
	Control *control.Client
}

// Option shapes the lab of one test.
type Option func(*lab.Options)

// Nodes gives the lab as many nodes; one without it.
func Nodes(n int) Option { return func(o *lab.Options) { o.Nodes = n } }

// Delays gives the lab other times than the short ones, lab.Real() for those of a real server.
func Delays(d lab.Delays) Option { return func(o *lab.Options) { o.Delays = d } }

// SharedHostKeys makes clones keep their template's SSH host keys, as careless templates do.
func SharedHostKeys() Option { return func(o *lab.Options) { o.SharedHostKeys = true } }

// engineVariable names the engine of the tests' labs, "sim" if it is empty.
const engineVariable = "SANDBOX_LAB_ENGINE"

// NeedsSimulation skips the test where guests are real. The reason says what only simulated ones can do, "boots in no time".
func NeedsSimulation(t testing.TB, reason string) {
	t.Helper()
	if name := os.Getenv(engineVariable); onRealServer() || (name != "" && name != lab.EngineSim) {
		t.Skipf("needs simulated guests: %s", reason)
	}
}

func startLab(t testing.TB, shape []Option) *Environment {
	t.Helper()
	o := lab.Options{EngineName: os.Getenv(engineVariable)}
	for _, option := range shape {
		option(&o)
	}
	// The lab must outlast the test's context: what is left is looked for after that has ended.
	l, err := lab.Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatalf("starting a lab: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing the lab: %v", err)
		}
	})
	described, err := target.FromLab(l, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Environment{Target: described, Lab: &Lab{Lab: l, Control: l.Control()}}
}
