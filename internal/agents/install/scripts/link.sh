# link.sh DIR BIN NAME…: the commands in DIR become commands of everybody, by links in BIN.
set -eu
dir=$1 bin=$2
shift 2
mkdir -p "$bin"
for name; do
  if [ ! -x "$dir/$name" ]; then echo "$dir/$name is not there, or no command" >&2; exit 5; fi
  if [ -e "$bin/$name" ] && [ ! -L "$bin/$name" ]; then echo "$bin/$name is there and is no link of ours: remove it before" >&2; exit 6; fi
  ln -sfn "$dir/$name" "$bin/$name"
done
