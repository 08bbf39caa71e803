package pve

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// taskServer answers the status of testUPID with status, and its log with log.
func taskServer(t *testing.T, log []string, status func(n int) (http.HandlerFunc, map[string]any)) *fakeServer {
	t.Helper()
	var n atomic.Int32
	return serve(t, func(w http.ResponseWriter, r request) {
		switch {
		case strings.HasSuffix(r.path, "/status"):
			special, answer := status(int(n.Add(1)))
			if special != nil {
				special(w, nil)
				return
			}
			answer["upid"] = string(testUPID)
			data(w, answer)
		case strings.HasSuffix(r.path, "/log"):
			start, _ := strconv.Atoi(r.query.Get("start"))
			limit, _ := strconv.Atoi(r.query.Get("limit"))
			lines := []map[string]any{}
			for i := start; i < min(len(log), start+limit); i++ {
				lines = append(lines, map[string]any{"n": i + 1, "t": log[i]})
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"total":` + strconv.Itoa(len(log)) + `,"data":` + mustJSON(lines) + `}`))
		default:
			refuse(w, 501, "Method '"+r.method+" "+r.path+"' not implemented", nil)
		}
	})
}

func stopped(exit string) map[string]any {
	return map[string]any{"status": "stopped", "exitstatus": exit}
}
func running() map[string]any { return map[string]any{"status": "running"} }

func noWarnings(t *testing.T) WarnFunc {
	return func(w string) { t.Errorf("a warning: %s", w) }
}

func TestATaskIsPolledSoonThenSeldom(t *testing.T) {
	t.Parallel()
	s := taskServer(t, nil, func(n int) (http.HandlerFunc, map[string]any) {
		if n < 60 {
			return nil, running()
		}
		return nil, stopped("OK")
	})
	c, clock := testClient(t, s.URL)
	r, err := c.Wait(t.Context(), testUPID, noWarnings(t))
	if err != nil || r.ExitStatus != "OK" || r.UPID != testUPID || r.Duration == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if clock.sleeps[0] != 50*time.Millisecond || slices.Max(clock.sleeps) != time.Second || !slices.IsSorted(clock.sleeps) {
		t.Errorf("pauses %v, want from 50ms up to 1s", clock.sleeps)
	}
	var waited time.Duration
	for _, d := range clock.sleeps {
		if want := min(max(50*time.Millisecond, waited/10), time.Second); d != want {
			t.Errorf("after %s: a pause of %s, want %s", waited, d, want)
		}
		waited += d
	}
	if got := s.seen()[0].path; got != "/nodes/pve1/tasks/UPID%3Apve1%3A000010F5%3A00041178%3A6B0E5325%3Avzclone%3A9000%3Aci%40pve%21tests%3A/status" {
		t.Errorf("asked for %s", got)
	}
}

func TestATaskWithWarningsSucceededAndItsWarningsAreReported(t *testing.T) {
	t.Parallel()
	log := []string{"extracting archive", "WARN: old systemd (< v232) detected", "WARNING: missing key", "TASK WARNINGS: 2"}
	s := taskServer(t, log, func(int) (http.HandlerFunc, map[string]any) { return nil, stopped("WARNINGS: 2") })
	c, _ := testClient(t, s.URL)
	var got []string
	r, err := c.Wait(t.Context(), testUPID, func(w string) { got = append(got, w) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"old systemd (< v232) detected", "missing key"}
	if !slices.Equal(got, want) || !slices.Equal(r.Warnings, want) || r.ExitStatus != "WARNINGS: 2" {
		t.Errorf("reported %q, result %+v", got, r)
	}
}

func TestWarningsAreReportedEvenWhenTheLogSaysNothing(t *testing.T) {
	t.Parallel()
	s := taskServer(t, []string{"done"}, func(int) (http.HandlerFunc, map[string]any) { return nil, stopped("WARNINGS: 1") })
	c, _ := testClient(t, s.URL)
	var got []string
	if _, err := c.Wait(t.Context(), testUPID, func(w string) { got = append(got, w) }); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWaitCannotBeCalledWithoutAPlaceForWarnings(t *testing.T) {
	t.Parallel()
	c, _ := testClient(t, "https://pve.invalid")
	if _, err := c.Wait(t.Context(), testUPID, nil); err == nil {
		t.Error("it was")
	}
}

func TestAFailedTaskSaysWhyWithTheEndOfItsLog(t *testing.T) {
	t.Parallel()
	var log []string
	for i := range 100 {
		log = append(log, "line "+strconv.Itoa(i))
	}
	log = append(log, "TASK ERROR: CT is locked (backup)")
	s := taskServer(t, log, func(int) (http.HandlerFunc, map[string]any) { return nil, stopped("CT is locked (backup)") })
	c, _ := testClient(t, s.URL)
	_, err := c.Wait(t.Context(), testUPID, noWarnings(t))
	var e *TaskError
	if !errors.As(err, &e) || e.Meaning != Locked || e.LockedBy != "backup" || e.StillRunning || !Means(err, Locked) {
		t.Fatalf("got %+v", err)
	}
	if len(e.LogTail) != failureTail || e.LogTail[failureTail-1] != log[100] {
		t.Errorf("tail %q", e.LogTail)
	}
	for _, want := range []string{"task vzclone of 9000 on node pve1 failed", "CT is locked (backup)", "line 99"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestPollsThatDoNotGetThroughAreBorne(t *testing.T) {
	t.Parallel()
	trouble := []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { drop(w) },
		func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, 596, "Broken pipe", "") },
		func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, 599, "Too many redirections", "") },
		func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, 503, "Service Unavailable", "") },
		func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, 429, "Too Many Requests", "") },
		func(w http.ResponseWriter, _ *http.Request) { refuse(w, 500, "got no answer", nil) },
	}
	s := taskServer(t, nil, func(n int) (http.HandlerFunc, map[string]any) {
		if n <= 2*len(trouble) {
			if n%2 == 1 {
				return trouble[n/2], nil
			}
			return nil, running()
		}
		return nil, stopped("OK")
	})
	c, _ := testClient(t, s.URL)
	if _, err := c.Wait(t.Context(), testUPID, noWarnings(t)); err != nil {
		t.Error(err)
	}
}

func TestPatienceWithPollsEnds(t *testing.T) {
	t.Parallel()
	s := taskServer(t, nil, func(int) (http.HandlerFunc, map[string]any) {
		return func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, 596, "Broken pipe", "") }, nil
	})
	c, clock := testClient(t, s.URL, func(cfg *Config) { cfg.PollPatience = 30 * time.Second })
	begin := clock.Now()
	_, err := c.Wait(t.Context(), testUPID, noWarnings(t))
	var e *TaskError
	if !errors.As(err, &e) || !e.StillRunning || !Means(err, NodeUnreachable) {
		t.Fatalf("got %v", err)
	}
	if waited := clock.Now().Sub(begin); waited < 30*time.Second || waited > 32*time.Second {
		t.Errorf("gave up after %s", waited)
	}
}

func TestAnAnswerAboutTheTaskItselfEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  int
		message string
		params  map[string]string
		want    Meaning
	}{
		{400, "Parameter verification failed.", map[string]string{"upid": "no such task"}, NoSuchTask},
		{403, "Permission check failed (/nodes/pve1, Sys.Audit)", nil, Forbidden},
		{401, "No ticket", nil, Unauthorised},
	} {
		s := taskServer(t, nil, func(int) (http.HandlerFunc, map[string]any) {
			return func(w http.ResponseWriter, _ *http.Request) { refuse(w, c.status, c.message, c.params) }, nil
		})
		client, _ := testClient(t, s.URL)
		_, err := client.Wait(t.Context(), testUPID, noWarnings(t))
		if !Means(err, c.want) || len(s.seen()) != 1 {
			t.Errorf("%d: %v after %d requests", c.status, err, len(s.seen()))
		}
	}
}

func TestACancelledWaitSaysWhatStillRunsAndWhere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := taskServer(t, nil, func(n int) (http.HandlerFunc, map[string]any) {
		if n == 3 {
			cancel()
		}
		return nil, running()
	})
	c, _ := testClient(t, s.URL)
	_, err := c.Wait(ctx, testUPID, noWarnings(t))
	var e *TaskError
	if !errors.As(err, &e) || !e.StillRunning || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"vzclone of 9000", "node pve1", string(testUPID)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestStopAsksTheTasksNode(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, nil) })
	c, _ := testClient(t, s.URL)
	if err := c.StopTask(t.Context(), testUPID); err != nil {
		t.Fatal(err)
	}
	if r := s.seen()[0]; r.method != "DELETE" || !strings.HasPrefix(r.path, "/nodes/pve1/tasks/UPID%3A") {
		t.Errorf("sent %s %s", r.method, r.path)
	}
}

func TestUPIDs(t *testing.T) {
	t.Parallel()
	for upid, want := range map[UPID]TaskID{
		testUPID: {Node: "pve1", Type: "vzclone", ID: "9000", User: "ci@pve!tests", Started: time.Unix(0x6B0E5325, 0).UTC()},
		"UPID:cl2:00000157:0007878C:6B0E5C01:vzcreate:100:root@pam:":                    {Node: "cl2", Type: "vzcreate", ID: "100", User: "root@pam", Started: time.Unix(0x6B0E5C01, 0).UTC()},
		"UPID:pve1:00001E99:000A1B9C:6B0E629B:move_volume:400-mp0>401-mp0:admin@pve!a:": {Node: "pve1", Type: "move_volume", ID: "400-mp0>401-mp0", User: "admin@pve!a", Started: time.Unix(0x6B0E629B, 0).UTC()},
		"UPID:pve1:00001E99:000A1B9C:6B0E629B:startall::root@pam:":                      {Node: "pve1", Type: "startall", User: "root@pam", Started: time.Unix(0x6B0E629B, 0).UTC()},
	} {
		got, err := upid.Parse()
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", upid, got, err)
		}
	}
	for _, bad := range []UPID{"", "garbage", "UPID:pve1:1:2:3:vzstart:100", "UPID:pve1:0:0:zz:vzstart:1:root@pam:", "UPID::0:0:0:vzstart:1:root@pam:"} {
		if _, err := bad.Parse(); err == nil {
			t.Errorf("%q was taken for a UPID", bad)
		}
	}
}

func TestATemplateIsWaitedForByItsConfiguration(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r request) {
		switch {
		case strings.HasSuffix(r.path, "/tasks"):
			data(w, []any{})
		case strings.HasSuffix(r.path, "/config") && reads.Add(1) < 4:
			data(w, map[string]any{"hostname": "x", "digest": "d"})
		case strings.HasSuffix(r.path, "/config"):
			data(w, map[string]any{"hostname": "x", "template": 1})
		default:
			data(w, nil)
		}
	})
	c, _ := testClient(t, s.URL)
	if err := c.ConvertToTemplate(t.Context(), "pve1", 100); err != nil || reads.Load() != 4 {
		t.Errorf("%v after %d reads", err, reads.Load())
	}
}

func TestATemplateWhoseWorkerFailsIsAnErrorWithItsReason(t *testing.T) {
	t.Parallel()
	var posted atomic.Bool
	upid := strings.Replace(string(testUPID), "vzclone", "vztemplate", 1)
	s := serve(t, func(w http.ResponseWriter, r request) {
		switch {
		case strings.HasSuffix(r.path, "/tasks") && posted.Load():
			data(w, []any{map[string]any{"upid": upid, "status": "template feature is not available", "endtime": 1}})
		case strings.HasSuffix(r.path, "/tasks"), strings.HasSuffix(r.path, "/log"):
			data(w, []any{})
		case strings.HasSuffix(r.path, "/config"):
			data(w, map[string]any{"hostname": "x"})
		default:
			posted.Store(true)
			data(w, nil)
		}
	})
	c, _ := testClient(t, s.URL)
	err := c.ConvertToTemplate(t.Context(), "pve1", 100)
	var e *TaskError
	if !errors.As(err, &e) || e.ExitStatus != "template feature is not available" {
		t.Errorf("got %v", err)
	}
}
