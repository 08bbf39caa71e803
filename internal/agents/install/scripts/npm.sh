# npm.sh PREFIX PACKAGE VERSION SCRIPTS [REGISTRY]: installs one package and what it needs into a prefix of its own.
#
# engine-strict: npm takes a release that this Node.js is too old for, with a warning only.
# allow-scripts: npm 12 runs no install script that isn't named, says nothing, and the command is there and dead. It may be
#   named for a global installation only, which is why this is one, with a prefix.
set -eu
prefix=$1 package=$2 version=$3 scripts=$4 registry=${5:-}
if ! command -v npm >/dev/null; then echo "npm is not there: give a source for Node.js, or install it before" >&2; exit 3; fi
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
rm -rf "$prefix.new"
mkdir -p "$prefix.new"
set -- --global --prefix "$prefix.new" --cache "$cache" --engine-strict --no-fund --no-audit --no-update-notifier --loglevel error
if [ "$scripts" = yes ]; then set -- "$@" "--allow-scripts=$package" --ignore-scripts=false; else set -- "$@" --ignore-scripts; fi
if [ -n "$registry" ]; then set -- "$@" --registry "$registry"; fi
HOME=$cache npm install "$@" "$package@$version"
if [ "$(id -u)" = 0 ]; then chown -R root:root "$prefix.new"; fi
chmod -R go-w "$prefix.new"
rm -rf "$prefix"
mv "$prefix.new" "$prefix"
