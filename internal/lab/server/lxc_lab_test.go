package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

const (
	testTemplate = "local:vztmpl/debian-12-mini_12.12-1_amd64.tar.gz"
	testMAC      = "BC:24:11:DE:46:96"
)

// ctLab is a lab of one or more nodes with a template, 9000, on pve1.
type ctLab struct {
	t      *testing.T
	s      *Server
	engine *recordingEngine
	client *http.Client
	tokens map[string]string
	who    string
}

// form are a request's parameters.
type form map[string]string

// reply is an answer of the API.
type reply struct {
	status  int
	reason  string
	data    any
	message string
	errors  map[string]string
}

func newCTLab(t *testing.T, change ...func(*Options)) *ctLab {
	t.Helper()
	lab := &ctLab{t: t, engine: newRecordingEngine(), tokens: map[string]string{}, who: "admin"}
	opt := Options{Engine: lab.engine, Seed: lab.seed}
	for _, fn := range change {
		fn(&opt)
	}
	s, err := Start(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	lab.s = s
	lab.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(func() {
		lab.client.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

func (lab *ctLab) seed(d *Seeder) error {
	for who, id := range map[string]string{"admin": "admin@pve", "viewer": "viewer@pve", "limited": "limited@pve", "root": "root@pam"} {
		if who != "root" {
			d.User(id, "secret")
		}
		lab.tokens[who] = d.Token(id, "lab", false)
	}
	d.Pool("labpool")
	d.Grant("/", "admin@pve", "Administrator")
	d.Grant("/", "viewer@pve", "PVEAuditor")
	d.Grant("/pool/labpool", "limited@pve", "PVEVMAdmin")
	d.Grant("/storage/local", "limited@pve", "PVEDatastoreUser")
	d.Grant("/storage/local-btrfs", "limited@pve", "PVEDatastoreUser")
	d.Grant("/sdn/zones/localnetwork", "limited@pve", "PVESDNUser")
	d.TemplateFile(testTemplate, 55633611)
	return d.Guest(context.Background(), d.s.st.Nodes[0].Name, 9000, map[string]string{
		"arch": "amd64", "cores": "1", "features": "nesting=1", "hostname": "mini-tmpl", "memory": "128", "ostype": "debian",
		"net0":   "name=eth0,bridge=vmbr0,hwaddr=" + testMAC + ",ip=dhcp,type=veth",
		"rootfs": "local-btrfs:9000/base-9000-disk-0.raw,size=1G", "swap": "0", "template": "1", "unprivileged": "1",
	}, engine.RootSpec{})
}

// as is the lab for another caller.
func (lab *ctLab) as(who string) *ctLab {
	other := *lab
	other.who = who
	return &other
}

// call sends a request; paths are relative to /nodes/pve1 unless they begin with a slash.
func (lab *ctLab) call(method, path string, params form) reply {
	lab.t.Helper()
	values := url.Values{}
	for key, value := range params {
		values.Set(key, value)
	}
	if !strings.HasPrefix(path, "/") {
		path = "/nodes/pve1/" + path
	}
	target, body := lab.s.URL()+"/api2/json"+path, io.Reader(nil)
	if method == http.MethodGet || method == http.MethodDelete {
		target += "?" + values.Encode()
	} else {
		body = strings.NewReader(values.Encode())
	}
	req, err := http.NewRequestWithContext(lab.t.Context(), method, target, body)
	if err != nil {
		lab.t.Fatal(err)
	}
	req.Header.Set("Authorization", "PVEAPIToken="+lab.tokens[lab.who])
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := lab.client.Do(req)
	if err != nil {
		lab.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	var envelope struct {
		Data    any
		Message string
		Errors  map[string]string
	}
	if err := json.NewDecoder(res.Body).Decode(&envelope); err != nil {
		lab.t.Fatalf("%s %s: %v", method, path, err)
	}
	_, reason, _ := strings.Cut(res.Status, " ")
	return reply{status: res.StatusCode, reason: reason, data: envelope.Data, message: envelope.Message, errors: envelope.Errors}
}

// ok sends a request that must succeed and returns its data.
func (lab *ctLab) ok(method, path string, params form) any {
	lab.t.Helper()
	r := lab.call(method, path, params)
	if r.status != 200 {
		lab.t.Fatalf("%s %s %v: %d %s %v", method, path, params, r.status, r.reason, r.errors)
	}
	return r.data
}

// refused sends a request that must be refused with a status and reason.
func (lab *ctLab) refused(method, path string, params form, status int, reason string) {
	lab.t.Helper()
	if r := lab.call(method, path, params); r.status != status || r.reason != reason || r.message != reason+"\n" {
		lab.t.Errorf("%s %s %v:\n got %d %q\nwant %d %q", method, path, params, r.status, r.reason, status, reason)
	}
}

// badParameter sends a request that must be a 400 about one parameter.
func (lab *ctLab) badParameter(method, path string, params form, name, text string) {
	lab.t.Helper()
	if r := lab.call(method, path, params); r.status != 400 || r.errors[name] != text {
		lab.t.Errorf("%s %s %v:\n got %d %v\nwant 400 %s: %q", method, path, params, r.status, r.errors, name, text)
	}
}

// begin starts a task and returns its UPID.
func (lab *ctLab) begin(method, path string, params form) string {
	lab.t.Helper()
	upid, ok := lab.ok(method, path, params).(string)
	if !ok {
		lab.t.Fatalf("%s %s: no UPID", method, path)
	}
	return upid
}

// wait waits for a task's end and returns its exit status and log.
func (lab *ctLab) wait(upid string) (exit string, log []string) {
	lab.t.Helper()
	lab.s.lock()
	task := lab.s.findTask(upid)
	lab.s.unlock()
	if task == nil {
		lab.t.Fatalf("no task %s", upid)
	}
	select {
	case <-task.done:
	case <-time.After(20 * time.Second):
		lab.t.Fatalf("task %s still runs", upid)
	}
	return task.Exit, task.Lines
}

// done runs a task that must end well and returns its log.
func (lab *ctLab) done(method, path string, params form) []string {
	lab.t.Helper()
	exit, log := lab.wait(lab.begin(method, path, params))
	if exit != "OK" {
		lab.t.Fatalf("%s %s %v: task ended with %q\n%s", method, path, params, exit, strings.Join(log, "\n"))
	}
	return log
}

// fails runs a task that must end with an error.
func (lab *ctLab) fails(method, path string, params form, exit string) {
	lab.t.Helper()
	if got, _ := lab.wait(lab.begin(method, path, params)); got != exit {
		lab.t.Errorf("%s %s %v: task ended with %q, want %q", method, path, params, got, exit)
	}
}

// clone makes a linked clone of 9000.
func (lab *ctLab) clone(vmid int) string {
	lab.t.Helper()
	lab.done("POST", "lxc/9000/clone", form{"newid": fmt.Sprint(vmid), "hostname": fmt.Sprintf("ct%d", vmid)})
	return fmt.Sprintf("lxc/%d", vmid)
}

// running makes a clone and starts it.
func (lab *ctLab) running(vmid int) string {
	lab.t.Helper()
	ct := lab.clone(vmid)
	lab.done("POST", ct+"/status/start", nil)
	return ct
}

// config is a container's configuration, without the digest.
func (lab *ctLab) config(ct string, params form) map[string]any {
	lab.t.Helper()
	config := lab.ok("GET", ct+"/config", params).(map[string]any)
	delete(config, "digest")
	return config
}

// option expects an option's value; nil is for one that isn't set.
func (lab *ctLab) option(ct, key string, want any) {
	lab.t.Helper()
	if got := lab.config(ct, nil)[key]; got != want {
		lab.t.Errorf("%s: %s is %#v, want %#v", ct, key, got, want)
	}
}

// digest is a configuration's digest.
func (lab *ctLab) digest(ct string) string {
	lab.t.Helper()
	return lab.ok("GET", ct+"/config", nil).(map[string]any)["digest"].(string)
}

// slow makes some of the lab's times long enough to look at what is in between.
func slow(change func(d *Delays)) func(*Options) {
	return func(opt *Options) {
		opt.Delays = Fast()
		change(opt.Delays)
	}
}
