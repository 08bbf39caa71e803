package server

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The control API is what only a lab has: POST and GET under /lab/ with the secret in the header X-Lab-Secret and JSON
// both ways. internal/lab/control is its client and documents it.

const controlPrefix = "/lab/"

// SecretHeader carries the control API's secret.
const SecretHeader = "X-Lab-Secret"

type controlFunc func(s *Server, body []byte) (any, error)

// controls are the control API's calls.
var controls = map[string]controlFunc{
	"reset":          (*Server).controlReset,
	"fault":          (*Server).controlFault,
	"faults":         func(s *Server, _ []byte) (any, error) { states, _ := s.faults.states(); return states, nil },
	"wait":           (*Server).controlWait,
	"release":        (*Server).controlRelease,
	"task-fault":     (*Server).controlTaskFault,
	"node":           (*Server).controlNode,
	"time":           (*Server).controlTime,
	"delays":         (*Server).controlDelays,
	"requests":       func(s *Server, _ []byte) (any, error) { return s.requests.report(), nil },
	"requests/reset": func(s *Server, _ []byte) (any, error) { s.requests.reset(); return nil, nil },
	"dump":           (*Server).controlDump,
	"guest":          (*Server).controlGuest,
	"storage":        (*Server).controlStorage,
	"refresh":        (*Server).controlRefresh,
}

// serveControl answers a call of the control API.
func (s *Server) serveControl(req *http.Request, body []byte) *answer {
	if subtle.ConstantTimeCompare([]byte(req.Header.Get(SecretHeader)), []byte(s.opt.Secret)) != 1 {
		return &answer{status: 403, reason: "wrong lab secret", contentType: "text/plain"}
	}
	call := controls[strings.TrimPrefix(req.URL.Path, controlPrefix)]
	if call == nil {
		return &answer{status: 404, reason: "no such lab call", contentType: "text/plain"}
	}
	result, err := call(s, body)
	if err != nil {
		return &answer{status: 400, reason: "bad lab call", contentType: "text/plain", body: []byte(err.Error())}
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return &answer{status: 500, reason: "lab call failed", contentType: "text/plain", body: []byte(err.Error())}
	}
	return &answer{status: 200, reason: "OK", contentType: jsonType, body: encoded}
}

// controlReset makes the lab calm: no faults, all nodes there, nothing held. Time and guests stay.
func (s *Server) controlReset([]byte) (any, error) {
	s.faults.clear()
	s.lock()
	defer s.unlock()
	for _, n := range s.st.Nodes {
		n.Away = false
	}
	delays := s.initialDelays
	s.opt.Delays = &delays
	return nil, nil
}

func (s *Server) controlFault(body []byte) (any, error) {
	var spec Fault
	if err := json.Unmarshal(body, &spec); err != nil {
		return nil, err
	}
	return s.faults.add(spec)
}

// WaitRequest asks to wait until a fault has fired at least Fired times (and holds at least Held requests now).
type WaitRequest struct {
	ID    int           `json:"id"`
	Fired int           `json:"fired"`
	Held  int           `json:"held"`
	For   time.Duration `json:"for"` // at most; 10 s if 0
}

// controlWait returns the fault's state as soon as it is as asked; an error after the time.
func (s *Server) controlWait(body []byte) (any, error) {
	var ask WaitRequest
	if err := json.Unmarshal(body, &ask); err != nil {
		return nil, err
	}
	if ask.For <= 0 {
		ask.For = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(s.ctx, ask.For)
	defer cancel()
	for {
		states, changed := s.faults.states()
		for _, state := range states {
			if state.ID == ask.ID && state.Fired >= ask.Fired && state.Held >= ask.Held {
				return state, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("fault %d: not fired %d times, holding %d, within %s", ask.ID, ask.Fired, ask.Held, ask.For)
		}
	}
}

func (s *Server) controlRelease(body []byte) (any, error) {
	var id int
	if err := json.Unmarshal(body, &id); err != nil {
		return nil, err
	}
	if !s.faults.releaseHeld(id) {
		return nil, fmt.Errorf("no fault %d", id)
	}
	return nil, nil
}

func (s *Server) controlTaskFault(body []byte) (any, error) {
	var spec TaskFault
	if err := json.Unmarshal(body, &spec); err != nil {
		return nil, err
	}
	s.faults.addTask(spec)
	return nil, nil
}

// NodeRequest takes a node away (it answers 595 from the others) or brings it back.
type NodeRequest struct {
	Node string `json:"node"`
	Away bool   `json:"away"`
}

func (s *Server) controlNode(body []byte) (any, error) {
	var ask NodeRequest
	if err := json.Unmarshal(body, &ask); err != nil {
		return nil, err
	}
	s.lock()
	defer s.unlock()
	n := s.findNode(ask.Node)
	if n == nil {
		return nil, fmt.Errorf("no node %q", ask.Node)
	}
	n.Away = ask.Away
	return nil, nil
}

// StorageRequest changes the size of a storage, so that it can be full.
type StorageRequest struct {
	Storage string `json:"storage"`
	Total   int64  `json:"total"` // bytes
}

func (s *Server) controlStorage(body []byte) (any, error) {
	var ask StorageRequest
	if err := json.Unmarshal(body, &ask); err != nil {
		return nil, err
	}
	s.lock()
	defer s.unlock()
	st := s.st.Storages[ask.Storage]
	if st == nil {
		return nil, fmt.Errorf("no storage %q", ask.Storage)
	}
	st.Total = ask.Total
	s.dirty()
	return nil, nil
}

// controlTime lets the lab's clock jump; it returns the lab's time.
func (s *Server) controlTime(body []byte) (any, error) {
	var jump time.Duration
	if err := json.Unmarshal(body, &jump); err != nil {
		return nil, err
	}
	s.lock()
	defer s.unlock()
	s.jump.Add(int64(jump))
	return s.now(), nil
}

// controlDelays changes the delays that the body names and returns all.
func (s *Server) controlDelays(body []byte) (any, error) {
	s.lock()
	defer s.unlock()
	changed := *s.opt.Delays
	if len(body) > 0 {
		if err := json.Unmarshal(body, &changed); err != nil {
			return nil, err
		}
	}
	s.opt.Delays = &changed
	return changed, nil
}

// controlRefresh runs a round of the status service now: /cluster/resources is up to date after it.
func (s *Server) controlRefresh([]byte) (any, error) {
	s.lock()
	defer s.unlock()
	s.statRound()
	return nil, nil
}
