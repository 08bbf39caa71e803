package sandbox

import "sync"

// warnings collects what the user should know. Safe for concurrent use.
type warnings struct {
	mu   sync.Mutex
	list []Warning
}

func (w *warnings) add(summary, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, Warning{Summary: summary, Detail: detail})
}

func (w *warnings) take() []Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}
