// Package bench measures what the provider costs, in things that don't depend on the machine: requests, connections,
// failures, and ratios between times of the same run. Each figure that has a bound is checked against it.
//
// It runs what a user runs, the real command line with the real binary, against a lab that counts requests.
package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Metric is one figure.
type Metric struct {
	Area  string
	Name  string
	Value string
	Bound string // "" for a figure that is only printed
	OK    bool   // within the bound; true where there is none
}

// String is the metric's line: area, name, value, bound, and ok or SHORT.
func (m Metric) String() string {
	bound, verdict := m.Bound, "ok"
	if bound == "" {
		bound = "-"
	}
	if !m.OK {
		verdict = "SHORT"
	}
	return fmt.Sprintf("%s %s %s %s %s", m.Area, m.Name, m.Value, bound, verdict)
}

// atMost is a count with an upper bound.
func atMost(name string, value, bound int) Metric {
	return Metric{Name: name, Value: fmt.Sprint(value), Bound: fmt.Sprintf("<=%d", bound), OK: value <= bound}
}

// ratioAtMost is a ratio with an upper bound.
func ratioAtMost(name string, value, bound float64) Metric {
	return Metric{Name: name, Value: fmt.Sprintf("%.2f", value), Bound: fmt.Sprintf("<=%.1f", bound), OK: value <= bound}
}

// ratioAtLeast is a ratio with a lower bound.
func ratioAtLeast(name string, value, bound float64) Metric {
	return Metric{Name: name, Value: fmt.Sprintf("%.2f", value), Bound: fmt.Sprintf(">=%.1f", bound), OK: value >= bound}
}

// shown is a figure without a bound.
func shown(name, value string) Metric { return Metric{Name: name, Value: value, OK: true} }

// area measures one part of the product. It hands each metric on as soon as it is known.
type area struct {
	name    string
	measure func(ctx context.Context, log io.Writer, report func(Metric)) error
}

var areas = []area{
	{"fleet", measureFleet},
	{"isolation", measureIsolation},
	{"scale", measureScale},
	{"time", measureTime},
	{"packer", measurePacker},
	{"agent", measureAgent},
}

// Run measures an area, or all for "". Lines of metrics go to out, remarks to log. It returns the metrics that are
// short of their bound.
func Run(ctx context.Context, out, log io.Writer, only string) (short []Metric, err error) {
	var names []string
	for _, a := range areas {
		names = append(names, a.name)
	}
	if only != "" && !slices.Contains(names, only) {
		return nil, fmt.Errorf("no area %q; there is %s", only, strings.Join(names, ", "))
	}
	for _, a := range areas {
		if only != "" && a.name != only {
			continue
		}
		report := func(m Metric) {
			m.Area = a.name
			fmt.Fprintln(out, m)
			if !m.OK {
				short = append(short, m)
			}
		}
		if err := a.measure(ctx, log, report); err != nil {
			return short, fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return short, nil
}
