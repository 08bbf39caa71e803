package conformance

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// silentWaits finds the calls after which the recording waited for a task without noting it: the process start times in the
// UPIDs show that more time passed until the next task than the exchanges between account for.
func silentWaits(exchanges []*Exchange) map[*Exchange]bool {
	const tolerated = 800 // ms
	noted := map[string]bool{}
	for _, e := range exchanges {
		if e.Kind == "task" {
			noted[e.UPID] = true
		}
	}
	out := map[*Exchange]bool{}
	var last *Exchange
	lastStart, spent := 0.0, 0.0
	for _, e := range exchanges {
		upid := e.startedUPID()
		if start := processStart(upid); start > 0 {
			if last != nil && !noted[last.startedUPID()] && start-lastStart-spent > tolerated {
				out[last] = true
			}
			last, lastStart, spent = e, start, 0
		}
		spent += e.Millis + e.TaskMillis + e.pause()
	}
	return out
}

// processStart is a task's start in ms after the boot; 0 for what isn't a UPID.
func processStart(upid string) float64 {
	parts := strings.Split(upid, ":")
	if len(parts) < 5 {
		return 0
	}
	n, err := strconv.ParseInt(parts[3], 16, 64)
	if err != nil {
		return 0
	}
	return float64(n) * 10
}

// waitSilently waits for the end of the task that a call started.
func (r *replay) waitSilently(e *Exchange) {
	name := r.learned[e.startedUPID()]
	if name == "" {
		return
	}
	path := "/nodes/" + strings.Split(name, ":")[1] + "/tasks/" + name + "/status"
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); r.sleep(5 * time.Millisecond) {
		got := r.send(&Exchange{Method: http.MethodGet, Path: path, Auth: "admin"})
		body, _ := got.body.(map[string]any)
		data, _ := body["data"].(map[string]any)
		if data["status"] != "running" {
			return
		}
	}
}
