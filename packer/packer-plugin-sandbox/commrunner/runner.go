// Package commrunner runs the house's scripts by a Packer communicator: over SSH, through a node, in a Docker container.
package commrunner

import (
	"context"
	"fmt"
	"io"
	"strings"

	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Runner implements remote.Runner.
type Runner struct {
	Comm packersdk.Communicator
	// Prefix comes before the shell: "sudo -n" where the login isn't root's.
	Prefix string
}

// Run runs a script as root.
func (r Runner) Run(ctx context.Context, s remote.Script) (remote.Result, error) {
	words := make([]string, 0, len(s.Args)+1)
	for _, a := range append([]string{s.Text, "sh"}, s.Args...) {
		words = append(words, guest.Quote(a))
	}
	command := "sh -c " + strings.Join(words, " ")
	if r.Prefix != "" {
		command = r.Prefix + " " + command
	}
	stdin := s.Stdin
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	stdout, stderr := remote.NewCapture(s.Limit), remote.NewCapture(s.Limit)
	cmd := &packersdk.RemoteCmd{Command: command, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	if err := r.Comm.Start(ctx, cmd); err != nil {
		return remote.Result{}, err
	}
	ended := make(chan int, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ctx.Done():
		return remote.Result{}, context.Cause(ctx)
	case code := <-ended:
		if code == packersdk.CmdDisconnect {
			return remote.Result{}, fmt.Errorf("the connection was lost while a script ran: %s", strings.TrimSpace(string(stderr.Bytes())))
		}
		return remote.Result{ExitCode: code, Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Truncated: stdout.Truncated()}, nil
	}
}

// Output runs a script that must succeed and returns what it prints.
func Output(ctx context.Context, r remote.Runner, text string, stdin io.Reader, args ...string) (string, error) {
	res, err := r.Run(ctx, remote.Script{Text: text, Args: args, Stdin: stdin})
	if err != nil {
		return "", err
	}
	if res.ExitCode != 0 {
		return "", fmt.Errorf("exit status %d: %s", res.ExitCode, strings.TrimSpace(string(res.Stderr)))
	}
	return string(res.Stdout), nil
}
