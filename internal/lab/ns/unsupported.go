//go:build !linux

package ns

import (
	"context"
	"fmt"
	"runtime"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// New says that there are no Linux containers here.
func New(Options) (engine.Engine, error) { return nil, Check() }

// BuildImages says so too.
func BuildImages(context.Context, Options, ...string) error { return Check() }

// Check says why.
func Check() error {
	return fmt.Errorf("engine ns needs Linux, this is %s: use the engine sim, which runs everywhere, or a Linux virtual machine", runtime.GOOS)
}
