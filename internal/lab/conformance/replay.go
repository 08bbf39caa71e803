package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// replay runs one flow.
type replay struct {
	ctx       context.Context
	flow      string
	world     *world
	followers map[string]bool   // containers that a call starts in an unnamed task
	learned   map[string]string // recorded UPIDs, digests, MACs → the lab's
	ticket    string
	csrf      string
	started   map[string]bool // recorded UPIDs whose call was replayed
	stat      statClock
	results   []Result
}

// Result is one replayed exchange.
type Result struct {
	Flow  string
	N     int
	Step  string
	What  string   // "GET /version" or "task vzclone"
	Diffs []string // none: it agrees
}

// Agrees says whether the lab answered as recorded.
func (r Result) Agrees() bool { return len(r.Diffs) == 0 }

// response is the lab's answer.
type response struct {
	status int
	reason string
	body   any
	err    error
}

func (r *replay) run(exchanges []*Exchange) error {
	if err := r.login(); err != nil {
		return err
	}
	for _, e := range exchanges {
		if upid := e.startedUPID(); upid != "" {
			r.started[upid] = true
		}
	}
	silent := silentWaits(exchanges)
	for i := 0; i < len(exchanges); {
		e := exchanges[i]
		switch {
		case e.Kind == "task":
			r.task(e)
			i++
		case e.group() != "":
			n := 1
			for i+n < len(exchanges) && exchanges[i+n].group() == e.group() {
				n++
			}
			r.together(exchanges[i : i+n])
			i += n
		default:
			r.pause(e)
			if e.Noted {
				if err := r.onNode(e); err != nil {
					return err
				}
			}
			r.waitForFollower(e)
			if ct := startsAfterwards(e); ct != "" {
				r.followers[ct] = true
			}
			if err := r.stat.before(e); err != nil {
				return err
			}
			r.record(e, r.send(e))
			r.stat.after(e)
			if silent[e] {
				r.waitSilently(e)
			}
			i++
		}
	}
	return nil
}

// record compares an answer and keeps the result.
func (r *replay) record(e *Exchange, got response) {
	c := &comparison{learned: r.learned}
	c.answer(e, got)
	r.results = append(r.results, Result{Flow: e.Flow, N: e.N, Step: e.Step, What: e.Method + " " + e.Path, Diffs: c.diffs})
}

// answer compares a whole answer.
func (c *comparison) answer(e *Exchange, got response) {
	if got.err != nil {
		c.differ("request", "%v", got.err)
		return
	}
	if got.status != e.Status {
		c.differ("status", "is %d %s, recorded %d %s", got.status, got.reason, e.Status, e.Reason)
	}
	if normal(got.reason) != normal(e.Reason) {
		c.differ("reason", "is %q, recorded %q", got.reason, e.Reason)
	}
	c.history = isHistory(e)
	c.value("body", "", e.Body, got.body)
}

// isHistory: lists of what happened on the node also before the recording.
func isHistory(e *Exchange) bool {
	if e.Status != http.StatusOK || e.Form["source"] == "active" {
		return false
	}
	path := e.Path
	return strings.HasSuffix(path, "/tasks") || path == "/cluster/log" || strings.HasSuffix(path, "/rrddata")
}

// together sends the calls of a group at the same time. Which of them wins isn't determined, so answers are matched to the
// recorded ones as a set.
func (r *replay) together(group []*Exchange) {
	// The recorded winner goes first; who waits for whom after that is the server's business.
	group = append([]*Exchange(nil), group...)
	slices.SortStableFunc(group, func(a, b *Exchange) int { return a.Status - b.Status })
	answers := make([]response, len(group))
	var all sync.WaitGroup
	for i, e := range group {
		all.Add(1)
		go func() {
			defer all.Done()
			answers[i] = r.send(e)
		}()
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the recorded calls went out one after the other, unawaited
	}
	all.Wait()
	used := make([]bool, len(answers))
	for _, e := range group {
		best, fewest := -1, 0
		for j := range answers {
			if used[j] {
				continue
			}
			try := &comparison{learned: map[string]string{}}
			try.answer(e, answers[j])
			if best < 0 || len(try.diffs) < fewest {
				best, fewest = j, len(try.diffs)
			}
		}
		used[best] = true
		r.record(e, answers[best])
		r.stat.after(e)
	}
}

// send makes a recorded call.
func (r *replay) send(e *Exchange) response {
	target := r.world.server.URL() + "/api2/json" + r.translatePath(e.Path)
	form := url.Values{}
	for name, value := range e.Form {
		form.Set(name, r.translate(plain(value)))
	}
	var body io.Reader
	contentType := ""
	switch {
	case e.RawBody != "":
		body = strings.NewReader(e.RawBody)
	case e.Method == http.MethodGet || e.Method == http.MethodDelete:
		if len(form) > 0 {
			target += "?" + form.Encode()
		}
	case e.Form != nil:
		body, contentType = strings.NewReader(form.Encode()), "application/x-www-form-urlencoded"
	}
	req, err := http.NewRequestWithContext(r.ctx, e.Method, target, body)
	if err != nil {
		return response{err: err}
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if token := r.world.tokens[e.Auth]; token != "" {
		req.Header.Set("Authorization", "PVEAPIToken="+token)
	}
	for name, value := range e.Headers {
		req.Header.Set(name, r.header(e, name, value))
	}
	return r.do(req)
}

// header puts the present login into the headers of calls that were accepted then.
func (r *replay) header(e *Exchange, name, value string) string {
	live := !strings.Contains(value, "%3A00000000%3A")
	switch {
	case name == "Cookie" && live:
		return "PVEAuthCookie=" + url.QueryEscape(r.ticket)
	case name == "CSRFPreventionToken" && e.Status != http.StatusUnauthorized:
		return r.csrf
	}
	return value
}

func (r *replay) do(req *http.Request) response {
	resp, err := r.world.client.Do(req)
	if err != nil {
		return response{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return response{err: err}
	}
	_, reason, _ := strings.Cut(resp.Status, " ")
	out := response{status: resp.StatusCode, reason: reason, body: string(raw)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		var decoded any
		if err := json.Unmarshal(raw, &decoded); err != nil {
			return response{err: fmt.Errorf("body %q: %w", raw, err)}
		}
		out.body = decoded
	}
	return out
}

func (r *replay) login() error {
	got := r.send(&Exchange{Method: http.MethodPost, Path: "/access/ticket", Form: map[string]any{"username": "admin@pve", "password": "adminpass1"}})
	body, _ := got.body.(map[string]any)
	data, _ := body["data"].(map[string]any)
	r.ticket, _ = data["ticket"].(string)
	r.csrf, _ = data["CSRFPreventionToken"].(string)
	if r.ticket == "" || r.csrf == "" {
		return errors.Join(fmt.Errorf("login: %d %s", got.status, got.reason), got.err)
	}
	return nil
}

// plain is a form value as text.
func plain(v any) string {
	switch x := v.(type) {
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		if x {
			return "true"
		}
		return "false"
	}
	return fmt.Sprint(v)
}

// translate replaces recorded values by the lab's.
func (r *replay) translate(text string) string {
	if strings.HasPrefix(text, "PVE:") {
		return r.ticket
	}
	for was, is := range r.learned {
		if len(was) > 8 {
			text = strings.ReplaceAll(text, was, is)
		}
	}
	return text
}

// translatePath does the same in a path, where ids are encoded.
func (r *replay) translatePath(path string) string {
	for was, is := range r.learned {
		if strings.HasPrefix(was, "UPID:") {
			path = strings.ReplaceAll(path, was, is)
			path = strings.ReplaceAll(path, url.QueryEscape(was), url.QueryEscape(is))
		} else if strings.Contains(path, "vzdump-lxc-") && len(was) > 8 {
			path = strings.ReplaceAll(path, was, is) // the time in a backup's name
		}
	}
	return path
}
