package pve

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const twoNodes = `[{"id":"node/a","type":"node","node":"a","status":"online"},{"id":"node/b","type":"node","node":"b","status":"online"},
{"id":"lxc/100","type":"lxc","vmid":100,"node":"a","status":"unknown"},{"id":"lxc/200","type":"lxc","vmid":200,"node":"b","status":"running"},
{"id":"qemu/300","type":"qemu","vmid":300,"node":"b","status":"running","maxcpu":0.5},{"id":"/pool/p","type":"pool","pool":"p"}]`

// cluster answers the lists of a cluster of two nodes.
func cluster(t *testing.T, resources string, special map[string]http.HandlerFunc) *fakeServer {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r request) {
		if h := special[r.path]; h != nil {
			h(w, nil)
			return
		}
		switch {
		case r.method != "GET":
			data(w, string(testUPID))
		case r.path == "/cluster/resources":
			data(w, json.RawMessage(resources))
		case r.path == "/nodes/a/lxc":
			data(w, json.RawMessage(`[{"vmid":"100","status":"running","name":"x","cpus":"0.5"}]`))
		case r.path == "/nodes/b/lxc":
			data(w, json.RawMessage(`[{"vmid":200,"status":"stopped"},{"vmid":201,"status":"running"}]`))
		default:
			data(w, stopped("OK"))
		}
	})
}

func TestAllReadersOfARunShareOneRequestPerList(t *testing.T) {
	t.Parallel()
	s := cluster(t, twoNodes, nil)
	c, _ := testClient(t, s.URL)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			fleet, err := c.Lists().Fleet(t.Context())
			if err != nil || !fleet.Complete() {
				t.Errorf("%+v, %v", fleet.Unreached, err)
			}
		})
	}
	wg.Wait()
	if n := len(s.seen()); n != 3 {
		t.Errorf("%d requests for 200 readers, want 1 + one per node", n)
	}
}

func TestAFleetHasTheNodesOwnWordOnStatus(t *testing.T) {
	t.Parallel()
	s := cluster(t, twoNodes, nil)
	c, _ := testClient(t, s.URL)
	fleet, err := c.Lists().Fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for vmid, want := range map[int]string{100: "running", 200: "stopped", 201: "running"} {
		if g := fleet.Guests[vmid]; g.LXC == nil || g.LXC.Status != want || g.VMID != vmid {
			t.Errorf("%d: %+v", vmid, g)
		}
	}
	if g := fleet.Guests[201]; g.Node != "b" || g.Resource != nil {
		t.Errorf("a guest that only its node lists: %+v", g)
	}
	if g := fleet.Guests[300]; g.LXC != nil || g.Resource == nil {
		t.Errorf("a virtual machine: %+v", g)
	}
}

func TestAnyWriteAndAnyTasksEndDropsTheLists(t *testing.T) {
	t.Parallel()
	s := cluster(t, twoNodes, nil)
	c, _ := testClient(t, s.URL)
	read := func() int {
		t.Helper()
		before := len(s.seen())
		if _, err := c.Lists().LXC(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		return len(s.seen()) - before
	}
	if read() != 1 || read() != 0 {
		t.Error("the list isn't kept")
	}
	if _, err := c.StartLXC(t.Context(), "a", 100); err != nil {
		t.Fatal(err)
	}
	if read() != 1 || read() != 0 {
		t.Error("a write didn't drop the list")
	}
	if _, err := c.Wait(t.Context(), testUPID, noWarnings(t)); err != nil {
		t.Fatal(err)
	}
	if read() != 1 {
		t.Error("a task's end didn't drop the list")
	}
	c.Lists().Drop()
	if read() != 1 {
		t.Error("Drop didn't drop the list")
	}
}

func TestAListThatWasAskedForDuringAWriteIsNotKept(t *testing.T) {
	t.Parallel()
	writing, listed := make(chan struct{}), make(chan struct{})
	s := cluster(t, twoNodes, map[string]http.HandlerFunc{"/nodes/a/lxc/100/status/start": func(w http.ResponseWriter, _ *http.Request) {
		close(writing)
		<-listed
		data(w, string(testUPID))
	}})
	c, _ := testClient(t, s.URL)
	done := make(chan error)
	go func() { _, err := c.StartLXC(t.Context(), "a", 100); done <- err }()
	<-writing
	if _, err := c.Lists().LXC(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	close(listed)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lists().LXC(t.Context(), "a"); err != nil || s.count("GET", "/nodes/a/lxc") != 2 {
		t.Errorf("%v after %d lists", err, s.count("GET", "/nodes/a/lxc"))
	}
}

func TestAnOldListIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := cluster(t, twoNodes, nil)
	c, clock := testClient(t, s.URL)
	for range 2 {
		if _, err := c.Lists().Resources(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.advance(listAge + time.Second)
	}
	if n := len(s.seen()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestAListThatFailsIsAnErrorAndIsAskedForAgain(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	s := cluster(t, twoNodes, map[string]http.HandlerFunc{"/nodes/a/lxc": func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			refuse(w, 500, "got timeout", nil)
			return
		}
		data(w, []any{})
	}})
	c, _ := testClient(t, s.URL)
	if list, err := c.Lists().LXC(t.Context(), "a"); err == nil {
		t.Errorf("got %v", list)
	}
	if _, err := c.Lists().LXC(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestWhatIsOnANodeThatIsAwayIsUnknownNotGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resources string
		special   map[string]http.HandlerFunc
	}{
		"offline": {strings.Replace(twoNodes, `"node":"b","status":"online"`, `"node":"b","status":"offline"`, 1), nil},
		"failing": {twoNodes, map[string]http.HandlerFunc{"/nodes/b/lxc": func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, 596, "Broken pipe", "") }}},
		"answering with nothing": {twoNodes, map[string]http.HandlerFunc{"/nodes/b/lxc": func(w http.ResponseWriter, _ *http.Request) {
			data(w, nil)
		}}},
	} {
		s := cluster(t, c.resources, c.special)
		client, _ := testClient(t, s.URL)
		fleet, err := client.Lists().Fleet(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if fleet.Complete() || fleet.Unreached["b"] == nil || fleet.Unreached["a"] != nil {
			t.Errorf("%s: unreached %v", name, fleet.Unreached)
		}
		if g := fleet.Guests[100]; g.LXC == nil {
			t.Errorf("%s: the other node's guests are missing", name)
		}
		if g, ok := fleet.Guests[200]; !ok || g.LXC != nil {
			t.Errorf("%s: a guest there must stay known, without a status of now: %+v", name, g)
		}
	}
}

func TestAClustersListWithoutANodeIsNoList(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`[]`, `null`, `[{"id":"lxc/100","type":"lxc","vmid":100,"node":"a"}]`} {
		s := cluster(t, answer, nil)
		c, _ := testClient(t, s.URL)
		if fleet, err := c.Lists().Fleet(t.Context()); err == nil {
			t.Errorf("%s: %+v", answer, fleet)
		}
	}
}

func TestAReaderThatGivesUpLeavesTheListToTheOthers(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	s := cluster(t, twoNodes, map[string]http.HandlerFunc{"/nodes/a/lxc": func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		data(w, []any{})
	}})
	c, _ := testClient(t, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() { _, err := c.Lists().LXC(ctx, "a"); first <- err }()
	<-asked
	go func() { _, err := c.Lists().LXC(t.Context(), "a"); second <- err }()
	cancel()
	if err := <-first; err == nil {
		t.Error("the reader that gave up got a list")
	}
	close(answer)
	if err := <-second; err != nil {
		t.Error(err)
	}
	if n := s.count("GET", "/nodes/a/lxc"); n != 1 {
		t.Errorf("%d requests", n)
	}
}
