//go:build linux

package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Client makes calls over a control socket.
type Client struct {
	control *net.UnixConn
	mu      sync.Mutex // one announcement at a time
}

// NewClient calls the server at the other end of a packet socket (Pair(unix.SOCK_SEQPACKET)).
func NewClient(control *net.UnixConn) *Client { return &Client{control: control} }

// Close hangs up for good; calls under way go on.
func (c *Client) Close() error { return c.control.Close() }

// Call makes a call and waits for its answer, which fills result unless that is nil. Files are passed along and stay
// the caller's to close. The files that come back are the caller's too.
func (c *Client) Call(ctx context.Context, method string, args, result any, files ...*os.File) ([]*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	conn, theirs, err := Pair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	c.mu.Lock()
	_, _, err = c.control.WriteMsgUnix([]byte{0}, unix.UnixRights(int(theirs.Fd())), nil)
	c.mu.Unlock()
	_ = theirs.Close()
	if err != nil {
		return nil, fmt.Errorf("%s: the process that does it is gone: %w", method, err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := send(conn, request{Method: method, Args: raw}, files); err != nil {
		return nil, c.broken(ctx, method, err)
	}
	var answer response
	back, err := receive(conn, &answer)
	switch {
	case err != nil:
		closeAll(back)
		return nil, c.broken(ctx, method, err)
	case answer.Fault != nil:
		closeAll(back)
		return nil, answer.Fault
	case result == nil:
		return back, nil
	}
	return back, json.Unmarshal(answer.Result, result)
}

func (c *Client) broken(ctx context.Context, method string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("%s: the process that does it went away: %w", method, err)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
