package sandbox

import (
	"regexp"
	"strings"
	"testing"
)

func TestSnapshotNameIsAlwaysOneThatTheServerTakes(t *testing.T) {
	t.Parallel()
	// The server's pattern (recorded: names without dots, at least two characters, at most 40).
	pattern := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{1,39}$`)
	for in, want := range map[string]string{
		"before-update": "before-update", "v1.2.3": "v1-2-3", "2026-12-01": "s-2026-12-01", "a b  c": "a-b-c", "--x-y": "x-y",
		"current": "", "vzdump": "", "Current": "", "x": "", strings.Repeat("a", 41): "", "äöü": "", strings.Repeat("ab.", 30): "",
	} {
		got, err := SnapshotName(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if !pattern.MatchString(got) || got == "current" || got == "vzdump" {
			t.Errorf("%q became %q, which the server refuses", in, got)
		}
		if want != "" && got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if again, _ := SnapshotName(got); again != got {
			t.Errorf("%q isn't stable: %q", got, again)
		}
	}
	a, _ := SnapshotName(strings.Repeat("a", 50) + "1")
	b, _ := SnapshotName(strings.Repeat("a", 50) + "2")
	if a == b {
		t.Errorf("two long names that differ became the same: %s", a)
	}
	if _, err := SnapshotName(""); err == nil {
		t.Error("an empty text has a name")
	}
}

func FuzzSnapshotName(f *testing.F) {
	f.Add("before update")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := SnapshotName(in)
		if err == nil && !validSnapshotName(got) {
			t.Fatalf("%q became %q", in, got)
		}
	})
}

func TestParseContainerIDReadsBothForms(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		node string
		vmid int
	}{"100": {"", 100}, "pve1/105": {"pve1", 105}, "lxc/105": {"", 105}} {
		node, vmid, err := ParseContainerID(in)
		if err != nil || node != want.node || vmid != want.vmid {
			t.Errorf("%q: %q %d %v", in, node, vmid, err)
		}
	}
	for _, in := range []string{"", "99", "abc", "pve1/", "/100", "a b/100", "100/pve1", "pve1/0100", "+100", "1000000000", "pve1/lxc/100", "-x/100"} {
		if node, vmid, err := ParseContainerID(in); err == nil {
			t.Errorf("%q was read as %q %d", in, node, vmid)
		}
	}
}

func TestSizeMiBIsBinaryAndExact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{"512": 512, "512M": 512, "1G": 1024, "1.5G": 1536, "2GiB": 2048, "1 T": 1 << 20, "2048k": 2, "0": 0, "0.5GB": 512} {
		if got, err := SizeMiB(in); err != nil || got != want {
			t.Errorf("%q: %d %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "G", "1.5M", "-1G", "1X", "1e3", "1..5G", "100k", ".5G", "1.G", strings.Repeat("9", 40) + "T"} {
		if got, err := SizeMiB(in); err == nil {
			t.Errorf("%q was read as %d", in, got)
		}
	}
}

func TestTagsAreNormalisedAsTheServerDoes(t *testing.T) {
	t.Parallel()
	// Recorded: "Foo;bar;bar" comes back as "bar;foo", "x,y z" as "x;y;z", "" as " ".
	for in, want := range map[string]string{"Foo;bar;bar": "bar;foo", "x,y z": "x;y;z", " ": "", "": ""} {
		if got := strings.Join(splitTags(in), ";"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
