// Command sandbox-bench is `make bench`. It exits with 1 when a figure is short of its bound, with 2 when it can't measure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/bench"
)

func main() {
	area := flag.String("area", "", "measure this area only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	short, err := bench.Run(ctx, os.Stdout, os.Stderr, *area)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case len(short) > 0:
		fmt.Fprintf(os.Stderr, "bench: %d figures are short of their bound\n", len(short))
		os.Exit(1)
	}
}
