package sandbox

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func exampleMarker() *Marker {
	return &Marker{
		Owner: "team-a", Claim: "abcdefghijklmnopqrstuvwxyz", VMID: 100017, Kind: KindContainer, Phase: PhaseCreating,
		TemplateID: 9000, TemplateBuild: "20261201T080000Z", Pool: "warm", Until: time.Date(2026, 12, 1, 8, 30, 0, 0, time.UTC),
	}
}

func TestMarkerIsTheLineThatTheContractShows(t *testing.T) {
	t.Parallel()
	want := "<!-- sandbox v1 owner=team-a claim=abcdefghijklmnopqrstuvwxyz vmid=100017 kind=container phase=creating " +
		"template=9000:20261201T080000Z pool=warm until=2026-12-01T08:30:00Z -->"
	if got := exampleMarker().String(); got != want {
		t.Errorf("marker\n got %s\nwant %s", got, want)
	}
}

func TestDescriptionKeepsTheUsersTextWhateverItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "one line", "two\nlines", "ends with newline\n", "\n\nstarts with them", "<!-- other -->", "ünï – 漢字", strings.Repeat("x", MaxDescription)} {
		whole, err := JoinDescription(text, exampleMarker())
		if err != nil {
			t.Fatalf("%.20q: %v", text, err)
		}
		if n := utf8.RuneCountInString(whole); n > 8192 {
			t.Errorf("%.20q: %d characters, the server takes 8192", text, n)
		}
		// The server adds a newline.
		gotText, gotMarker := SplitDescription(whole + "\n")
		if gotText != text || !reflect.DeepEqual(gotMarker, exampleMarker()) {
			t.Errorf("%.20q came back as %.20q, marker %v", text, gotText, gotMarker)
		}
	}
}

func TestDescriptionWithoutMarkerIsAllTheUsers(t *testing.T) {
	t.Parallel()
	line := exampleMarker().String()
	for _, d := range []string{
		"", "plain", "<!-- sandbox v2 owner=a claim=b vmid=1 -->", line + "\nnot the last line", strings.Replace(line, "vmid=100017", "vmid=0100017", 1),
		strings.Replace(line, "owner=team-a ", "", 1), strings.Replace(line, "kind=container", "owner=other", 1), strings.TrimSuffix(line, ">"),
		"<!-- sandbox v1 -->", "<!-- sandbox v1  -->",
	} {
		text, m := SplitDescription(d + "\n")
		if m != nil || text != d {
			t.Errorf("%q: text %q, marker %v", d, text, m)
		}
	}
}

func TestMarkerOfANewerVersionKeepsItsUnknownKeys(t *testing.T) {
	t.Parallel()
	line := strings.Replace(exampleMarker().String(), " -->", " color=blue -->", 1)
	_, m := SplitDescription(line)
	if m == nil || m.String() != line {
		t.Errorf("got %v, want %s", m, line)
	}
}

func TestMarkerMatchesOnlyWhenOwnerClaimAndIdAllDo(t *testing.T) {
	t.Parallel()
	m := exampleMarker()
	if !m.Matches("team-a", m.Claim, 100017) {
		t.Error("the right one doesn't match")
	}
	for name, ok := range map[string]bool{
		"other owner":           m.Matches("team-b", m.Claim, 100017),
		"other claim":           m.Matches("team-a", "zyxwvutsrqponmlkjihgfedcba", 100017),
		"hand-made clone":       m.Matches("team-a", m.Claim, 100018),
		"no claim held":         m.Matches("team-a", "", 100017),
		"no owner held":         m.Matches("", m.Claim, 100017),
		"no marker":             (*Marker)(nil).Matches("team-a", m.Claim, 100017),
		"empty marker, nothing": (&Marker{}).Matches("", "", 0),
	} {
		if ok {
			t.Errorf("%s: matches", name)
		}
	}
}

func TestMarkerRefusesValuesThatCouldNotBeReadBack(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"with space", "new\nline", "a--b", "ü", "x=y"} {
		m := exampleMarker()
		m.Owner = owner
		if d, err := JoinDescription("", m); err == nil {
			t.Errorf("owner %q: accepted as %s", owner, d)
		}
	}
}

func TestRandomMarkersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	const alphabet = "ABCXYZabcxyz0189._:/+-"
	word := func(longest int) string {
		b := make([]byte, 1+rng.IntN(longest))
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return strings.ReplaceAll(string(b), "--", "-x")
	}
	for range 5000 {
		m := &Marker{Owner: word(20), Claim: newClaim(), VMID: 1 + rng.IntN(MaxVMID), Kind: Kind(word(8)), Phase: PhaseReady}
		if rng.IntN(2) == 0 {
			m.TemplateID = 1 + rng.IntN(MaxVMID)
			m.TemplateBuild = word(20)
		}
		if rng.IntN(2) == 0 {
			m.Expires = time.Unix(rng.Int64N(1<<33), 0).UTC()
		}
		text := strings.Repeat("ab\n", rng.IntN(4))
		whole, err := JoinDescription(text, m)
		if err != nil {
			t.Fatal(err)
		}
		gotText, got := SplitDescription(whole + "\n")
		if gotText != text || got == nil || got.String() != m.String() {
			t.Fatalf("%q came back as %q, %v", whole, gotText, got)
		}
	}
}

func TestClaimsAreOfTheAgreedLengthAndDiffer(t *testing.T) {
	t.Parallel()
	a, b := newClaim(), newClaim()
	if len(a) != ClaimLength || a == b || !validMarkerValue(a) {
		t.Errorf("claims %q and %q", a, b)
	}
}

func FuzzSplitDescription(f *testing.F) {
	f.Add(exampleMarker().String())
	f.Add("text\n" + exampleMarker().String() + "\n")
	f.Add("<!-- sandbox v1 -->")
	f.Fuzz(func(t *testing.T, d string) {
		text, m := SplitDescription(d)
		if m == nil {
			if text != strings.TrimSuffix(d, "\n") {
				t.Fatalf("without a marker the text must be whole: %q became %q", d, text)
			}
			return
		}
		// What was understood can be written again and is understood the same.
		whole, err := JoinDescription(text, m)
		if err != nil {
			return // the text is longer than we would write
		}
		text2, m2 := SplitDescription(whole)
		if text2 != text || m2 == nil || m2.String() != m.String() {
			t.Fatalf("%q: %q %v, then %q %v", d, text, m, text2, m2)
		}
	})
}
