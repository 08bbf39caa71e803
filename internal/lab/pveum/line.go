package pveum

import (
	"context"
	"fmt"
	"io"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Line runs one command line as it would be typed, quotes and all.
func (c CLI) Line(ctx context.Context, line string, out io.Writer) error {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return fmt.Errorf("%q is no shell command: %w", line, err)
	}
	if len(file.Stmts) != 1 {
		return fmt.Errorf("%q is not one command", line)
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return fmt.Errorf("%q is not a simple command", line)
	}
	argv, err := expand.Fields(&expand.Config{}, call.Args...)
	if err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	if err := c.Run(ctx, argv, out); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return nil
}
