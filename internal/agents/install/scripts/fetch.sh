# fetch.sh FILE SHA256 [URL]: FILE gets the content of URL, or of standard input without one, and must have that SHA-256.
set -eu
file=$1 sum=$2 url=${3:-}
mkdir -p "$(dirname "$file")"
if [ -z "$url" ]; then
  cat >"$file.part"
elif command -v curl >/dev/null; then
  curl --fail --silent --show-error --location --proto '=https,http,file' --retry 2 --connect-timeout 20 --output "$file.part" "$url"
elif command -v wget >/dev/null; then
  wget --quiet --tries 3 --timeout 20 --output-document "$file.part" "$url"
else
  echo "neither curl nor wget is there to download $url: install one before, or give a local file" >&2
  exit 3
fi
found=$(sha256sum "$file.part" | cut -d' ' -f1)
if [ "$found" != "$sum" ]; then
  rm -f "$file.part"
  rmdir "$(dirname "$file")" 2>/dev/null || true
  echo "checksum mismatch: ${url:-the file} has SHA-256 $found, wanted $sum" >&2
  exit 4
fi
mv "$file.part" "$file"
