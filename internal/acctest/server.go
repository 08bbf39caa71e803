package acctest

import (
	"context"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// askPatience bounds a look at the server that a test needs before it begins.
const askPatience = 30 * time.Second

// DiskGiB is a root disk that is larger than the template's by so many GiB, for tests that give a size: a real
// template has one of its own, and no clone can be smaller.
func (env *Environment) DiskGiB(t testing.TB, more int) int {
	t.Helper()
	var bytes int64
	env.ask(t, func(ctx context.Context, client *pve.Client) error {
		template, err := client.LXCConfig(ctx, env.Node(), env.TemplateID)
		if err == nil {
			bytes, _ = template.RootFS().SizeBytes()
		}
		return err
	})
	const gib = 1 << 30
	return int((bytes+gib-1)/gib) + more
}

// NeedsPrivilege skips the test where the tests' identity lacks a privilege on a path. CONTRIBUTING.md's role leaves
// out what changes the whole cluster.
func NeedsPrivilege(t testing.TB, env *Environment, path string, privileges ...string) {
	t.Helper()
	if env.Lab != nil {
		return // its identity has all
	}
	env.ask(t, func(ctx context.Context, client *pve.Client) error {
		has, err := client.Permissions(ctx, path)
		if err != nil {
			return err
		}
		if missing := has.Missing(path, privileges...); len(missing) > 0 {
			t.Skipf("needs %v on %s, which the identity of the tests lacks", missing, path)
		}
		return nil
	})
}

func (env *Environment) ask(t testing.TB, question func(context.Context, *pve.Client) error) {
	t.Helper()
	client, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), askPatience)
	defer cancel()
	if err := question(ctx, client); err != nil {
		t.Fatal(err)
	}
}
