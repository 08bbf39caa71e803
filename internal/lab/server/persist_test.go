package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestALabComesBackAsAfterAPowerCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lab := newCTLab(t, func(o *Options) { o.Dir = dir })
	lab.running(100)
	lab.ok("PUT", "lxc/100/config", form{"description": "kept"})
	lab.done("POST", "lxc/100/snapshot", form{"snapname": "one"})
	lab.ok("POST", "/pools", form{"poolid": "p"})
	fingerprint, secret := lab.s.Fingerprint(), lab.s.Secret()
	ticket, _ := lab.login("admin@pve", "secret")
	if err := lab.s.Close(); err != nil {
		t.Fatal(err)
	}

	again, err := Start(context.Background(), Options{Dir: dir, Seed: func(*Seeder) error { t.Error("seeded again"); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	lab.s = again
	t.Cleanup(func() { _ = again.Close() })
	if again.Fingerprint() != fingerprint || again.Secret() != secret {
		t.Error("certificate or secret changed")
	}
	config := lab.config("lxc/100", nil)
	if config["description"] != "kept\n" || config["parent"] != "one" {
		t.Error(config)
	}
	status := lab.ok("GET", "lxc/100/status/current", nil).(map[string]any)
	if status["status"] != "stopped" {
		t.Error("runs:", status)
	}
	lab.ok("GET", "/pools/p", nil)
	if tasks := lab.ok("GET", "tasks", form{"typefilter": "vzclone"}).([]any); len(tasks) != 1 {
		t.Error(tasks)
	}
	if res, _ := lab.raw("GET", "/api2/json/version", "", map[string]string{"Cookie": "PVEAuthCookie=" + ticket}); res.StatusCode != http.StatusOK {
		t.Error("the ticket is no longer good:", res.Status)
	}
}

func TestATaskThatTheCutEndedHasNoStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lab := newCTLab(t, func(o *Options) { o.Dir = dir })
	block := make(chan struct{})
	name := lab.task("vzstart", "1", "admin@pve!lab", func(t *task) error { t.s.unlocked(func() { <-block }); return nil })
	lab.s.lock()
	err := lab.s.save()
	lab.s.unlock()
	close(block)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "cluster.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Start(context.Background(), Options{Dir: other})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	again.lock()
	defer again.unlock()
	if task := again.findTask(name); task == nil || task.Exit != "unexpected status" {
		t.Errorf("%+v", task)
	}
}
