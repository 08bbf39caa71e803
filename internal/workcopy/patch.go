package workcopy

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git names objects by it
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// textMost is the size over which a file is told whole instead of by lines, in bytes.
const textMost = 2 << 20

// Stat counts what a patch does.
type Stat struct {
	Files      int `json:"files"`
	Insertions int `json:"insertions"` // lines; 0 for a file that isn't text
	Deletions  int `json:"deletions"`
}

func (s Stat) String() string {
	return fmt.Sprintf("%s changed, %s(+), %s(-)", count(s.Files, "file"), count(s.Insertions, "insertion"), count(s.Deletions, "deletion"))
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// FileStat is the Stat of one path.
type FileStat struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"` // added, changed, removed
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	Binary     bool   `json:"binary,omitempty"`
}

// Stat counts all changes.
func (c Changes) Stat() Stat { return Total(c.FileStats()) }

// Total adds up.
func Total(stats []FileStat) Stat {
	s := Stat{Files: len(stats)}
	for _, f := range stats {
		s.Insertions += f.Insertions
		s.Deletions += f.Deletions
	}
	return s
}

// FileStats counts them by path.
func (c Changes) FileStats() []FileStat {
	stats := make([]FileStat, 0, len(c.List))
	for _, change := range c.List {
		s := FileStat{Path: change.Path, Kind: change.Kind(), Binary: change.binary()}
		if !s.Binary {
			for _, part := range change.parts() {
				body := hunks(part.old, part.new)
				for line := range strings.SplitSeq(body, "\n") {
					switch {
					case strings.HasPrefix(line, "+"):
						s.Insertions++
					case strings.HasPrefix(line, "-"):
						s.Deletions++
					}
				}
			}
		}
		stats = append(stats, s)
	}
	return stats
}

// Patch writes the changes as git diff --binary --full-index would; git apply takes it, and a person can read it.
func (c Changes) Patch() []byte {
	var b bytes.Buffer
	for _, change := range c.List {
		for _, part := range change.parts() {
			part.write(&b)
		}
	}
	return b.Bytes()
}

// parts splits a change between file and link, which git writes as a removal and an addition.
func (c Change) parts() []Change {
	if c.old.mode != absent && c.new.mode != absent && (c.old.mode == symlink) != (c.new.mode == symlink) {
		return []Change{{Path: c.Path, old: c.old}, {Path: c.Path, new: c.new}}
	}
	return []Change{c}
}

func (c Change) binary() bool { return isBinary(c.old) || isBinary(c.new) }

func isBinary(v version) bool {
	return v.mode != symlink && (len(v.content) > textMost || bytes.IndexByte(v.content[:min(len(v.content), 8000)], 0) >= 0)
}

func (c Change) write(b *bytes.Buffer) {
	from, to := quotePath("a/"+c.Path), quotePath("b/"+c.Path)
	fmt.Fprintf(b, "diff --git %s %s\n", from, to)
	switch {
	case c.old.mode == absent:
		fmt.Fprintf(b, "new file mode %s\n", c.new.mode.git())
	case c.new.mode == absent:
		fmt.Fprintf(b, "deleted file mode %s\n", c.old.mode.git())
	case c.old.mode != c.new.mode:
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", c.old.mode.git(), c.new.mode.git())
	}
	same := c.old.mode != absent && c.new.mode != absent && bytes.Equal(c.old.content, c.new.content)
	if same {
		return
	}
	fmt.Fprintf(b, "index %s..%s", blobName(c.old), blobName(c.new))
	if c.old.mode == c.new.mode {
		fmt.Fprintf(b, " %s", c.new.mode.git())
	}
	b.WriteByte('\n')
	if c.binary() {
		b.WriteString("GIT binary patch\n")
		writeLiteral(b, c.new.content)
		writeLiteral(b, c.old.content)
		return
	}
	body := hunks(c.old, c.new)
	if body == "" {
		return // an empty file comes or goes
	}
	if c.old.mode == absent {
		from = "/dev/null"
	}
	if c.new.mode == absent {
		to = "/dev/null"
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n%s", endPath(from), endPath(to), body)
}

// hunks is the body of a unified diff, without its two lines of names.
func hunks(old, new version) string {
	text := udiff.Unified("a", "b", string(old.content), string(new.content))
	for range 2 {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// blobName is what git calls a file's content; no content is all zeroes.
func blobName(v version) string {
	if v.mode == absent {
		return strings.Repeat("0", 40)
	}
	sum := sha1.New() //nolint:gosec // git names objects by it
	fmt.Fprintf(sum, "blob %d\x00", len(v.content))
	sum.Write(v.content)
	return hex.EncodeToString(sum.Sum(nil))
}

// quotePath writes a path as git does where it isn't plain ASCII.
func quotePath(name string) string {
	plain := true
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
			plain = false
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
			plain = false
		default:
			b.WriteByte(c)
		}
	}
	if plain {
		return name
	}
	return `"` + b.String() + `"`
}

// endPath marks the end of a name with blanks, which a date could follow.
func endPath(name string) string {
	if strings.Contains(name, " ") && name[0] != '"' {
		return name + "\t"
	}
	return name
}

// base85 is the alphabet of git's binary patches.
const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// writeLiteral writes a content in the form of git's binary patches: deflated, in base 85, lines of at most 52 bytes with
// their length in front.
func writeLiteral(b *bytes.Buffer, content []byte) {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(content) // into memory
	_ = z.Close()
	fmt.Fprintf(b, "literal %d\n", len(content))
	for data := packed.Bytes(); len(data) > 0; {
		line := data[:min(52, len(data))]
		data = data[len(line):]
		if n := len(line); n <= 26 {
			b.WriteByte(byte('A' + n - 1))
		} else {
			b.WriteByte(byte('a' + n - 27))
		}
		for len(line) > 0 {
			var word uint32
			for i := range 4 {
				word <<= 8
				if i < len(line) {
					word |= uint32(line[i])
				}
			}
			var five [5]byte
			for i := 4; i >= 0; i-- {
				five[i] = base85[word%85]
				word /= 85
			}
			b.Write(five[:])
			line = line[min(4, len(line)):]
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

// StatText is the Stat of each path and of all, as git diff --stat writes it, of at most so many paths.
func StatText(stats []FileStat, most int) string {
	var b strings.Builder
	for i, f := range stats {
		if i == most {
			fmt.Fprintf(&b, " … and %s more\n", count(len(stats)-most, "file"))
			break
		}
		if f.Binary {
			fmt.Fprintf(&b, " %s | Bin\n", quotePath(f.Path))
			continue
		}
		fmt.Fprintf(&b, " %s | %d %s%s\n", quotePath(f.Path), f.Insertions+f.Deletions, strings.Repeat("+", min(f.Insertions, 20)), strings.Repeat("-", min(f.Deletions, 20)))
	}
	fmt.Fprintf(&b, " %s", Total(stats))
	return b.String()
}
