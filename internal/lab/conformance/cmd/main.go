// Command cmd replays recorded exchanges against the lab.
//
//	go run ./internal/lab/conformance/cmd [-flow clone,tasks] [-v] [-min 95]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/conformance"
)

func main() {
	flow := flag.String("flow", os.Getenv("FLOW"), "flows to replay, by commas; empty means those in claimed.txt")
	verbose := flag.Bool("v", false, "list every difference")
	minimum := flag.Float64("min", 95, "fail when fewer percent of the exchanges agree")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	code, err := run(ctx, *flow, *verbose, *minimum)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	stop()
	os.Exit(code) //nolint:gocritic // stop is called above
}

func run(ctx context.Context, flow string, verbose bool, minimum float64) (int, error) {
	flows := conformance.Claimed()
	if flow != "" {
		flows = strings.Split(flow, ",")
	}
	results, err := conformance.ReplayAll(ctx, flows)
	if errors.Is(err, conformance.ErrNoTraces) {
		fmt.Println("Nothing is compared:", err)
		return 0, nil
	}
	if err != nil {
		return 1, err
	}
	agree, all, err := conformance.Report(os.Stdout, results, verbose)
	if err != nil || float64(agree)*100 < minimum*float64(all) {
		return 1, err
	}
	return 0, nil
}
