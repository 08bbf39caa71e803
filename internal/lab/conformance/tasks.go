package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
)

var cloneLine = regexp.MustCompile(`creating a clone of container (\d+) with ID (\d+)`)

// task waits for the task that a recorded one corresponds to, and compares final status and log. A task whose call wasn't
// recorded (a flow's set-up and clean-up) is started first.
func (r *replay) task(e *Exchange) {
	result := Result{Flow: e.Flow, N: e.N, Step: e.Step, What: "task " + taskType(e.UPID)}
	c := &comparison{learned: r.learned}
	if !r.started[e.UPID] {
		if err := r.startUnrecorded(e); err != nil {
			c.differ("start", "%v", err)
		}
	}
	name := r.learned[e.UPID]
	if name == "" {
		c.differ("task", "was not started")
	} else {
		c.taskEnd(r, e, name)
	}
	r.stat.afterTask(e)
	result.Diffs = c.diffs
	r.results = append(r.results, result)
}

func taskType(upid string) string {
	if parts := strings.Split(upid, ":"); len(parts) > 5 {
		return parts[5]
	}
	return "?"
}

// startUnrecorded makes the call that a set-up or clean-up task came from.
func (r *replay) startUnrecorded(e *Exchange) error {
	node, typ, id := strings.Split(e.UPID, ":")[1], taskType(e.UPID), strings.Split(e.UPID, ":")[6]
	call := &Exchange{Flow: e.Flow, Auth: "admin"}
	switch typ {
	case "vzclone":
		m := cloneLine.FindStringSubmatch(strings.Join(e.Log, "\n"))
		if m == nil {
			return fmt.Errorf("the log doesn't say what was cloned")
		}
		call.Method, call.Path = http.MethodPost, "/nodes/"+node+"/lxc/"+m[1]+"/clone"
		call.Form = map[string]any{"newid": m[2], "hostname": "ct" + m[2]}
		if e.Flow == "resources" {
			call.Form["pool"] = "labpool"
		}
	case "vzdestroy":
		// What a flow left locked was unlocked on the node, unrecorded.
		vmid, _ := strconv.Atoi(id)
		_ = r.stat.control.ChangeGuest(r.ctx, control.Guest{VMID: vmid, Set: map[string]string{"lock": ""}})
		call.Method, call.Path = http.MethodDelete, "/nodes/"+node+"/lxc/"+id
		call.Form = map[string]any{"purge": 1.0, "force": 1.0}
	case "vzcreate":
		call.Method, call.Path = http.MethodPost, "/nodes/"+node+"/lxc"
		call.Form = map[string]any{
			"vmid": id, "ostemplate": "local:vztmpl/debian-12-mini_12.12-1_amd64.tar.gz", "hostname": "ct" + id, "memory": 128.0, "swap": 0.0,
			"cores": 1.0, "rootfs": "local-btrfs:1", "net0": "name=eth0,bridge=vmbr0,ip=dhcp", "unprivileged": 1.0,
		}
	default:
		return fmt.Errorf("a task of type %s without a call", typ)
	}
	got := r.send(call)
	body, _ := got.body.(map[string]any)
	upid, _ := body["data"].(string)
	if upid == "" {
		return fmt.Errorf("%s %s: %d %s %w", call.Method, call.Path, got.status, got.reason, got.err)
	}
	r.learned[e.UPID] = upid
	return nil
}

// taskEnd waits for the end of the lab's task and compares.
func (c *comparison) taskEnd(r *replay, e *Exchange, name string) {
	node := strings.Split(name, ":")[1]
	base := "/nodes/" + node + "/tasks/" + name
	var data map[string]any
	deadline := time.Now().Add(30 * time.Second)
	r.stat.during(e)
	for {
		got := r.send(&Exchange{Method: http.MethodGet, Path: base + "/status", Auth: "admin"})
		body, _ := got.body.(map[string]any)
		data, _ = body["data"].(map[string]any)
		if data == nil {
			c.differ("task", "status: %d %s", got.status, got.reason)
			return
		}
		if data["status"] == "stopped" {
			break
		}
		if time.Now().After(deadline) {
			c.differ("task", "hasn't ended after 30 s")
			return
		}
		r.sleep(5 * time.Millisecond)
	}
	want := map[string]any{}
	for key, value := range e.TaskStatus {
		want[key] = value
	}
	c.value("task", "", any(want), any(data))
	got := r.send(&Exchange{Method: http.MethodGet, Path: base + "/log", Auth: "admin", Form: map[string]any{"limit": 500.0}})
	body, _ := got.body.(map[string]any)
	lines, _ := body["data"].([]any)
	c.log(e.Log, lines)
}

// log compares a task's lines.
func (c *comparison) log(want []string, got []any) {
	lines := []string{}
	for _, entry := range got {
		object, _ := entry.(map[string]any)
		text, _ := object["t"].(string)
		lines = append(lines, text)
	}
	want, lines = settled(want), settled(lines)
	differs := false
	for i := 0; i < len(want) || i < len(lines); i++ {
		w, g := lineAt(want, i), lineAt(lines, i)
		if !differs && normalLog(w) != normalLog(g) { // what follows the first difference says little
			differs = true
			c.differ("log line "+strconv.Itoa(i+1), "is %q, recorded %q", g, w)
		}
		c.learn(w, g)
	}
}

// settled puts a log into a form without what only timing decides: a lock that had to be waited for and was had, and the
// order in which host keys of several kinds were made.
func settled(log []string) []string {
	var out, keys []string
	for i := 0; i < len(log); i++ {
		switch {
		case log[i] == "trying to acquire lock..." && i+1 < len(log) && strings.TrimSpace(log[i+1]) == "OK":
			i++
		case strings.HasPrefix(log[i], "Creating SSH host key ") || strings.HasPrefix(log[i], "done: SHA256:"):
			keys = append(keys, normal(log[i]))
		default:
			out = append(out, log[i])
		}
	}
	slices.Sort(keys)
	return append(out, keys...)
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(none)"
}

// sleep waits, unless the replay ends.
func (r *replay) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

var pauses = regexp.MustCompile(`(\d+) s later|after (\d+) s`)

// pause waits where the recording did: its steps' names say so. A tenth of the time is as long here.
func (r *replay) pause(e *Exchange) {
	millis := e.pause()
	r.sleep(time.Duration(millis/10) * time.Millisecond)
	r.stat.elapsed += millis
}

// pause is how long the recording waited before a call, in ms.
func (e *Exchange) pause() float64 {
	m := pauses.FindStringSubmatch(e.Step)
	if m == nil || e.Method != http.MethodGet {
		return 0
	}
	seconds, _ := strconv.Atoi(m[1] + m[2])
	return float64(seconds) * 1000
}
