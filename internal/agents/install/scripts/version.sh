# version.sh COMMAND ARGUMENT…: what a command says of its version, run by nobody in a home of its own, without a terminal, for a minute at most.
set -eu
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
chmod 0777 "$home"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then set -- setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; fi
cd "$home"
HOME=$home XDG_CONFIG_HOME=$home/.config XDG_CACHE_HOME=$home/.cache timeout 60 "$@" </dev/null 2>&1
