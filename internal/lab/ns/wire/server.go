//go:build linux

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Call is a call as its handler sees it.
type Call struct {
	args json.RawMessage
	// Files came with the call. They are closed when the handler returns, unless it takes them out.
	Files []*os.File
	// Pass, set by the handler, goes back with the answer, and is closed then.
	Pass *os.File
}

// Args reads the call's arguments.
func (c *Call) Args(into any) error {
	if err := json.Unmarshal(c.args, into); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}

// Handler does a call. Its context ends when the caller gives up or is gone.
type Handler func(ctx context.Context, c *Call) (any, error)

// With makes a handler of a function that takes its arguments decoded.
func With[A, R any](do func(ctx context.Context, args A) (R, error)) Handler {
	return func(ctx context.Context, c *Call) (any, error) {
		var args A
		if err := c.Args(&args); err != nil {
			return nil, err
		}
		return do(ctx, args)
	}
}

// Do makes a handler of a function without a result.
func Do[A any](do func(ctx context.Context, args A) error) Handler {
	return With(func(ctx context.Context, args A) (struct{}, error) { return struct{}{}, do(ctx, args) })
}

// Serve takes calls from a control socket until the other end is gone, each in a goroutine of its own. It doesn't wait
// for calls under way.
func Serve(control *net.UnixConn, handlers map[string]Handler) {
	rights := make([]byte, unix.CmsgSpace(4*maxFiles))
	for {
		n, rn, _, _, err := control.ReadMsgUnix(make([]byte, 1), rights)
		files := received(rights[:rn])
		if err != nil || n == 0 {
			closeAll(files)
			return
		}
		for _, f := range files {
			if conn, err := Conn(f); err == nil {
				go serve(conn, handlers)
			}
		}
	}
}

func serve(conn *net.UnixConn, handlers map[string]Handler) {
	defer func() { _ = conn.Close() }()
	var r request
	files, err := receive(conn, &r)
	call := &Call{args: r.Args, Files: files}
	defer func() { closeAll(call.Files) }()
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // the caller sends nothing more: whatever ends this read is its hanging up
		_, _ = io.Copy(io.Discard, conn)
		cancel()
	}()
	var answer response
	handler := handlers[r.Method]
	if handler == nil {
		handler = func(context.Context, *Call) (any, error) { return nil, errors.New("unknown call " + r.Method) }
	}
	result, err := handler(ctx, call)
	if err == nil {
		answer.Result, err = json.Marshal(result)
	}
	if err != nil {
		answer = response{Fault: newFault(err)}
	}
	var pass []*os.File
	if call.Pass != nil {
		pass = append(pass, call.Pass)
	}
	_ = send(conn, answer, pass) // a caller that is gone wants no answer
	closeAll(pass)
}
