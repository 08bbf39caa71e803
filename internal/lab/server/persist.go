package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// errNoDir says that nothing is kept.
var errNoDir = errors.New("no folder to keep the state in")

// savedState is the file's content.
type savedState struct {
	State       *state      `json:"state"`
	Certificate certificate `json:"certificate"`
	Secret      string      `json:"secret"`
}

func (s *Server) stateFile() string { return filepath.Join(s.opt.Dir, "cluster.json") }

// load reads a kept state; false if there is none.
func (s *Server) load() (bool, error) {
	if s.opt.Dir == "" {
		return false, nil
	}
	raw, err := os.ReadFile(s.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return false, os.MkdirAll(s.opt.Dir, 0o700)
	}
	if err != nil {
		return false, fmt.Errorf("lab: read the state: %w", err)
	}
	var saved savedState
	if err := json.Unmarshal(raw, &saved); err != nil {
		return false, fmt.Errorf("lab: %s: %w", s.stateFile(), err)
	}
	s.st, s.cert, s.opt.Secret = saved.State, saved.Certificate, saved.Secret
	s.afterPowerCut()
	return true, nil
}

// afterPowerCut is what a restart does to a node: guests are down, workers are gone, and a lock that a worker held stays.
func (s *Server) afterPowerCut() {
	s.st.Boot = time.Now()
	for _, n := range s.st.Nodes {
		n.Boot = s.st.Boot
	}
	for _, g := range s.st.Guests {
		g.Running, g.PID, g.Active = false, 0, nil
	}
	for _, t := range s.st.Tasks {
		t.s = s
		if t.End == 0 {
			t.End, t.Exit = s.st.Boot.Unix(), "unexpected status"
		}
	}
	s.autostart()
}

// save writes the state so that a cut leaves the old or the new one.
func (s *Server) save() error {
	if s.opt.Dir == "" {
		return errNoDir
	}
	raw, err := json.MarshalIndent(savedState{State: s.st, Certificate: s.cert, Secret: s.opt.Secret}, "", " ") //nolint:gosec // the file is for its owner only
	if err != nil {
		return fmt.Errorf("lab: encode the state: %w", err)
	}
	tmp, err := os.CreateTemp(s.opt.Dir, "cluster-*.tmp")
	if err != nil {
		return fmt.Errorf("lab: save the state: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(raw)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), s.stateFile())
	}
	if err != nil {
		return fmt.Errorf("lab: save the state: %w", err)
	}
	s.unsaved = false
	return nil
}

// saveLoop saves now and then what has changed.
func (s *Server) saveLoop() {
	defer s.workers.Done()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		s.lock()
		if s.unsaved && s.opt.Dir != "" {
			if err := s.save(); err != nil {
				s.log.Error("state not saved", "error", err)
			}
		}
		s.unlock()
	}
}
