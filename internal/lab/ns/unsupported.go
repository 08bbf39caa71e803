//go:build !linux

package ns

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// New says that there are no Linux containers here.
func New(Options) (engine.Engine, error) { return nil, Check() }

// Remove removes a folder.
func Remove(folder string) error { return os.RemoveAll(folder) }

// Clean has nothing to remove.
func Clean(Options) error { return nil }

// BuildImages says so too.
func BuildImages(context.Context, Options, ...string) error { return Check() }

// Check says why.
func Check() error {
	return fmt.Errorf("engine ns needs Linux, this is %s: use the engine sim, which runs everywhere, or a Linux virtual machine", runtime.GOOS)
}
