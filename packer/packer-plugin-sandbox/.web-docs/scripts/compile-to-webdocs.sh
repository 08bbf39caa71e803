#!/usr/bin/env bash
# Makes .web-docs/components/<kind>/<name>/README.md of the rendered pages: the form that the integrations site reads. The front matter
# goes, the rest is Markdown.
#   compile-to-webdocs.sh RENDERED COMPONENTS
set -euo pipefail
rendered=$1 components=$2
rm -rf "$components"
cp "$rendered/README.md" "$(dirname "$components")/README.md"
for page in "$rendered"/*/*.mdx; do
  kind=$(basename "$(dirname "$page")")
  case $kind in
    builders) kind=builder ;; provisioners) kind=provisioner ;; datasources) kind=data-source ;; post-processors) kind=post-processor ;;
    *) echo "unknown kind of page: $page" >&2; exit 1 ;;
  esac
  name=$(basename "$page" .mdx)
  mkdir -p "$components/$kind/$name"
  awk 'NR == 1 && $0 == "---" { front = 1; next } front && $0 == "---" { front = 0; next } !front' "$page" > "$components/$kind/$name/README.md"
done
