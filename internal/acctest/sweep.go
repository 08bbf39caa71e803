package acctest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// sweepPatience bounds how long the cleanup of one test may take.
const sweepPatience = 2 * time.Minute

// sweep destroys what a test left behind with its owner, whatever state knew of it. A test that passed and left something
// fails: a user's destroy would have left it too.
func sweep(t testing.TB, env *Environment) {
	t.Helper()
	// The test's own context has ended by now.
	ctx, cancel := context.WithTimeout(context.Background(), sweepPatience)
	defer cancel()
	if env.Lab != nil {
		if err := env.Lab.Control.Reset(ctx); err != nil { // faults and absent nodes would hide what is left
			t.Errorf("calming the lab: %v", err)
			return
		}
	}
	client, err := pve.New(env.Connection())
	if err != nil {
		t.Errorf("sweep: %v", err)
		return
	}
	defer client.Close()
	sweepBackups(ctx, t, client, env)
	left, err := leftovers(ctx, client, env)
	if err != nil {
		t.Errorf("looking for what %s left: %v", env.Owner, err)
		return
	}
	for _, g := range left {
		if !t.Failed() {
			t.Errorf("the test left container %d (%s) behind", g.vmid, g.hostname)
		}
		if err := destroy(ctx, client, env, g); err != nil {
			t.Errorf("container %d of %s stays: %v", g.vmid, env.Owner, err)
		}
	}
	sweepPools(ctx, t, client, env)
}

// leftover is a guest that carries the mark of the test's owner and its own id.
type leftover struct {
	node     string
	vmid     int
	hostname string
}

// leftovers reads the mark of every container in the test's range on every node, from its configuration and not from a
// list, which may be old.
func leftovers(ctx context.Context, client *pve.Client, env *Environment) ([]leftover, error) {
	var left []leftover
	for _, node := range env.Nodes {
		guests, err := client.LXCList(ctx, node)
		if err != nil {
			return nil, err
		}
		for _, g := range guests {
			if g.VMID < env.VMIDs.First || g.VMID > env.VMIDs.Last {
				continue
			}
			mine, err := marked(ctx, client, env.Owner, node, g.VMID)
			if err != nil {
				return nil, err
			}
			if mine {
				left = append(left, leftover{node: node, vmid: g.VMID, hostname: g.Name})
			}
		}
	}
	return left, nil
}

// marked reads the mark back. A guest that is gone meanwhile is not marked.
func marked(ctx context.Context, client *pve.Client, owner, node string, vmid int) (bool, error) {
	config, err := client.LXCConfig(ctx, node, vmid)
	if pve.Means(err, pve.NoSuchGuest) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, marker := sandbox.SplitDescription(config.Description())
	return marker != nil && marker.Owner == owner && marker.VMID == vmid, nil
}

// destroy removes a leftover, after its mark was read once more, and waits for locks of what may still be under way.
func destroy(ctx context.Context, client *pve.Client, env *Environment, g leftover) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		mine, err := marked(ctx, client, env.Owner, g.node, g.vmid)
		if err != nil || !mine {
			return err
		}
		err = unprotectAndDelete(ctx, client, g)
		if err == nil || !pve.Means(err, pve.Locked, pve.LockTimeout, pve.NoSuchGuest) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w; the last answer was: %s", ctx.Err(), strings.TrimSpace(err.Error()))
		}
	}
}

func unprotectAndDelete(ctx context.Context, client *pve.Client, g leftover) error {
	config, err := client.LXCConfig(ctx, g.node, g.vmid)
	if err != nil {
		return err
	}
	if config.Protection() {
		if err := client.UpdateLXC(ctx, g.node, g.vmid, pve.LXCUpdate{Delete: []string{"protection"}}); err != nil {
			return err
		}
	}
	upid, err := client.DeleteLXC(ctx, g.node, g.vmid, pve.DeleteOptions{Force: true, Purge: true})
	if err != nil {
		return err
	}
	_, err = client.Wait(ctx, upid, func(string) {}) // warnings don't matter to what is thrown away
	return err
}
