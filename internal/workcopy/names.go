package workcopy

import (
	"path"
	"strings"
	"unicode/utf8"
)

// checkName refuses a path, relative to a working folder, that isn't one below it on every system, or that reaches
// what belongs to git.
func checkName(name string) error {
	switch {
	case name == "" || name == ".":
		return refused("a path without a name")
	case strings.ContainsRune(name, 0):
		return refused("path %q holds a NUL byte", name)
	case strings.HasPrefix(name, "/"):
		return refused("path %q is absolute", name)
	case len(name) > 4096:
		return refused("a path of %d bytes", len(name))
	case path.Clean(name) != name:
		return refused("path %q isn't a plain path (it has \"..\", \".\" or empty parts)", name)
	case strings.ContainsRune(name, '\\'):
		return refused("path %q holds a backslash, which separates folders on some systems", name)
	case !utf8.ValidString(name):
		return refused("path %q isn't UTF-8", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return refused("path %q leads out of the folder", name)
		}
		if isGitName(part) {
			return refused("path %q reaches into git's own folder", name)
		}
	}
	return nil
}

// isGitName says whether a file system may take a name for ".git": without regard to case, to what HFS+ ignores, to
// blanks, dots and stream names at the end (NTFS), or by its short name.
func isGitName(part string) bool {
	part = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, part)
	part, _, _ = strings.Cut(part, ":")
	part = strings.ToLower(strings.TrimRight(part, " ."))
	return part == ".git" || strings.HasPrefix(part, "git~")
}

// checkLink refuses a symbolic link at name, whose target leads out of the folder or into git's, by its text alone.
func checkLink(name, target string) error {
	if target == "" || path.IsAbs(target) || strings.ContainsAny(target, "\x00\\") || !utf8.ValidString(target) || len(target) > 4096 {
		return refused("link %q leads to %q, which isn't a path below the folder", name, target)
	}
	at := strings.Split(path.Dir(name), "/")
	if at[0] == "." {
		at = nil
	}
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			if len(at) == 0 {
				return refused("link %q leads out of the folder, to %q", name, target)
			}
			at = at[:len(at)-1]
		case isGitName(part):
			return refused("link %q leads into git's own folder, to %q", name, target)
		default:
			at = append(at, part)
		}
	}
	return nil
}
