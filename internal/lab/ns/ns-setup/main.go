// Command ns-setup says whether this machine can run the lab's engine ns, and builds its base images ahead.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns"
)

const usage = `ns-setup check           exit code 0 if this machine can run real containers, else 1 and the reason
ns-setup images [NAME…]  build base images into the cache (all, if none is named) unless they are there
ns-setup clean           remove the cache: base images, and what killed labs left`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		return ns.Check()
	case len(args) > 0 && args[0] == "images":
		return ns.BuildImages(ctx, ns.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}, args[1:]...)
	case len(args) == 1 && args[0] == "clean":
		return ns.Clean(ns.Options{})
	}
	return errors.New(usage)
}
