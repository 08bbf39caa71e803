package server

import (
	"sync"
	"time"
)

// requestLog remembers the requests to the API, for benches and tests.
type requestLog struct {
	mu          sync.Mutex
	entries     []RequestEntry
	connections map[int]bool // that carried a request since the last reset
	nextConn    int
	inFlight    int
	maxInFlight int
	dropped     int // entries that the log no longer holds
}

// maxLogged bounds the log; counters go on.
const maxLogged = 200000

// RequestEntry is one request to the API as the control API reports it.
type RequestEntry struct {
	N         int       `json:"n"` // from 1
	Method    string    `json:"method"`
	Path      string    `json:"path"`     // without /api2/json and the query
	Template  string    `json:"template"` // "/nodes/{node}/lxc/{vmid}/config"; empty if the path isn't known
	AuthID    string    `json:"auth_id"`
	Status    int       `json:"status"` // 0 while it runs, or when the connection was dropped
	Reason    string    `json:"reason"`
	Conn      int       `json:"conn"`
	InFlight  int       `json:"in_flight"` // requests under way when it came, itself included
	At        time.Time `json:"at"`
	Millis    float64   `json:"millis"`
	FaultedBy string    `json:"faulted_by,omitempty"`
}

func newRequestLog() *requestLog { return &requestLog{connections: map[int]bool{}} }

func (l *requestLog) newConn() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextConn++
	return l.nextConn
}

// begin notes a request and returns its number.
func (l *requestLog) begin(e RequestEntry) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight++
	l.maxInFlight = max(l.maxInFlight, l.inFlight)
	l.connections[e.Conn] = true
	e.N, e.InFlight = l.dropped+len(l.entries)+1, l.inFlight
	if len(l.entries) >= maxLogged {
		half := maxLogged / 2
		l.entries = append([]RequestEntry(nil), l.entries[half:]...)
		l.dropped += half
	}
	l.entries = append(l.entries, e)
	return e.N
}

// end completes an entry.
func (l *requestLog) end(n int, fill func(e *RequestEntry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	if i := n - 1 - l.dropped; i >= 0 && i < len(l.entries) {
		fill(&l.entries[i])
		l.entries[i].Millis = float64(time.Since(l.entries[i].At).Microseconds()) / 1000
	}
}

// reset forgets everything but the numbers of open connections.
func (l *requestLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.dropped, l.maxInFlight, l.connections = nil, 0, l.inFlight, map[int]bool{}
}

// RequestReport is what the control API says about the requests since the last reset.
type RequestReport struct {
	Total       int            `json:"total"`
	Connections int            `json:"connections"`
	MaxInFlight int            `json:"max_in_flight"`
	Entries     []RequestEntry `json:"entries"`
}

func (l *requestLog) report() RequestReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	return RequestReport{
		Total: l.dropped + len(l.entries), Connections: len(l.connections), MaxInFlight: l.maxInFlight,
		Entries: append([]RequestEntry{}, l.entries...),
	}
}
