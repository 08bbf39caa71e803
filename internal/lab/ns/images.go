//go:build linux

package ns

import (
	"context"
	"log/slog"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/image"
)

// BuildImages builds base images into the cache, all if none is named, unless they are there.
func BuildImages(ctx context.Context, o Options, names ...string) error {
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if len(names) == 0 {
		names = image.Names()
	}
	for _, name := range names {
		built, err := image.Ensure(ctx, imageFolder(cache), name, o.Log)
		if err != nil {
			return err
		}
		o.Log.Info("base image", "name", built.Name, "file", built.Tar)
	}
	return nil
}

// BaseImage builds a base image unless it is there, and returns its tar file: for tests that need a real root filesystem
// and no lab.
func BaseImage(ctx context.Context, name string) (tarFile string, err error) {
	cache, err := cacheFolder("")
	if err != nil {
		return "", err
	}
	built, err := image.Ensure(ctx, imageFolder(cache), name, slog.New(slog.DiscardHandler))
	return built.Tar, err
}
