package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// maxRepoSlug leaves room in a DNS label (63 characters) for what somebody puts
// in front or behind.
const maxRepoSlug = 48

// scpForm is git's short form, "git@host:owner/repo.git".
var scpForm = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):([^/\\].*)$`)

// RepoSlug names a repository's own workspace: a DNS label of at most 48
// characters, "owner-repo-" and 8 hexadecimal digits. The URLs of one
// repository (https, ssh, git's short form; with or without user, port, ".git"
// or a slash at the end, in whatever case) give the same name, and those of
// different repositories different ones.
func RepoSlug(repo string) (string, error) {
	host, path, err := splitRepo(strings.TrimSpace(repo))
	if err != nil {
		return "", err
	}
	var segments []string
	for s := range strings.SplitSeq(strings.ToLower(strings.TrimSuffix(strings.Trim(path, "/"), ".git")), "/") {
		switch s {
		case "", ".":
		case "..":
			return "", fmt.Errorf("%q: a repository's path has no \"..\"", repo)
		default:
			segments = append(segments, s)
		}
	}
	if len(segments) == 0 {
		return "", fmt.Errorf("%q names no repository: the path is empty", repo)
	}
	canonical := strings.ToLower(host) + "/" + strings.Join(segments, "/")
	sum := sha256.Sum256([]byte(canonical))
	suffix := "-" + hex.EncodeToString(sum[:4])
	name := label(strings.Join(segments, "-"))
	if len(name) > maxRepoSlug-len(suffix) {
		name = strings.Trim(name[len(name)-(maxRepoSlug-len(suffix)):], "-") // the end says more: it is the repository's name
	}
	if name == "" {
		name = "repo"
	}
	return name + suffix, nil
}

// splitRepo takes a URL or git's short form apart. Without either it is a path
// on an unnamed host ("owner/repo").
func splitRepo(repo string) (host, path string, err error) {
	switch {
	case repo == "":
		return "", "", errors.New("a repository's name can't be made from an empty text")
	case strings.Contains(repo, "://"):
		u, err := url.Parse(repo)
		if err != nil {
			// The URL may hold a password: the parser's message would repeat it.
			return "", "", errors.New("this is no URL of a repository")
		}
		if u.Scheme != "file" && u.Hostname() == "" {
			return "", "", errors.New("the URL names no host")
		}
		return u.Hostname(), u.Path, nil
	}
	if m := scpForm.FindStringSubmatch(repo); m != nil {
		return m[1], m[2], nil
	}
	return "", repo, nil
}

// label keeps what a DNS label takes; runs of other characters become a dash.
func label(s string) string {
	var b strings.Builder
	dash := true
	for _, r := range s {
		if isLetter(r) || r >= '0' && r <= '9' {
			b.WriteRune(r)
			dash = false
		} else if !dash {
			b.WriteByte('-')
			dash = true
		}
	}
	return strings.Trim(b.String(), "-")
}
