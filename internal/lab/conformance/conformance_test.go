package conformance

import (
	"errors"
	"strings"
	"testing"
)

// minimum is the share of recorded exchanges that the lab must answer as recorded.
const minimum = 0.95

func TestTheLabAnswersTheClaimedFlowsAsRecorded(t *testing.T) {
	t.Parallel()
	results, err := ReplayAll(t.Context(), Claimed())
	if errors.Is(err, ErrNoTraces) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	agree, all, err := Report(&out, results, true)
	if err != nil {
		t.Fatal(err)
	}
	if float64(agree) < minimum*float64(all) {
		t.Errorf("too few agree:\n%s", out.String())
	}
}

func TestEveryDeviationNamesAClaimedFlow(t *testing.T) {
	t.Parallel()
	for what, reason := range Deviations() {
		flow, _, _ := strings.Cut(what, " ")
		if reason == "" || !strings.Contains(claimedText, flow) {
			t.Errorf("%q: %q", what, reason)
		}
	}
}
