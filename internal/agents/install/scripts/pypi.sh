# pypi.sh PREFIX PACKAGE VERSION PYTHON [INDEX]: installs one package by uv into an environment of its own, with a Python in the given range.
set -eu
prefix=$1 package=$2 version=$3 python=$4 index=${5:-}
if ! command -v uv >/dev/null; then echo "uv is not there: give a source for it, or install it before" >&2; exit 3; fi
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
rm -rf "$prefix"
mkdir -p "$prefix"
set -- --python "$python" --no-config --cache-dir "$cache"
if [ -n "$index" ]; then set -- "$@" --default-index "$index"; fi
# An environment holds its own path, so it can't be made aside and moved. Outside of a home that others can't read.
UV_TOOL_DIR=$prefix/tool UV_TOOL_BIN_DIR=$prefix/bin UV_PYTHON_INSTALL_DIR=${prefix%/*}/python HOME=$cache uv tool install "$@" "$package==$version"
if [ "$(id -u)" = 0 ]; then chown -R root:root "$prefix"; fi
chmod -R go-w "$prefix"
