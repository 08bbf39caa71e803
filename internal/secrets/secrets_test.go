package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/secrets"
)

func write(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, s secrets.Source, only ...string) (secrets.Set, error) {
	t.Helper()
	return secrets.Load(t.Context(), []secrets.Source{s}, only)
}

func TestDotenvIsReadAsMostToolsReadIt(t *testing.T) {
	t.Parallel()
	content := "\xef\xbb\xbf# a comment\n\nA=plain\r\nexport B = spaced # a comment\nC='single $HOME \\n # kept'\nD=\"two\nlines \\\"q\\\" \\$x\\ttab\" # c\nE=\nF=a#b\nG=\"\"\nH=x=y\nexported=1"
	got, err := load(t, secrets.File{Path: write(t, ".env", content, 0o600)})
	want := secrets.Set{"A": "plain", "B": "spaced", "C": `single $HOME \n # kept`, "D": "two\nlines \"q\" $x\ttab", "E": "", "F": "a#b", "G": "", "H": "x=y", "exported": "1"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestJSONIsOneFlatObject(t *testing.T) {
	t.Parallel()
	got, err := load(t, secrets.File{Path: write(t, "s.json", `{"A":"x\ny","N":12.50,"T":true}`, 0o600)})
	if err != nil || !maps.Equal(got, secrets.Set{"A": "x\ny", "N": "12.50", "T": "true"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// An error says where, and never what stands there.
func TestErrorsShowNoValue(t *testing.T) {
	t.Parallel()
	const canary = "canary-value"
	for name, c := range map[string]struct{ file, content, want string }{
		"no assignment":       {".env", "A=1\n" + canary + "\n", "line 2"},
		"no name":             {".env", "1" + canary + "=x\n", "line 1"},
		"no closing quote":    {".env", "A=\"" + canary + "\nB=1\n", "closing quote"},
		"more than its quote": {".env", "A='" + canary + "' more\n", "after its quote"},
		"twice":               {".env", "A=" + canary + "\nA=2\n", "twice, again in line 2"},
		"broken JSON":         {"s.json", "{\n\"A\": \"" + canary + "\",,}", "line 2"},
		"a list":              {"s.json", `{"A": ["` + canary + `"]}`, "A"},
		"no object":           {"s.json", `"` + canary + `"`, "not one JSON object"},
		"null":                {"s.json", `{"A": null}`, "null"},
		"a name with a blank": {"s.json", `{"A B": "` + canary + `"}`, "A B"},
		"not text":            {".env", "A=\xff" + canary, "UTF-8"},
		"a NUL":               {"s.json", `{"A": "` + canary + `\u0000"}`, "NUL"},
		"too large":           {".env", strings.Repeat("#"+canary, 1<<17), "larger"},
	} {
		_, err := load(t, secrets.File{Path: write(t, c.file, c.content, 0o600)})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsMissingAndWhatIsTwiceIsNamed(t *testing.T) {
	t.Parallel()
	env := secrets.Environment{Variables: []string{"A", "B", "C"}, Getenv: func(n string) string { return map[string]string{"A": "1"}[n] }}
	if _, err := load(t, env); err == nil || !strings.Contains(err.Error(), "B, C not set") {
		t.Errorf("%v", err)
	}
	env.Variables = []string{"A"}
	file := secrets.File{Path: write(t, ".env", "A=2\nZ=3\n", 0o600)}
	if _, err := secrets.Load(t.Context(), []secrets.Source{env, file}, nil); err == nil || !strings.Contains(err.Error(), "A stands in the environment and in file ") {
		t.Errorf("%v", err)
	}
	if got, err := secrets.Load(t.Context(), []secrets.Source{env, file}, []string{"Z"}); err != nil || !maps.Equal(got, secrets.Set{"Z": "3"}) {
		t.Errorf("only Z: %q, %v", got, err)
	}
	if _, err := load(t, file, "Y"); err == nil || !strings.Contains(err.Error(), "Y is in none") {
		t.Errorf("%v", err)
	}
	if _, err := load(t, secrets.File{Path: "/no/such/file"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestFingerprintsTellValuesApartAndShowNone(t *testing.T) {
	t.Parallel()
	a, b := secrets.Set{"A": "1", "B": "1"}, secrets.Set{"A": "1", "B": "2"}
	prints := a.Fingerprints()
	if prints["A"] == prints["B"] || len(prints["A"]) != 8 || prints["A"] != b.Fingerprints()["A"] || prints["B"] == b.Fingerprints()["B"] {
		t.Errorf("%v, %v", prints, b.Fingerprints())
	}
	if a.Version() == b.Version() || a.Version() != (secrets.Set{"B": "1", "A": "1"}).Version() || a.Version() < 0 {
		t.Errorf("%d, %d", a.Version(), b.Version())
	}
}

func encrypt(t *testing.T, text string, armored bool, to age.Recipient) string {
	t.Helper()
	var out bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	a := armor.NewWriter(&out)
	var err error
	if armored {
		w, err = age.Encrypt(a, to)
	} else {
		w, err = age.Encrypt(&out, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write([]byte(text))
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if armored {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestAgeFilesAreDecrypted(t *testing.T) {
	t.Parallel()
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, armored := range []bool{false, true} {
		path := write(t, "bundle.json.age", encrypt(t, `{"A":"deep"}`, armored, mine.Recipient()), 0o644)
		identity := write(t, "key.txt", "# created by age-keygen\n"+mine.String()+"\n", 0o600)
		for _, source := range []secrets.Age{{Path: path, IdentityFile: identity}, {Path: path, Identity: mine.String()}} {
			if got, err := load(t, source); err != nil || got["A"] != "deep" {
				t.Errorf("armored %t: %v, %v", armored, got, err)
			}
		}
		if _, err := load(t, secrets.Age{Path: path, Identity: other.String()}); err == nil || !strings.Contains(err.Error(), "for others") {
			t.Errorf("another's identity: %v", err)
		}
	}
	broken := mine.String()[:30]
	if _, err := load(t, secrets.Age{Path: "/x", Identity: broken}); err == nil || strings.Contains(err.Error(), broken[16:]) {
		t.Errorf("a broken identity: %v", err)
	}
}

func TestSopsIsAskedByItsCommand(t *testing.T) {
	t.Parallel()
	program := write(t, "sops", `#!/bin/sh
[ "$1 $2 $3" = "--decrypt --output-type json" ] || exit 9
case $4 in *good*) printf '{"A":"from sops"}' ;; *) echo "no key for token=hunter2hunter2" >&2; exit 128 ;; esac
`, 0o700)
	if got, err := load(t, secrets.Sops{Path: "good.yaml", Command: program}); err != nil || got["A"] != "from sops" {
		t.Errorf("%v, %v", got, err)
	}
	_, err := load(t, secrets.Sops{Path: "bad.yaml", Command: program})
	if err == nil || !strings.Contains(err.Error(), "no key for") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	if _, err := load(t, secrets.Sops{Path: "x", Command: "no-such-program-here"}); !errors.Is(err, secrets.ErrNoSops) {
		t.Errorf("%v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (secrets.Sops{Path: "good", Command: program}).Read(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func FuzzDotenv(f *testing.F) {
	f.Add("A=1\nexport B='x'\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := write(t, ".env", text, 0o600)
		_, _ = secrets.File{Path: path}.Read(t.Context())
	})
}
