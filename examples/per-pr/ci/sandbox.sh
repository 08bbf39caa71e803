#!/bin/sh
# The steps of the workflows beside this file, so that they are the same everywhere and can be run by hand:
#
#   sandbox.sh plan | comment | apply | destroy | reap
#
# What they need comes from the environment, never from arguments:
#   TF                  terraform or tofu; default tofu
#   BACKEND             where states are: s3, http or local (for trying it out)
#   STATE_KEY           one for each pull request, such as pr-42; the janitor has its own
#   STATE_BUCKET        with s3: the bucket; region and credentials as AWS_* variables
#   TF_HTTP_*           with http: address, lock_address, username, password
#   TF_VAR_pull_request, TF_VAR_commit, TF_VAR_run, TF_VAR_token
#   SANDBOX_*           the provider's configuration
#   COMMENTS, EDIT, EDIT_METHOD, COMMENT_HEADER
#                       where comment writes, see there; it needs curl and jq
set -eu

TF=${TF:-tofu}
here=$(cd "$(dirname "$0")/.." && pwd)
plan=$here/plan.tfplan

# A plan waits this long for another run of the same pull request to let go of the state.
lock=-lock-timeout=5m

init() {
  folder=$1 key=$2
  printf 'terraform {\n  backend "%s" {}\n}\n' "${BACKEND:?s3, http or local}" > "$folder/backend_override.tf"
  case $BACKEND in
    s3)
      "$TF" -chdir="$folder" init -input=false -reconfigure \
        -backend-config="bucket=${STATE_BUCKET:?}" -backend-config="key=sandboxes/$key.tfstate" -backend-config=use_lockfile=true
      ;;
    local)
      "$TF" -chdir="$folder" init -input=false -reconfigure -backend-config="path=$key.tfstate"
      ;;
    *)
      "$TF" -chdir="$folder" init -input=false -reconfigure
      ;;
  esac
}

# The saved plan and its text stay on the runner: a plan holds what a state holds.
plan() {
  umask 077
  init "$here" "${STATE_KEY:?}"
  "$TF" -chdir="$here" plan -input=false "$lock" -no-color -out="$plan"
  "$TF" -chdir="$here" show -no-color "$plan" > "$here/plan.txt"
}

# Ephemeral variables stand in no plan, so they are given again: the step needs the same TF_VAR_* as the plan.
apply() {
  "$TF" -chdir="$here" apply -input=false "$lock" "$plan"
  rm -f "$plan"
}

destroy() {
  init "$here" "${STATE_KEY:?}"
  "$TF" -chdir="$here" destroy -input=false "$lock" -auto-approve
}

reap() {
  init "$here/janitor" janitor
  "$TF" -chdir="$here/janitor" apply -input=false "$lock" -auto-approve
}

# The plan as one comment, which each push replaces.
marker='<!-- sandbox-plan -->'

body() {
  printf '%s\n### Sandbox of this pull request\n\n<details><summary>Plan of %s</summary>\n\n```text\n' "$marker" "${TF_VAR_commit:-this commit}"
  head -c 50000 "$here/plan.txt"
  printf '\n```\n\n</details>\n'
}

comment() {
  umask 077
  body > "$here/comment.md"
  jq -Rs '{body: .}' < "$here/comment.md" > "$here/comment.json"
  # COMMENTS is the API's list of comments, EDIT the address that an id is put behind; COMMENT_HEADER stands in a file,
  # so that the token is in no process's arguments.
  header=$here/comment.header
  trap 'rm -f "$header"' EXIT
  printf '%s\n' "${COMMENT_HEADER:?}" > "$header"
  id=$(curl -fsS -H "@$header" "${COMMENTS:?}?per_page=100&limit=50" |
    jq -r --arg marker "$marker" '[.[] | select(.body | startswith($marker)) | .id] | first // empty')
  if [ -n "$id" ]; then
    set -- -X "${EDIT_METHOD:-PATCH}" "${EDIT:?}/$id"
  else
    set -- -X POST "$COMMENTS"
  fi
  curl -fsS -o /dev/null -H "@$header" -H 'Content-Type: application/json' --data-binary "@$here/comment.json" "$@"
}

case ${1:-} in
  plan | comment | apply | destroy | reap) "$1" ;;
  *)
    sed -n '2,4p' "$0" >&2
    exit 2
    ;;
esac
