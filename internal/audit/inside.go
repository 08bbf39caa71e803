package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

const (
	maxListing = 64 << 20 // bytes of the list of all files
	maxFetch   = 24 << 20 // bytes of one reading of files
)

// listScript prints every file that is at rest: type, mode, owner, size, name and
// target, NUL after each. Names are the system's: they are data.
const listScript = `
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run \) -prune -printf '%y %m %U %G %s\t%p\0\0' -o -printf '%y %m %U %G %s\t%p\0%l\0'
`

// fetchScript prints, for each name on its input, a line of base64, or "-".
const fetchScript = `
while IFS= read -r f; do
  if [ -f "/$f" ] && [ ! -L "/$f" ] && [ -r "/$f" ]; then head -c "$1" "/$f" | base64 -w 0; echo; else echo -; fi
done
`

// openInside indexes a system in which scripts can be run.
func openInside(ctx context.Context, r remote.Runner) (*tree, error) {
	res, err := r.Run(ctx, remote.Script{Text: listScript, Limit: maxListing})
	if err != nil {
		return nil, fmt.Errorf("audit: list the files: %w", err)
	}
	list, bad := parseListing(res.Stdout)
	t := newTree(ctx, list)
	switch {
	case len(list) == 0:
		t.partial = "find can't list the files: " + lastLine(res.Stderr, "it said nothing")
	case res.Truncated || len(list) >= maxEntries:
		t.partial = "there are too many files to list"
	case bad:
		t.partial = "the list of the files can't be read"
	}
	t.fetch = func(ctx context.Context, paths []string, limit int) (map[string][]byte, error) {
		return fetchInside(ctx, r, paths, limit)
	}
	return t, nil
}

func parseListing(out []byte) (list []entry, bad bool) {
	for len(out) > 0 && len(list) < maxEntries {
		head, rest, ok := bytes.Cut(out, []byte{0})
		if !ok {
			return list, true
		}
		target, rest, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			return list, true
		}
		out = rest
		facts, name, ok := strings.Cut(string(head), "\t")
		fields := strings.Fields(facts)
		if !ok || len(fields) != 5 || len(fields[0]) != 1 {
			return list, true
		}
		bits, err1 := strconv.ParseUint(fields[1], 8, 32)
		uid, err2 := strconv.ParseUint(fields[2], 10, 32)
		gid, err3 := strconv.ParseUint(fields[3], 10, 32)
		size, err4 := strconv.ParseInt(fields[4], 10, 64)
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || size < 0 {
			return list, true
		}
		list = append(list, entry{
			path: clean(name), mode: fileMode(fields[0][0], uint32(bits)), uid: uint32(uid), gid: uint32(gid), size: size, target: string(target),
		})
	}
	return list, false
}

func fetchInside(ctx context.Context, r remote.Runner, paths []string, limit int) (map[string][]byte, error) {
	out := make(map[string][]byte, len(paths))
	var names strings.Builder
	var asked []string
	for _, p := range paths {
		if !strings.ContainsAny(p, "\n\r\x00") {
			asked = append(asked, p)
			names.WriteString(p + "\n")
		}
	}
	res, err := r.Run(ctx, remote.Script{Text: fetchScript, Args: []string{strconv.Itoa(limit)}, Stdin: strings.NewReader(names.String()), Limit: maxFetch})
	if err != nil {
		return nil, fmt.Errorf("audit: read files: %w", err)
	}
	rest := res.Stdout
	for _, p := range asked {
		line, tail, ok := bytes.Cut(rest, []byte{'\n'})
		if !ok {
			break
		}
		rest = tail
		if string(line) == "-" {
			continue
		}
		content, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(content) > limit {
			continue
		}
		out[p] = content
	}
	return out, nil
}

func lastLine(b []byte, otherwise string) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return otherwise
}
