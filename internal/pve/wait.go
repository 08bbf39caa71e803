package pve

import (
	"context"
)

// Wait waits for a task to end.
func (c *Client) Wait(ctx context.Context, upid UPID, warn WarnFunc) (TaskResult, error) {
	panic("not yet")
}

func (c *Client) logLines(ctx context.Context, path string, p params) ([]string, int, error) {
	panic("not yet")
}

// ConvertToTemplate makes a stopped container a template.
func (c *Client) ConvertToTemplate(ctx context.Context, node string, vmid int) error {
	panic("not yet")
}
