package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
)

// written lists a secret as programs write it, with what must not be seen of it afterwards.
func written(secret string) map[string]string {
	asJSON, _ := json.Marshal(map[string]string{"k": secret})
	forms := map[string]string{
		"plain": "key " + secret + " end", "JSON": string(asJSON), "query": "?k=" + url.QueryEscape(secret), "path": "/" + url.PathEscape(secret) + "/",
		"hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"single-quoted": "k='" + strings.ReplaceAll(secret, "'", `'\''`) + "'",
	}
	for before := range 7 {
		text := []byte(strings.Repeat("u", before) + secret + ":rest")
		forms["base64 after "+strings.Repeat("u", before)] = base64.StdEncoding.EncodeToString(text)
		forms["base64url after "+strings.Repeat("u", before)] = base64.RawURLEncoding.EncodeToString(text)
	}
	return forms
}

// TestEveryFormOfASecretGoes tries secrets of many lengths and alphabets in every form, whole and cut into chunks.
func TestEveryFormOfASecretGoes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/-_=<>&'\"\\$ %ü\n"
	letters := []rune(alphabet)
	for range 300 {
		secret := "s"
		for range 8 + random.IntN(60) {
			secret += string(letters[random.IntN(len(letters))])
		}
		secret += "e"
		r := redact.New(secret)
		for name, text := range written(secret) {
			for how, got := range map[string]string{"at once": r.Known(text), "in chunks": inChunks(t, r, text, 1+random.IntN(9))} {
				if trace := left(secret, got); trace != "" {
					t.Fatalf("%s, %s: of %q, %q is left in %q, which was %q", name, how, secret, trace, got, text)
				}
			}
		}
	}
}

// left is what can be read of a secret in a text by who knows what to look for, "" if nothing of eight bytes can.
func left(secret, text string) string {
	raw := []string{text}
	for offset := range 4 {
		if offset < len(text) {
			raw = append(raw, decodeRuns(text[offset:])...)
		}
	}
	for i := 0; i+8 <= len(secret); i++ {
		for _, readable := range raw {
			if strings.Contains(readable, secret[i:i+8]) {
				return secret[i : i+8]
			}
		}
	}
	return ""
}

// decodeRuns reads every run of base64 or hexadecimal characters.
func decodeRuns(text string) []string {
	var out []string
	for _, run := range strings.FieldsFunc(text, func(c rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_", c)
	}) {
		run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
		if b, err := base64.RawStdEncoding.DecodeString(run[:len(run)/4*4]); err == nil {
			out = append(out, string(b))
		}
		if b, err := hex.DecodeString(run[:len(run)/2*2]); err == nil {
			out = append(out, string(b))
		}
	}
	return out
}

func inChunks(t *testing.T, r *redact.Redactor, text string, size int) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		if written, err := w.Write([]byte(rest[:n])); err != nil || written != n {
			t.Fatal(written, err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAStreamIsRedactedAsAWholeIsWhereverItIsCut(t *testing.T) {
	t.Parallel()
	const secret = "correct horse/battery\nstaple-and-more"
	r := redact.New(secret, "horse/batter", "stapler")
	text := "a correct horse/battery b " + base64.StdEncoding.EncodeToString([]byte(secret)) + " correct hors " + url.QueryEscape(secret) + " staple-and-mor staplestapler correct"
	want := r.Known(text)
	for size := 1; size <= len(text); size++ {
		if got := inChunks(t, r, text, size); got != want {
			t.Fatalf("in chunks of %d bytes:\n%q\nat once:\n%q", size, got, want)
		}
	}
	for _, kept := range []string{"correct hors ", "staple-and-mor staple[redacted] correct"} {
		if !strings.Contains(want, kept) {
			t.Errorf("%q was taken too: %q", kept, want)
		}
	}
}

// base64 and its relatives break their lines.
func TestASecretGoesThoughAnEncoderBrokeItsLines(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("long-secret.", 12)
	encoded := base64.StdEncoding.EncodeToString([]byte("x=" + secret))
	for _, width := range []int{19, 64, 76} {
		for _, end := range []string{"\n", "\r\n"} {
			var lines []string
			for rest := encoded; rest != ""; {
				n := min(width, len(rest))
				lines = append(lines, rest[:n])
				rest = rest[n:]
			}
			got := redact.New(secret).Known(strings.Join(lines, end))
			if len(got) > len(redact.Mark)+8 {
				t.Errorf("lines of %d: %q", width, got)
			}
		}
	}
}

func TestSecretsThatOverlapLeaveNothing(t *testing.T) {
	t.Parallel()
	r := redact.New("abcdefgh", "efghijkl", "fghi")
	for text, want := range map[string]string{"-abcdefghijkl-": "-[redacted]-", "-abcdefg-": "-abcdefg-", "abcdefghabcdefgh": "[redacted][redacted]"} {
		if got := r.Known(text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}

// Who watches a log sees a line when it is written, not when the next one comes.
func TestOnlyWhatMayBeASecretIsHeld(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := redact.New("hunter2-hunter2").Writer(&out)
	for _, step := range []struct{ in, want string }{
		{"building\n", "building\n"}, {"the password is hunter2", "building\nthe password is "}, {" now\n", "building\nthe password is hunter2 now\n"},
	} {
		if _, err := w.Write([]byte(step.in)); err != nil || out.String() != step.want {
			t.Errorf("after %q: %q, %v", step.in, out.String(), err)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestAWriterThatFailsIsAnErrorForGood(t *testing.T) {
	t.Parallel()
	w := redact.New("hunter2-hunter2").Writer(broken{})
	for range 2 {
		if _, err := w.Write([]byte("text")); err == nil {
			t.Error("the failure is lost")
		}
	}
	if w.Close() == nil {
		t.Error("Close hides it")
	}
}

// An agent that prints two hundred megabytes must not be held up by this. The bound is a tenth of what an idle core does.
func TestItIsFast(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	var secrets []string
	for i := range 20 {
		secrets = append(secrets, strings.Repeat("k", 10)+strings.Repeat(string(rune('a'+i)), 90))
	}
	chunk := []byte(strings.Repeat("2026-12-01T12:00:00Z INFO compiling package number 17 of 20, all is well so far\n", 800))
	w := redact.New(secrets...).Writer(discard{})
	begin, total := time.Now(), 0
	for range 200 {
		n, err := w.Write(chunk)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	perSecond := float64(total) / time.Since(begin).Seconds() / 1e6
	t.Logf("%.0f MB/s with %d secrets", perSecond, len(secrets))
	if perSecond < 4 {
		t.Errorf("only %.1f MB/s", perSecond)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func FuzzStream(f *testing.F) {
	f.Add("secret-value", "text secret-value and", 3)
	f.Add("aaaa", "aaaaaaaaa", 1)
	f.Fuzz(func(t *testing.T, secret, text string, size int) {
		r := redact.New(secret)
		want := r.Known(text)
		if got := inChunks(t, r, text, max(1, size)); got != want {
			t.Errorf("in chunks %q, at once %q", got, want)
		}
	})
}
