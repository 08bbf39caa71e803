package pve

import (
	"net/http"
	"testing"
	"time"
)

func TestClockDifferenceIsThatOfTheQuickestAnswer(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	date := func(d time.Time) http.Header { return http.Header{"Date": {d.Format(http.TimeFormat)}} }
	var s serverClock
	s.note(http.Header{}, at, at)
	s.note(http.Header{"Date": {"yesterday"}}, at, at)
	if s.known {
		t.Fatal("a difference is known although no answer had a date")
	}
	s.note(date(at.Add(90*time.Second)), at, at.Add(20*time.Millisecond))
	// A slow answer, whose date says less, changes nothing.
	s.note(date(at.Add(300*time.Second)), at, at.Add(8*time.Second))
	if !s.known || s.ahead < 90*time.Second || s.ahead > 91*time.Second || s.within > time.Second {
		t.Errorf("got %v within %v, want about 90.5 s", s.ahead, s.within)
	}
	s.note(date(at.Add(-time.Hour)), at, at)
	if s.ahead > -59*time.Minute {
		t.Errorf("a clock that is behind is %v ahead", s.ahead)
	}
}
