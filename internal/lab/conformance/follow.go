package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// statusPath is the path of a container's status, its container the first group.
var statusPath = regexp.MustCompile(`^(/nodes/[^/]+/lxc/\d+)/status/current$`)

// startsAfterwards is the container that a call starts in a task of its own, whose name nobody is told: a create or a
// rollback with start=1.
func startsAfterwards(e *Exchange) string {
	if e.Method != http.MethodPost || fmt.Sprint(e.Form["start"]) != "1" {
		return ""
	}
	if vmid, ok := e.Form["vmid"]; ok {
		return fmt.Sprintf("%s/%v", e.Path, vmid)
	}
	if i := regexp.MustCompile(`/snapshot/`).FindStringIndex(e.Path); i != nil {
		return e.Path[:i[0]]
	}
	return ""
}

// waitForFollower waits, as the recording did, until a container that a call started afterwards runs. Only before a
// status that was recorded as running, and not for long: what is compared is the answer that follows.
func (r *replay) waitForFollower(e *Exchange) {
	m := statusPath.FindStringSubmatch(e.Path)
	body, _ := e.Body.(map[string]any)
	data, _ := body["data"].(map[string]any)
	if _, running := data["pid"]; m == nil || !running || !r.followers[m[1]] {
		return
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); r.sleep(5 * time.Millisecond) {
		got := r.send(&Exchange{Auth: e.Auth, Method: e.Method, Path: e.Path})
		body, _ := got.body.(map[string]any)
		data, _ := body["data"].(map[string]any)
		if _, running := data["pid"]; running {
			return
		}
	}
}
