package pve

import (
	"context"
	"time"
)

// StartLXC starts a container. One that runs already is an error at once
// (AlreadyRunning); one that is missing, locked or a template makes the task
// fail, not the call.
func (c *Client) StartLXC(ctx context.Context, node string, vmid int) (UPID, error) {
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/status/start", nil)
}

// StopLXC stops a container at once. A stopped one, and one that is on another
// node, is an error that means NotRunning.
func (c *Client) StopLXC(ctx context.Context, node string, vmid int) (UPID, error) {
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/status/stop", nil)
}

// StopLXCOverShutdown stops a container whose shutdown task is still under way,
// and aborts that task.
func (c *Client) StopLXCOverShutdown(ctx context.Context, node string, vmid int) (UPID, error) {
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/status/stop", params{"overrule-shutdown": "1"})
}

// ShutdownOptions are the parameters of an orderly shutdown.
type ShutdownOptions struct {
	// Timeout is how long the guest may take; nil is the server's 60 s. Rounded
	// up to seconds.
	Timeout *time.Duration
	// ForceStop stops it hard when the time is over; else the task fails then.
	ForceStop bool
}

// ShutdownLXC asks a container to shut down.
func (c *Client) ShutdownLXC(ctx context.Context, node string, vmid int, o ShutdownOptions) (UPID, error) {
	p := params{}
	if o.Timeout != nil {
		p.setInt("timeout", wholeSeconds(*o.Timeout))
	}
	p.setFlag("forceStop", o.ForceStop)
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/status/shutdown", p)
}

// RebootLXC shuts a container down and starts it again, which applies its
// pending configuration. timeout bounds the shutdown; nil is the server's
// default. Its task may end before the guest's network is up.
func (c *Client) RebootLXC(ctx context.Context, node string, vmid int, timeout *time.Duration) (UPID, error) {
	p := params{}
	if timeout != nil {
		p.setInt("timeout", wholeSeconds(*timeout))
	}
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/status/reboot", p)
}
