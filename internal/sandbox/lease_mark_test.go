package sandbox

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// The end moves when a lease begins and when it is renewed, and never for anything else: a run that is repeated must
// not renew twice.
func TestALeaseIsRenewedByItsTTLAndItsRenewAlone(t *testing.T) {
	t.Parallel()
	eight := Lease{TTL: 8 * time.Hour, Renew: "c0ffee"}
	with := func(change func(*Lease)) *Lease { l := eight; change(&l); return &l }
	for name, c := range map[string]struct {
		to      *Lease
		changes bool
		end     time.Time
	}{
		"the same":         {with(func(*Lease) {}), false, noon.Add(8 * time.Hour)},
		"another renew":    {with(func(l *Lease) { l.Renew = "decade" }), true, noon.Add(10 * time.Hour)},
		"no renew":         {with(func(l *Lease) { l.Renew = "" }), true, noon.Add(10 * time.Hour)},
		"a longer ttl":     {with(func(l *Lease) { l.TTL = 24 * time.Hour }), true, noon.Add(26 * time.Hour)},
		"a shorter ttl":    {with(func(l *Lease) { l.TTL = time.Hour }), true, noon.Add(3 * time.Hour)},
		"kept from now on": {with(func(l *Lease) { l.Keepalive = true }), true, noon.Add(8 * time.Hour)},
		"stopped by idle":  {with(func(l *Lease) { l.IdleStop = time.Hour }), true, noon.Add(8 * time.Hour)},
		"another action":   {with(func(l *Lease) { l.OnExpiry = ExpiryStop }), false, noon.Add(8 * time.Hour)},
		"none":             {nil, true, time.Time{}},
	} {
		m := exampleMarker()
		if !m.take(&eight, noon) || !m.Expires.Equal(noon.Add(8*time.Hour)) {
			t.Fatalf("a new lease ends at %v", m.Expires)
		}
		if changed := m.take(c.to, noon.Add(2*time.Hour)); changed != c.changes || !m.Expires.Equal(c.end) {
			t.Errorf("%s: changed %v, ends at %v; want %v, %v", name, changed, m.Expires, c.changes, c.end)
		}
	}
	m := exampleMarker()
	if m.take(nil, noon) || m.String() != exampleMarker().String() {
		t.Errorf("no lease became %s", m)
	}
}

func TestALeaseStandsInTheMarkerWhole(t *testing.T) {
	t.Parallel()
	m := exampleMarker()
	m.take(&Lease{TTL: 90 * time.Minute, Renew: "refs/pull/7:c0ffee", Keepalive: true, IdleStop: 45 * time.Minute}, noon)
	m.Born = noon
	for _, want := range []string{" expires=2026-12-01T13:30:00Z ", " ttl=1h30m ", " renew=refs/pull/7:c0ffee ", " keepalive=1 ", " idle=45m ", " born=2026-12-01T12:00:00Z "} {
		if !strings.Contains(m.String(), want) {
			t.Errorf("%s lacks%s", m, want)
		}
	}
	whole, err := JoinDescription("text", m)
	if err != nil {
		t.Fatal(err)
	}
	if _, back := SplitDescription(whole + "\n"); !reflect.DeepEqual(back, m) {
		t.Errorf("came back as %v", back)
	}
}

// A user's text of any length that is allowed still leaves room for all of it.
func TestTheLongestLeaseFitsBesideTheLongestDescription(t *testing.T) {
	t.Parallel()
	m := exampleMarker()
	m.Owner, m.Mode, m.Born = strings.Repeat("o", 40), string(ModeAllowlist), noon
	m.take(&Lease{TTL: MaxTTL - time.Second, Renew: strings.Repeat("x", renewMarkLength), Keepalive: true, IdleStop: MaxTTL - time.Second}, noon)
	*m = m.withExtra(markerReaping, markerTime(noon)).withExtra(markerKeys, keysDigest([]string{"a key"}))
	if _, err := JoinDescription(strings.Repeat("x", MaxDescription), m); err != nil {
		t.Errorf("%v: %d characters of %s", err, len(m.String()), m)
	}
}

// A renew may be any text; the marker takes only some.
func TestAnyTextCanRenew(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, renew := range []string{"", "c0ffee", "with space", "with  space", "a--b", "ünï", "line\nfeed", strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 5000), "sha256:abc", RenewMark("with space")} {
		mark := RenewMark(renew)
		if other, taken := seen[mark]; taken {
			t.Errorf("%.20q and %.20q have the same mark %s", renew, other, mark)
		}
		seen[mark] = renew
		if renew != "" && (!validMarkerValue(mark) || len(mark) > 64) {
			t.Errorf("%.20q: the mark %q doesn't fit", renew, mark)
		}
	}
	if RenewMark("c0ffee") != "c0ffee" {
		t.Error("a commit id can't be read in the marker")
	}
}

// Ownership doesn't rest on the lease: a part of it that can't be read must not hide whose the guest is, nor get lost.
func TestAMarkerWithAStrangeLeaseIsStillOurs(t *testing.T) {
	t.Parallel()
	line := strings.Replace(exampleMarker().String(), " until=", " expires=2026-12-01T13:30:00Z ttl=soon keepalive=maybe idle=-5m until=", 1)
	_, m := SplitDescription(line)
	if m == nil || m.TTL != 0 || m.Keepalive || m.IdleStop != 0 || m.Expires.IsZero() {
		t.Fatalf("got %+v", m)
	}
	for _, kept := range []string{"ttl=soon", "keepalive=maybe", "idle=-5m"} {
		if !strings.Contains(m.String(), kept) {
			t.Errorf("%s was lost: %s", kept, m)
		}
	}
}

func TestLeaseDurationsAreWrittenInFewUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "", 90 * time.Second: "1m30s", 30 * time.Minute: "30m", 8 * time.Hour: "8h", 8*time.Hour + 5*time.Minute: "8h5m", 8*time.Hour + 5*time.Second: "8h0m5s",
	} {
		if got := LeaseDuration(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

// Which guests a reaper may destroy, and which it never may: the whole table.
func TestWhatAReaperMayDestroy(t *testing.T) {
	t.Parallel()
	const mine, held = "aaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbb"
	ready := Marker{Owner: "team-a", Claim: mine, VMID: 100017, Kind: KindContainer, Phase: PhaseReady, Born: noon.Add(-48 * time.Hour)}
	over := func(m Marker) Marker { m.Expires, m.TTL = noon.Add(-time.Second), time.Hour; return m }
	running := func(m Marker) Marker { m.Expires, m.TTL = noon.Add(time.Second), time.Hour; return m }
	creating := func(m Marker) Marker { m.Phase, m.Until = PhaseCreating, noon.Add(-time.Second); return m }
	kind := func(m Marker, k Kind) Marker { m.Kind = k; return m }
	claimed := func(m Marker) Marker { m.Claim = held; return m }
	born := func(m Marker, ago time.Duration) Marker { m.Born = noon.Add(-ago); return m }
	kept := func(m Marker) Marker { m.Keepalive = true; return m }
	none := ReapSpec{}.withDefaults()
	orphans := ReapSpec{KeepClaims: []string{held}}.withDefaults()
	for name, c := range map[string]struct {
		spec      ReapSpec
		marker    Marker
		protected bool
		reason    ReapReason
		kept      string
	}{
		"lease over":                            {spec: none, marker: over(ready), reason: ReapExpired},
		"lease over, held by a state":           {spec: orphans, marker: claimed(over(ready)), reason: ReapExpired},
		"lease over, protected":                 {spec: none, marker: over(ready), protected: true, reason: ReapExpired, kept: KeptProtected},
		"lease over, keepalive":                 {spec: none, marker: kept(over(ready)), reason: ReapExpired, kept: KeptAlive},
		"lease running":                         {spec: none, marker: running(ready)},
		"lease running, no state":               {spec: orphans, marker: running(ready)},
		"no lease":                              {spec: none, marker: ready},
		"orphan":                                {spec: orphans, marker: ready, reason: ReapOrphan},
		"orphan, protected":                     {spec: orphans, marker: ready, protected: true, reason: ReapOrphan, kept: KeptProtected},
		"orphan within its grace":               {spec: orphans, marker: born(ready, time.Hour)},
		"orphan of unknown age":                 {spec: orphans, marker: func() Marker { m := ready; m.Born = time.Time{}; return m }()},
		"held by a state":                       {spec: orphans, marker: claimed(ready)},
		"overdue":                               {spec: none, marker: creating(ready), reason: ReapOverdue},
		"overdue, with a lease that is over":    {spec: none, marker: creating(over(ready)), reason: ReapOverdue},
		"overdue, held by a state":              {spec: orphans, marker: claimed(creating(ready))},
		"being made":                            {spec: none, marker: func() Marker { m := creating(over(ready)); m.Until = noon.Add(time.Second); return m }()},
		"unclaimed member":                      {spec: orphans, marker: kind(ready, KindMember)},
		"unclaimed member with a strange lease": {spec: none, marker: kind(over(ready), KindMember)},
		"overdue member":                        {spec: none, marker: kind(creating(ready), KindMember), reason: ReapOverdue},
		"holder of a workspace":                 {spec: orphans, marker: kind(over(ready), KindHolder)},
		"overdue holder":                        {spec: none, marker: kind(creating(ready), KindHolder)},
		"template":                              {spec: orphans, marker: kind(over(ready), KindTemplate)},
		"something newer":                       {spec: orphans, marker: kind(over(ready), "robot")},
	} {
		got := c.spec.judge(reapFacts{marker: &c.marker, protection: c.protected}, noon)
		switch {
		case got == nil:
			if c.reason != "" {
				t.Errorf("%s: left alone, want %s", name, c.reason)
			}
		case got.Reason != c.reason || got.Kept != c.kept:
			t.Errorf("%s: %s %q, want %q %q", name, got.Reason, got.Kept, c.reason, c.kept)
		}
	}
}
