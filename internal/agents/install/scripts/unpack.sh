# unpack.sh ARCHIVE DIR BINARY STRIP: DIR becomes what the archive holds, without STRIP leading folders. What is no archive is BINARY itself.
set -eu
archive=$1 dir=$2 binary=$3 strip=$4
rm -rf "$dir.new"
mkdir -p "$dir.new"
case $archive in
  *.tar.gz | *.tgz | *.tar.xz | *.tar.bz2 | *.tar)
    case $archive in *.xz) need=xz ;; *.bz2) need=bzip2 ;; *) need=tar ;; esac
    if ! command -v "$need" >/dev/null; then echo "$need is not there to unpack ${archive##*/}: install it before" >&2; exit 3; fi
    tar -xf "$archive" -C "$dir.new" --strip-components="$strip" --no-same-owner
    ;;
  *)
    mkdir -p "$dir.new/bin"
    cp "$archive" "$dir.new/bin/$binary"
    chmod 0755 "$dir.new/bin/$binary"
    ;;
esac
# One file at the top of an archive is the command.
if [ ! -e "$dir.new/bin/$binary" ] && [ -f "$dir.new/$binary" ]; then
  mkdir -p "$dir.new/bin"
  mv "$dir.new/$binary" "$dir.new/bin/$binary"
fi
if [ ! -x "$dir.new/bin/$binary" ]; then echo "${archive##*/} holds no command $binary" >&2; exit 5; fi
if [ "$(id -u)" = 0 ]; then chown -R root:root "$dir.new"; fi
chmod -R go-w "$dir.new"
rm -rf "$dir"
mv "$dir.new" "$dir"
rm -f "$archive"
rmdir "$(dirname "$archive")" 2>/dev/null || true
