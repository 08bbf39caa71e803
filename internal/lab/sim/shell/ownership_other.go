//go:build !unix

package shell

import "github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"

// ownership is only looked at on Unix.
func ownership(*vfs.Info, vfs.Cred) any { return nil }
