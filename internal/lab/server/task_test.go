package server

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// task starts a task as a user.
func (lab *ctLab) task(typ, id, as string, fn func(t *task) error) string {
	lab.s.lock()
	defer lab.s.unlock()
	return lab.s.startTask("pve1", typ, id, as, fn)
}

func TestATaskEndsWithWhatItsFunctionSays(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	for want, fn := range map[string]func(t *task) error{
		"OK":          func(t *task) error { t.logf("one\ntwo"); return nil },
		"WARNINGS: 2": func(t *task) error { t.warnf("a"); t.warnf("b"); return nil },
		"broken":      func(*task) error { return errors.New("broken") },
	} {
		exit, log := lab.wait(lab.task("vzstart", "1", "admin@pve!lab", fn))
		last := log[len(log)-1]
		if exit != want || !strings.HasSuffix(last, want) && last != "TASK WARNINGS: 2" {
			t.Errorf("%s: %q %q", want, exit, log)
		}
	}
}

func TestAUPIDNamesNodeTypeIdAndOwner(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	name := lab.task("vzclone", "9000", "admin@pve!lab", func(*task) error { return nil })
	u, err := parseUPID(name)
	if err != nil || u.node != "pve1" || u.typ != "vzclone" || u.id != "9000" || u.user != "admin@pve!lab" || u.String() != name {
		t.Error(name, u, err)
	}
	lab.badParameter("GET", "tasks/garbage/status", nil, "upid", "unable to parse worker upid")
	lab.badParameter("GET", "tasks/UPID:pve1:00000000:00000000:00000000:vzstart:1:root@pam:/status", nil, "upid", "no such task")
}

func TestOthersTasksNeedTheRightToAuditTheNode(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	name := lab.task("vzstart", "1", "admin@pve!lab", func(*task) error { return nil })
	lab.wait(name)
	lab.as("viewer").ok("GET", "tasks/"+name+"/status", nil)
	lab.as("limited").refused("GET", "tasks/"+name+"/status", nil, 403, "Permission check failed (/nodes/pve1, Sys.Audit)")
	own := lab.task("vzstart", "1", "limited@pve!lab", func(*task) error { return nil })
	lab.wait(own)
	status := lab.as("limited").ok("GET", "tasks/"+own+"/status", nil).(map[string]any)
	if status["status"] != "stopped" || status["exitstatus"] != "OK" || status["user"] != "limited@pve" || status["tokenid"] != "lab" {
		t.Error(status)
	}
}

func TestStoppingATaskInterruptsIt(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t, slow(func(d *Delays) { d.TaskStop = 10 * time.Second }))
	name := lab.task("vzclone", "1", "admin@pve!lab", func(t *task) error { return t.sleep(time.Hour) })
	if running := lab.ok("GET", "tasks", form{"source": "active"}).([]any); len(running) != 1 || running[0].(map[string]any)["status"] != "RUNNING" {
		t.Error(running)
	}
	lab.ok("DELETE", "tasks/"+name, nil)
	if exit, _ := lab.wait(name); exit != "interrupted by signal" {
		t.Error(exit)
	}
}

func TestTaskListsAreFiltered(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.wait(lab.task("vzstart", "100", "admin@pve!lab", func(*task) error { return nil }))
	lab.wait(lab.task("vzstop", "101", "admin@pve!lab", func(*task) error { return errors.New("no") }))
	for want, filter := range map[string]form{
		"vzstop": {"errors": "1"}, "vzstart": {"vmid": "100"}, "vzstop ": {"typefilter": "vzstop"}, "vzstart ": {"statusfilter": "ok"},
	} {
		found := lab.ok("GET", "tasks", filter).([]any)
		if len(found) != 1 || found[0].(map[string]any)["type"] != strings.TrimSpace(want) {
			t.Errorf("%v: %v", filter, found)
		}
	}
}
