//go:build linux

package ns

import (
	"context"
	"errors"
	"os"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/supervisor"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// Remove removes a lab's folder, or the cache, which no lab uses any more. In an ordinary user's there are files of that
// user's subordinate ids, which only the root of a user namespace that has them can remove.
func Remove(folder string) error {
	if err := os.RemoveAll(folder); !errors.Is(err, os.ErrPermission) || os.Geteuid() == 0 {
		return err
	}
	none, err := os.Open(os.DevNull) // there is no lock to hold
	if err != nil {
		return err
	}
	p, err := launch(none)
	if err != nil {
		return err
	}
	_, err = wire.NewClient(p.control).Call(context.Background(), supervisor.CallRemove, folder, nil)
	return errors.Join(err, p.end())
}

// Clean removes the cache: base images, and what killed labs left.
func Clean(o Options) error {
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return err
	}
	return Remove(cache)
}
