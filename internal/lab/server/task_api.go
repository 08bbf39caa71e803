package server

import (
	"slices"
	"strconv"
	"strings"
)

// routesTasks lists the task endpoints of a node.
func (s *Server) routesTasks() {
	s.route("GET", "/nodes/{node}/tasks", s.taskList)
	s.route("GET", "/nodes/{node}/tasks/{upid}", func(*call) (any, error) {
		return []map[string]any{{"name": "log"}, {"name": "status"}}, nil
	})
	s.route("GET", "/nodes/{node}/tasks/{upid}/status", s.taskStatus)
	s.route("GET", "/nodes/{node}/tasks/{upid}/log", s.taskLog)
	s.route("DELETE", "/nodes/{node}/tasks/{upid}", s.taskStop)
}

// who splits a task's owner as answers do: the user, and the token beside it.
func (t *task) who(view map[string]any) {
	name, tokenID := splitAuthID(t.User)
	view["user"] = name
	if tokenID != "" {
		view["tokenid"] = tokenID
	}
}

// ownTask says whether the caller started the task: with the same token, or as the user whose token it was.
func (c *call) ownTask(t *task) bool {
	name, _ := splitAuthID(t.User)
	return c.authID == t.User || c.authID == name
}

// taskOf finds the task of the path on the node of the path, and checks that the caller may see or stop it.
func (s *Server) taskOf(c *call, privilege string) (*task, error) {
	name := c.params.str("upid")
	if _, err := parseUPID(name); err != nil {
		return nil, err
	}
	t := s.findTask(name)
	if t == nil || t.Node != c.node.Name {
		return nil, paramError("upid", "no such task")
	}
	if !c.ownTask(t) {
		if err := c.check("/nodes/"+c.node.Name, privilege); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (s *Server) taskStatus(c *call) (any, error) {
	t, err := s.taskOf(c, "Sys.Audit")
	if err != nil {
		return nil, err
	}
	view := map[string]any{
		"upid": t.UPID, "node": t.Node, "pid": t.PID, "pstart": t.PStart, "starttime": t.Start, "type": t.Type, "id": t.ID,
		"status": "running",
	}
	t.who(view)
	if t.End != 0 {
		view["status"], view["exitstatus"] = "stopped", t.Exit
	}
	return view, nil
}

func (s *Server) taskLog(c *call) (any, error) {
	t, err := s.taskOf(c, "Sys.Audit")
	if err != nil {
		return nil, err
	}
	lines := t.Lines
	if len(lines) == 0 {
		lines = []string{"no content"}
	}
	limit := 50
	if c.params.has("limit") {
		limit = c.params.num("limit")
	}
	out := []map[string]any{}
	for i := c.params.num("start"); i < len(lines) && (len(out) < limit || limit == 0); i++ {
		out = append(out, map[string]any{"n": i + 1, "t": lines[i]})
	}
	return listing{data: out, total: len(lines)}, nil
}

// taskStop ends a running task. It takes as long as the server waits for the worker.
func (s *Server) taskStop(c *call) (any, error) {
	t, err := s.taskOf(c, "Sys.Modify")
	if err != nil {
		return nil, err
	}
	if !t.running {
		return nil, nil
	}
	t.cancel()
	s.waitUntil(c.ctx, s.delays().TaskStop, func() bool { return !t.running })
	return nil, nil
}

// taskList lists a node's tasks, newest first: finished ones, unless source says otherwise.
func (s *Server) taskList(c *call) (any, error) {
	source := c.params.str("source")
	if source == "" {
		source = "archive"
	}
	auditor := c.may("/nodes/"+c.node.Name, "Sys.Audit")
	limit, start := 50, c.params.num("start")
	if c.params.has("limit") {
		limit = c.params.num("limit")
	}
	out, total := []map[string]any{}, 0
	for _, t := range s.newestTasks(c.node.Name) {
		if (source == "archive" && t.End == 0) || (source == "active" && t.End != 0) {
			continue
		}
		if !auditor && !c.ownTask(t) {
			continue
		}
		if !t.wanted(c.params) {
			continue
		}
		total++
		if total > start && (limit == 0 || len(out) < limit) {
			out = append(out, t.listView())
		}
	}
	return listing{data: out, total: total}, nil
}

// newestTasks are a node's tasks: running ones first, then by their end.
func (s *Server) newestTasks(node string) []*task {
	var out []*task
	for i := len(s.st.Tasks) - 1; i >= 0; i-- {
		if s.st.Tasks[i].Node == node {
			out = append(out, s.st.Tasks[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *task) int {
		switch {
		case a.End == b.End:
			return 0
		case a.End == 0 || (b.End != 0 && a.End > b.End):
			return -1
		}
		return 1
	})
	return out
}

// wanted applies the filters of a task list.
func (t *task) wanted(p params) bool {
	failed := t.End != 0 && t.Exit != "OK"
	since, _ := strconv.ParseInt(p.str("since"), 10, 64)
	until, _ := strconv.ParseInt(p.str("until"), 10, 64)
	switch {
	case p.flag("errors") && !failed:
		return false
	case p.has("vmid") && t.ID != p.str("vmid"):
		return false
	case p.has("typefilter") && t.Type != p.str("typefilter"):
		return false
	case p.has("userfilter") && !strings.Contains(t.User, p.str("userfilter")):
		return false
	case since != 0 && t.Start < since:
		return false
	case until != 0 && t.Start > until:
		return false
	case p.has("statusfilter"):
		return slices.Contains(p.list("statusfilter"), t.statusClass())
	}
	return true
}

func (t *task) statusClass() string {
	switch {
	case t.Exit == "OK":
		return "ok"
	case strings.HasPrefix(t.Exit, "WARNINGS:"):
		return "warning"
	case t.Exit == "unexpected status":
		return "unknown"
	}
	return "error"
}

// listView is a task in a node's list. A running one looks different there.
func (t *task) listView() map[string]any {
	view := map[string]any{
		"upid": t.UPID, "node": t.Node, "pid": t.PID, "pstart": t.PStart, "starttime": t.Start, "type": t.Type, "id": t.ID,
	}
	if t.End == 0 {
		view["user"], view["status"], view["saved"] = t.User, "RUNNING", "0"
		return view
	}
	t.who(view)
	view["endtime"], view["status"] = t.End, t.Exit
	return view
}

// clusterTasks lists the recent tasks of all nodes.
func (s *Server) clusterTasks(c *call) (any, error) {
	out := []map[string]any{}
	for i := len(s.st.Nodes) - 1; i >= 0; i-- {
		n := s.st.Nodes[i]
		auditor := c.may("/nodes/"+n.Name, "Sys.Audit")
		shown := 0
		for _, t := range s.newestTasks(n.Name) {
			if (!auditor && !c.ownTask(t)) || shown == 25 {
				continue
			}
			view := map[string]any{"upid": t.UPID, "node": t.Node, "starttime": t.Start, "type": t.Type, "id": t.ID}
			t.who(view)
			if t.End != 0 {
				view["endtime"], view["status"], view["saved"] = t.End, t.Exit, "1"
			} else {
				view["pid"], view["pstart"] = t.PID, t.PStart
			}
			out = append(out, view)
			shown++
		}
	}
	return out, nil
}
