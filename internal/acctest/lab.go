package acctest

import "testing"

// Lab is the lab that a test has to itself.
type Lab struct{}

// Option shapes the lab of one test.
type Option func(*options)

type options struct{ nodes int }

// Nodes gives the lab as many nodes; one without it.
func Nodes(n int) Option { return func(o *options) { o.nodes = n } }

func startLab(t testing.TB, _ []Option) *Environment {
	t.Helper()
	t.Fatal("internal/lab is being built")
	return nil
}

func sweep(testing.TB, *Environment) {}
