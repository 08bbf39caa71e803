package workcopy

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Cloned is what a clone gave.
type Cloned struct {
	Commit string // full hash, that the branch begins at
}

const exitGit = 123 // the script's own: git said why

// cloneScript clones into the working folder. Arguments: folder, run's folder, url, ref, depth, branch. What is secret
// comes by variables, goes into files in memory that only the user can read, and is gone when the script ends. askpass
// holds no secret itself: it lies where programs may be run, and reads one from there.
const cloneScript = `needs git cp mkdir mktemp stat
dir=$1; state=$2; url=$3; ref=$4; depth=$5; branch=$6
mem=
if [ -n "${SBX_TOKEN:-}${SBX_KEY:-}" ]; then
  for d in "${XDG_RUNTIME_DIR:-/run/user/$(id -u)}" /dev/shm /run/lock /run; do
    if [ -d "$d" ] && [ -w "$d" ]; then
      case $(stat -f -c %T "$d" 2>/dev/null) in tmpfs|ramfs) mem=$(umask 077; mktemp -d "$d/sbx-git-XXXXXX") && break;; esac
    fi
  done
  [ -n "$mem" ] || say 122 "no folder in memory (tmpfs) is there for the credentials that $(id -un) could write: /dev/shm as a rule"
fi
leave() { [ -z "$mem" ] || rm -rf "$mem"; rm -f "$state/askpass"; }
trap leave EXIT
trap 'exit 143' HUP INT TERM
` + readyFolder + `rm -f "$state/askpass"
if [ -n "${SBX_TOKEN:-}" ]; then
  (umask 077; printf %s "$SBX_USERNAME" > "$mem/username"; printf %s "$SBX_TOKEN" > "$mem/token") || exit 1
  printf '#!/bin/sh\ncase $1 in Username*) cat "$SBX_MEM/username";; *) cat "$SBX_MEM/token";; esac\n' > "$state/askpass" && chmod 700 "$state/askpass" || exit 1
  export SBX_MEM="$mem" GIT_ASKPASS="$state/askpass"
fi
if [ -n "${SBX_KEY:-}" ]; then
  needs ssh
  (umask 077; printf '%s\n' "$SBX_KEY" > "$mem/key"; printf '%s\n' "$SBX_HOSTS" > "$mem/hosts") || exit 1
  export GIT_SSH_COMMAND="ssh -F /dev/null -i '$mem/key' -o IdentitiesOnly=yes -o IdentityAgent=none -o UserKnownHostsFile='$mem/hosts' -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes -o BatchMode=yes"
fi
unset SBX_TOKEN SBX_USERNAME SBX_KEY SBX_HOSTS
mail=$(git config user.email)
g() { GIT_DIR="$dir/.git" GIT_WORK_TREE="$dir" ` + "%CLEAN%" + ` "$@"; }
try() { g "$@" || exit 123; }
try init -q --template= "$dir"
try remote add origin "$url"
set --
[ "$depth" = 0 ] || set -- "--depth=$depth"
if ! g fetch -q --no-tags "$@" origin "${ref:-HEAD}"; then
  # A commit's short name, or a server that gives no commits by name.
  [ -n "$ref" ] || exit 123
  case $ref in *[!0-9a-f]*) exit 123;; esac
  try fetch -q --tags origin '+refs/heads/*:refs/remotes/origin/*'
  at=$(g rev-parse -q --verify "$ref^{commit}") || { echo "the repository has no $ref" >&2; exit 123; }
else
  at=$(g rev-parse -q --verify 'FETCH_HEAD^{commit}') || exit 123
fi
printf '%s\n' .checkpoints/ .sandbox-copy > "$dir/.git/info/exclude" 2>/dev/null || { mkdir -p "$dir/.git/info" && printf '%s\n' .checkpoints/ .sandbox-copy > "$dir/.git/info/exclude"; } || exit 1
try checkout -q -b "$branch" "$at"
if [ -z "$mail" ]; then
  try config user.name 'sandbox agent'
  try config user.email agent@sandbox.invalid
fi
` + keepBase + `printf '%s\n' "$at" > "$state/commit" || exit 1
echo "$at"
`

// Clone makes the working folder a clone of a repository, on a new branch, and keeps what it was like. It runs inside the
// guest, as the user of the working copy: whatever the repository holds gets no further than that.
func Clone(ctx context.Context, p Place, repo Repo) (Cloned, error) {
	if err := repo.Check(); err != nil {
		return Cloned{}, err
	}
	if err := p.give(ctx); err != nil {
		return Cloned{}, err
	}
	env := maps.Clone(cleanGitEnv)
	if c := repo.Credentials; c != nil {
		env["SBX_TOKEN"], env["SBX_USERNAME"], env["SBX_KEY"], env["SBX_HOSTS"] = c.Token, orDefault(c.Username, "x-access-token"), strings.TrimSpace(c.SSHKey), strings.TrimSpace(c.KnownHosts)
	}
	delete(env, "LC_ALL") // the preamble's
	// Before the clone is there, the user's own configuration may say who commits.
	delete(env, "GIT_CONFIG_GLOBAL")
	delete(env, "GIT_CONFIG_NOSYSTEM")
	clean := "GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 git"
	for _, setting := range cleanGit {
		clean += " -c " + guest.Quote(setting)
	}
	out, err := p.run(ctx, call{
		verb: "clone the repository", script: strings.Replace(cloneScript, "%CLEAN%", clean, 1), env: env, limit: 4 << 10,
		args: []string{p.Dir, p.State, repo.URL, repo.Ref, strconv.Itoa(repo.Depth), repo.Branch},
	})
	if err != nil {
		if exitCode(err) == exitGit {
			err = fmt.Errorf("%w: %w", ErrGit, err)
		}
		return Cloned{}, err
	}
	return Cloned{Commit: strings.TrimSpace(string(out))}, nil
}

func orDefault(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// BaseCommit is the commit that the working folder was cloned at, as the guest remembers it; empty where it was no clone.
// The run's user could have written it: it is good for saying, and for naming a commit of the repository that changes are
// compared with again.
func BaseCommit(ctx context.Context, p Place) (string, error) {
	out, err := p.run(ctx, call{verb: "read the commit", script: `[ ! -f "$1/commit" ] || head -c 100 "$1/commit"` + "\n", args: []string{p.State}, limit: 200})
	if commit := strings.TrimSpace(string(out)); fullHash.MatchString(commit) {
		return commit, err
	}
	return "", err
}
