package guest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// FuzzQuoteIsOneWordOfOneLine holds quote against a shell parser: any text
// comes back as it was, from a single word, and no newline ends the header.
func FuzzQuoteIsOneWordOfOneLine(f *testing.F) {
	for _, seed := range []string{"", "a", "it's", "$HOME `id` \\", "a\nb", "\n", "'\n'", "\"", "#", "~", "*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// NUL is refused before; the parser (not a shell) drops CR and NUL.
		if strings.ContainsAny(text, "\x00\r") {
			t.Skip()
		}
		quoted := quote(text)
		if strings.Contains(quoted, "\n") {
			t.Fatalf("more than one line: %q", quoted)
		}
		var words []*syntax.Word
		for word, err := range syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).WordsSeq(strings.NewReader(quoted)) {
			if err != nil {
				t.Fatalf("%q: %v", quoted, err)
			}
			words = append(words, word)
		}
		if len(words) != 1 {
			t.Fatalf("%q gives %d words", quoted, len(words))
		}
		env := expand.ListEnviron("__n=\n")
		got, err := expand.Fields(&expand.Config{Env: env}, words[0])
		if err != nil || len(got) != 1 || got[0] != text {
			t.Errorf("%q came back as %q, %v", text, got, err)
		}
	})
}

// FuzzManagedKeysLoseNoLine: whatever a file holds, others' lines survive, and
// setting the same keys again changes nothing.
func FuzzManagedKeysLoseNoLine(f *testing.F) {
	for _, seed := range []string{"", "a\n", "a", keysBegin + "\nx\n" + keysEnd + "\n", keysBegin + "\nx", keysEnd + "\nx", keysBegin + "\n" + keysBegin + "\n" + keysEnd} {
		f.Add(seed)
	}
	keys := []string{"ssh-ed25519 AAAA one", "ssh-ed25519 AAAB two"}
	f.Fuzz(func(t *testing.T, text string) {
		before, _ := splitKeys([]byte(text))
		once := mergeKeys([]byte(text), keys)
		after, managed := splitKeys(once)
		if !slices.Equal(before, after) || !slices.Equal(managed, keys) {
			t.Errorf("others %q became %q, managed %q", before, after, managed)
		}
		if twice := mergeKeys(once, keys); !bytes.Equal(once, twice) {
			t.Errorf("%q became %q", once, twice)
		}
	})
}

// FuzzMountTypeFindsRoot: no path and no table make it fail, and a table that
// has only the root says what the root is.
func FuzzMountTypeFindsRoot(f *testing.F) {
	f.Add("/run/x", "tmpfs /run tmpfs rw 0 0\n")
	f.Add("/", "a\\040b /\\134 x")
	f.Fuzz(func(t *testing.T, path, table string) {
		_ = mountType(table, path)
		if !strings.HasPrefix(path, "/") {
			return
		}
		if kind := mountType("dev / ext4 rw 0 0\n", path); kind != "ext4" {
			t.Errorf("%q lies on %q", path, kind)
		}
	})
}

// FuzzStartWatchPassesEverythingOn: however output is cut into pieces, what
// follows the wrapper's line comes through, and nothing else.
func FuzzStartWatchPassesEverythingOn(f *testing.F) {
	f.Add([]byte("out"), uint8(1))
	f.Add([]byte("\nsandbox-pid 9\n\x00"), uint8(5))
	f.Fuzz(func(t *testing.T, output []byte, piece uint8) {
		w := &startWatch{out: newCapture(nil, 1<<20, false)}
		stream := append([]byte("noise\nsandbox-pid 42\n"), output...)
		for chunk := range slices.Chunk(stream, int(piece)+1) {
			_, _ = w.Write(chunk)
		}
		w.flush()
		if got, _ := w.out.result(); !bytes.Equal(got, output) || w.process() != 42 {
			t.Errorf("got %q, process %d", got, w.process())
		}
	})
}
