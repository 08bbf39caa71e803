package pve

import (
	"context"
	"fmt"
)

// ConvertToTemplate makes a stopped container a template and returns when it is
// one. The server answers at once, names no task, and works on: the
// configuration says when it is done, and the node's list of tasks why it isn't.
func (c *Client) ConvertToTemplate(ctx context.Context, node string, vmid int) error {
	before, err := c.templateTasks(ctx, node, vmid)
	if err != nil {
		return err
	}
	if err := c.post(ctx, lxcPath(node, vmid)+"/template", nil); err != nil {
		return err
	}
	defer c.writes.Add(1)
	begin := c.cfg.Clock.Now()
	for {
		cfg, err := c.LXCConfig(ctx, node, vmid)
		if err != nil {
			return err
		}
		if cfg.Template() && cfg.Lock() == "" {
			return nil
		}
		now, err := c.templateTasks(ctx, node, vmid)
		if err != nil {
			return err
		}
		for upid, task := range now {
			if _, old := before[upid]; !old && task.EndTime != 0 && !succeeded(task.Status) {
				_, err := c.taskEnd(ctx, upid, task.Status, 0, func(string) {})
				return err
			}
		}
		pause := min(max(shortestPoll, c.cfg.Clock.Now().Sub(begin)/10), longestPoll)
		if err := c.cfg.Clock.Sleep(ctx, pause); err != nil {
			return fmt.Errorf("pve: container %d on node %s is still being made a template: %w", vmid, node, err)
		}
	}
}

func (c *Client) templateTasks(ctx context.Context, node string, vmid int) (map[UPID]TaskEntry, error) {
	list, err := c.Tasks(ctx, node, TaskFilter{VMID: vmid, Type: "vztemplate", All: true})
	if err != nil {
		return nil, err
	}
	out := make(map[UPID]TaskEntry, len(list))
	for _, task := range list {
		out[task.UPID] = task
	}
	return out, nil
}
