package sandbox

import "sync"

// runs counts the commands that this process has under way inside sandboxes.
type runs struct {
	mu    sync.Mutex
	count map[int]int
}

// begin notes a command; end must be called once it has ended.
func (r *runs) begin(vmid int) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[int]int{}
	}
	r.count[vmid]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.count[vmid]--; r.count[vmid] == 0 {
			delete(r.count, vmid)
		}
	}
}

// active is the number of commands under way inside a sandbox.
func (r *runs) active(vmid int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[vmid]
}
