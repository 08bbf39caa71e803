package conformance

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
)

//go:embed claimed.txt
var claimedText string

//go:embed deviations.txt
var deviationsText string

// Claimed are the flows that the lab claims to answer as recorded.
func Claimed() []string { return lines(claimedText) }

// Deviations are what differs on purpose, "flow n", with the reason. They count as disagreeing.
func Deviations() map[string]string {
	out := map[string]string{}
	for _, line := range lines(deviationsText) {
		what, reason, _ := strings.Cut(line, ":")
		out[strings.TrimSpace(what)] = strings.TrimSpace(reason)
	}
	return out
}

// lines are those that aren't empty or comments.
func lines(text string) []string {
	var out []string
	scanner := bufio.NewScanner(strings.NewReader(text))
	for scanner.Scan() {
		if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// Replay replays one flow against a lab of its own.
func Replay(ctx context.Context, flow string) (results []Result, err error) {
	exchanges, err := load(flow)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, flow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	c, err := control.New(w.server.URL(), w.server.Secret(), w.server.CertPEM())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.RefreshStatus(ctx); err != nil {
		return nil, err
	}
	r := &replay{
		ctx: ctx, flow: flow, world: w, learned: map[string]string{}, followers: map[string]bool{}, started: map[string]bool{}, stat: newStatClock(ctx, flow, c),
	}
	if err := r.run(exchanges); err != nil {
		return nil, fmt.Errorf("flow %s: %w", flow, err)
	}
	return r.results, nil
}

// ReplayAll replays flows, a few at a time, each against a lab of its own. Results come in the order of the flows.
func ReplayAll(ctx context.Context, flows []string) ([]Result, error) {
	found := make([][]Result, len(flows))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, flow := range flows {
		group.Go(func() (err error) {
			found[i], err = Replay(ctx, flow)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// Report writes what was found: a line for each flow, with verbose every difference, at last "N of M exchanges agree".
func Report(out io.Writer, results []Result, verbose bool) (agree, all int, err error) {
	deviations := Deviations()
	counts := map[string][2]int{}
	var flows []string
	var text strings.Builder
	for _, r := range results {
		n, seen := counts[r.Flow]
		if !seen {
			flows = append(flows, r.Flow)
		}
		n[1]++
		if r.Agrees() {
			n[0]++
			agree++
		} else if verbose {
			fmt.Fprintf(&text, "%s %d: %s (%s)\n", r.Flow, r.N, r.What, r.Step)
			if reason := deviations[fmt.Sprintf("%s %d", r.Flow, r.N)]; reason != "" {
				fmt.Fprintf(&text, "    on purpose: %s\n", reason)
			}
			for _, d := range r.Diffs {
				fmt.Fprintf(&text, "    %s\n", d)
			}
		}
		counts[r.Flow] = n
	}
	for _, flow := range flows {
		fmt.Fprintf(&text, "%-16s %d of %d\n", flow, counts[flow][0], counts[flow][1])
	}
	fmt.Fprintf(&text, "%d of %d exchanges agree\n", agree, len(results))
	_, err = io.WriteString(out, text.String())
	return agree, len(results), err
}
