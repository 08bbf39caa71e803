// Package control is the client of the lab's control API: faults, time, the request log, and a look at what is left.
package control

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// The types of the control API's calls.
type (
	// Fault is something that goes wrong, or waits, at chosen requests.
	Fault = server.Fault
	// FaultState is a fault and what became of it.
	FaultState = server.FaultState
	// TaskFault makes tasks of a type fail.
	TaskFault = server.TaskFault
	// Delays are the times that things take.
	Delays = server.Delays
	// Report is what is known about the requests since the last reset.
	Report = server.RequestReport
	// Request is one request of a Report.
	Request = server.RequestEntry
	// Dump is what the lab holds.
	Dump = server.Dump
	// Guest changes a container behind the API's back.
	Guest = server.GuestRequest
	// Storage changes the size of a storage.
	Storage = server.StorageRequest
)

// Kinds of faults; server.Fault… say what each does.
const (
	Status      = server.FaultStatus
	StatusAfter = server.FaultStatusAfter
	DropBefore  = server.FaultDropBefore
	DropAfter   = server.FaultDropAfter
	Latency     = server.FaultLatency
	Hold        = server.FaultHold
	HoldDrop    = server.FaultHoldDrop
	HoldAfter   = server.FaultHoldAfter
)

// Client talks to a lab's control API. It has its own connections, so that it doesn't count among the requests.
type Client struct {
	base, secret string
	http         *http.Client
}

// New makes a client. endpoint is "https://127.0.0.1:port", caPEM the lab's certificate.
func New(endpoint, secret, caPEM string) (*Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(caPEM)) {
		return nil, errors.New("lab control: no certificate in the PEM text")
	}
	return &Client{
		base: endpoint, secret: secret,
		http: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, IdleConnTimeout: 2 * time.Second,
		}},
	}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) call(ctx context.Context, name string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("lab control %s: %w", name, err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/lab/"+name, body)
	if err != nil {
		return fmt.Errorf("lab control %s: %w", name, err)
	}
	req.Header.Set(server.SecretHeader, c.secret)
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("lab control %s: %w", name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("lab control %s: %w", name, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("lab control %s: %s: %s", name, resp.Status, raw)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("lab control %s: %w", name, err)
	}
	return nil
}

// Reset makes the lab calm: no faults, nothing held, all nodes there, the first delays. Guests, time and the request log stay.
func (c *Client) Reset(ctx context.Context) error { return c.call(ctx, "reset", nil, nil) }

// Inject installs a fault and returns its id.
func (c *Client) Inject(ctx context.Context, f Fault) (int, error) {
	var id int
	err := c.call(ctx, "fault", f, &id)
	return id, err
}

// FailTask makes tasks fail.
func (c *Client) FailTask(ctx context.Context, f TaskFault) error {
	return c.call(ctx, "task-fault", f, nil)
}

// Faults are the installed faults with their counts.
func (c *Client) Faults(ctx context.Context) ([]FaultState, error) {
	var out []FaultState
	err := c.call(ctx, "faults", nil, &out)
	return out, err
}

// WaitFired waits until a fault has hit a number of requests; an error after a while (10 s if 0).
func (c *Client) WaitFired(ctx context.Context, id, fired int, atMost time.Duration) (FaultState, error) {
	var out FaultState
	err := c.call(ctx, "wait", server.WaitRequest{ID: id, Fired: fired, For: atMost}, &out)
	return out, err
}

// WaitHeld waits until a Hold or HoldAfter fault holds a number of requests.
func (c *Client) WaitHeld(ctx context.Context, id, held int, atMost time.Duration) (FaultState, error) {
	var out FaultState
	err := c.call(ctx, "wait", server.WaitRequest{ID: id, Held: held, For: atMost}, &out)
	return out, err
}

// Release lets go of what a fault holds now.
func (c *Client) Release(ctx context.Context, id int) error {
	return c.call(ctx, "release", id, nil)
}

// NodeAway takes a node away, or brings it back.
func (c *Client) NodeAway(ctx context.Context, node string, away bool) error {
	return c.call(ctx, "node", server.NodeRequest{Node: node, Away: away}, nil)
}

// Jump moves the lab's clock and returns its time.
func (c *Client) Jump(ctx context.Context, d time.Duration) (time.Time, error) {
	var now time.Time
	err := c.call(ctx, "time", d, &now)
	return now, err
}

// Delays returns the present delays.
func (c *Client) Delays(ctx context.Context) (Delays, error) {
	var out Delays
	err := c.call(ctx, "delays", nil, &out)
	return out, err
}

// SetDelays replaces the delays: take those of Delays and change what matters.
func (c *Client) SetDelays(ctx context.Context, d Delays) error {
	return c.call(ctx, "delays", d, nil)
}

// Requests is what is known about the API's requests since the last ResetRequests.
func (c *Client) Requests(ctx context.Context) (Report, error) {
	var out Report
	err := c.call(ctx, "requests", nil, &out)
	return out, err
}

// ResetRequests empties the request log.
func (c *Client) ResetRequests(ctx context.Context) error {
	return c.call(ctx, "requests/reset", nil, nil)
}

// Dump is what the lab holds now.
func (c *Client) Dump(ctx context.Context) (Dump, error) {
	var out Dump
	err := c.call(ctx, "dump", nil, &out)
	return out, err
}

// ChangeGuest edits a container's configuration file as somebody on the node would.
func (c *Client) ChangeGuest(ctx context.Context, g Guest) error { return c.call(ctx, "guest", g, nil) }

// ResizeStorage changes how much a storage can hold: less than what is on it makes it full.
func (c *Client) ResizeStorage(ctx context.Context, st Storage) error {
	return c.call(ctx, "storage", st, nil)
}

// RefreshStatus lets the status service look at once, so that /cluster/resources is up to date.
func (c *Client) RefreshStatus(ctx context.Context) error { return c.call(ctx, "refresh", nil, nil) }
