package workcopy

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// kind is what a guest says a name is.
type kind byte

const (
	kindFile    kind = 'f'
	kindExec    kind = 'x'
	kindLink    kind = 'l'
	kindBig     kind = 'b' // a file over the size that was asked for
	kindSetID   kind = 's' // setuid or setgid
	kindSpecial kind = 'o' // pipe, socket, device
)

// listing is what find says of a folder in the guest, by path.
type listing map[string]kind

// listMost bounds a listing, in bytes; a million names of 60 bytes fit.
const listMost = 64 << 20

// list lists a folder of the guest, or what lies at and below a path in it. Each kind has a find of its own, as find's
// -printf isn't everywhere; a later kind wins (an executable is listed as a file first). Folders named in prune aren't
// entered. Paths are relative to dir, without "./".
func (p Place) list(ctx context.Context, verb, dir string, biggest int64, prune []string, below string) (listing, error) {
	var script strings.Builder
	script.WriteString("needs find\ncd \"$1\" || exit 1\n")
	// What lies behind a link on the way isn't in the folder.
	script.WriteString(`top=$3; [ -e "$top" ] || [ -h "$top" ] || exit 0
up=$top; while up=${up%/*}; [ "$up" != . ]; do [ ! -h "$up" ] || exit 0; done
`)
	not := ""
	if len(prune) > 0 {
		var names []string
		for _, name := range prune {
			names = append(names, "-name "+guest.Quote(name))
		}
		not = `\( ` + strings.Join(names, " -o ") + ` \) -prune -o `
	}
	for _, k := range []struct {
		kind kind
		test string
	}{
		{kindFile, `-type f`},
		{kindExec, `-type f -perm -100`},
		{kindLink, `-type l`},
		{kindBig, `-type f -size +"$2"c`},
		{kindSetID, `-type f \( -perm -4000 -o -perm -2000 \)`},
		{kindSpecial, `! -type f ! -type d ! -type l`},
	} {
		// A name that begins with a slash can't be one of find's: it is a heading.
		fmt.Fprintf(&script, "printf '/%c\\0'; find \"$top\" %s%s -print0 || exit 1\n", k.kind, not, k.test)
	}
	top := "./."
	if below != "" {
		top = "./" + below
	}
	out, err := p.run(ctx, call{verb: verb, script: script.String(), args: []string{dir, strconv.FormatInt(biggest, 10), top}, limit: listMost})
	if err != nil {
		return nil, err
	}
	found := listing{}
	var now kind
	for name := range bytes.SplitSeq(out, []byte{0}) {
		switch {
		case len(name) == 2 && name[0] == '/':
			now = kind(name[1])
		case len(name) > 0:
			found[strings.TrimPrefix(strings.TrimPrefix(string(name), "./"), "./")] = now
		}
	}
	return found, nil
}

// names are the listed paths of some kinds, sorted.
func (l listing) names(kinds ...kind) []string {
	var names []string
	for name, k := range l {
		if slices.Contains(kinds, k) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hashes asks the guest for the SHA-256 of files of a folder. A file that went away or can't be read has none.
func (p Place) hashes(ctx context.Context, verb, dir string, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return map[string]string{}, nil
	}
	var input bytes.Buffer
	for _, name := range names {
		input.WriteString("./" + name + "\x00")
	}
	// A file that vanishes is one hash less, not a failure.
	out, err := p.run(ctx, call{
		verb: verb, script: "needs xargs sha256sum\ncd \"$1\" || exit 1\nxargs -0 sha256sum || :\n", args: []string{dir}, stdin: &input, limit: listMost * 2,
	})
	if err != nil {
		return nil, err
	}
	sums := make(map[string]string, len(names))
	for line := range strings.SplitSeq(string(out), "\n") {
		// "hash  ./name"; with a backslash in front, \ and line ends in the name are escaped.
		escaped := strings.HasPrefix(line, `\`)
		sum, name, ok := strings.Cut(strings.TrimPrefix(line, `\`), "  ./")
		if !ok || len(sum) != 64 {
			continue
		}
		if escaped {
			name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
		}
		sums[name] = sum
	}
	return sums, nil
}

// differing asks which files of the working folder aren't as they were at first, without fetching or hashing them: a
// comparison ends at the first difference, or with the shorter file.
func (p Place) differing(ctx context.Context, verb string, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var input bytes.Buffer
	for _, name := range names {
		input.WriteString("./" + name + "\x00")
	}
	out, err := p.run(ctx, call{
		verb: verb, stdin: &input, args: []string{p.Dir, p.base()}, limit: listMost,
		script: "needs xargs cmp\ncd \"$1\" || exit 1\n" + `xargs -0 sh -c 'base=$1; shift; for f in "$@"; do cmp -s "$base/$f" "$f" || printf "%s\0" "$f"; done' sh "$2"` + "\n",
	})
	if err != nil {
		return nil, err
	}
	var changed []string
	for name := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(name) > 0 {
			changed = append(changed, strings.TrimPrefix(string(name), "./"))
		}
	}
	return changed, nil
}
