package bench

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
)

// isPoll says whether a request only waits, for a task's end or for its last log lines.
func isPoll(r control.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Path, "/tasks/")
}

// split counts the requests that are work, and those that only wait.
func split(requests []control.Request) (work, polls int) {
	for _, r := range requests {
		if isPoll(r) {
			polls++
		} else {
			work++
		}
	}
	return work, polls
}

// span is the time from the first request to the end of the last one to end.
func span(requests []control.Request) time.Duration {
	if len(requests) == 0 {
		return 0
	}
	begin, end := requests[0].At, requests[0].At
	for _, r := range requests {
		if r.At.Before(begin) {
			begin = r.At
		}
		if done := r.At.Add(time.Duration(r.Millis * float64(time.Millisecond))); done.After(end) {
			end = done
		}
	}
	return end.Sub(begin)
}

// describe lists the work, each kind of call with its count, for the log: a figure that is short needs its reason.
func describe(requests []control.Request) string {
	counts := map[string]int{}
	for _, r := range requests {
		if !isPoll(r) {
			call := r.Template
			if call == "" {
				call = r.Path
			}
			counts[r.Method+" "+call]++
		}
	}
	var lines []string
	for _, call := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%d x %s", counts[call], call))
	}
	return strings.Join(lines, ", ")
}
