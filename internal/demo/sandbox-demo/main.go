// Command sandbox-demo is `make demo`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/demo"
)

func main() {
	verbose := flag.Bool("v", os.Getenv("VERBOSE") != "", "show what the command line prints, too (variable VERBOSE)")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo.Run(ctx, demo.Options{Out: os.Stdout, Verbose: *verbose, Engine: os.Getenv("ENGINE")})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}
