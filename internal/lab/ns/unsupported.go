//go:build !linux

package ns

import (
	"fmt"
	"runtime"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// New says that there are no Linux containers here.
func New(Options) (engine.Engine, error) { return nil, Check() }

// Check says why.
func Check() error {
	return fmt.Errorf("engine ns needs Linux, this is %s: use the engine sim, which runs everywhere, or a Linux virtual machine", runtime.GOOS)
}
