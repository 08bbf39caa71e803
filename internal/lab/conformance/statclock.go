package conformance

import (
	"context"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
)

// statClock says when the status service looked, by the recorded durations: it did so every 10 s. When a recording began
// within those 10 s isn't recorded; phases are what fits.
type statClock struct {
	ctx     context.Context
	control *control.Client
	elapsed float64 // ms of the recording
	next    float64
}

const statPeriod = 10000.0

// phases are the ms from a flow's first call to the service's first look.
var phases = map[string]float64{
	"permissions": 3000, "resources": 2500, "pools": 9000, "concurrency": 5000, "two_nodes": 9000, "config": 5000, "clone": 9600,
}

func newStatClock(ctx context.Context, flow string, c *control.Client) statClock {
	phase, ok := phases[flow]
	if !ok {
		phase = 1000
	}
	return statClock{ctx: ctx, control: c, next: phase}
}

// before makes the looks that are due before a call.
func (s *statClock) before(*Exchange) error { return s.catchUp() }

func (s *statClock) catchUp() error {
	if s.elapsed < s.next {
		return nil
	}
	for s.elapsed >= s.next {
		s.next += statPeriod
	}
	return s.control.RefreshStatus(s.ctx)
}

func (s *statClock) after(e *Exchange) { s.elapsed += e.Millis }

// during makes a look while a task runs, if one came in the first half of it then; a later one shows the task's result.
func (s *statClock) during(e *Exchange) {
	if s.elapsed+e.TaskMillis/2 >= s.next {
		for s.elapsed+e.TaskMillis/2 >= s.next {
			s.next += statPeriod
		}
		_ = s.control.RefreshStatus(s.ctx) // a failure shows in what is compared next
	}
}

func (s *statClock) afterTask(e *Exchange) { s.elapsed += e.TaskMillis }
