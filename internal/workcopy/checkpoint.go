package workcopy

import (
	"context"
	"regexp"
)

var labelPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

const checkpointScript = `needs cp mv rm mkdir
dir=$1; label=$2
cd "$dir" || exit 1
[ ! -h .checkpoints ] || say 122 "$dir/.checkpoints is a link"
mkdir -p .checkpoints || exit 1
new=.checkpoints/.new-$label
[ ! -e "$new" ] || { chmod -R u+rwX "$new"; rm -rf "$new"; }
mkdir "$new" || exit 1
copy() { cp -a --reflink=auto "$1" "$2" 2>/dev/null || { rm -rf "$2"; cp -a "$1" "$2"; }; }
for f in * .[!.]* ..?*; do
  case $f in .checkpoints|lost+found) continue;; esac
  if [ -e "$f" ] || [ -h "$f" ]; then copy "./$f" "$new/$f" || { rm -rf "$new"; exit 1; }; fi
done
[ ! -e ".checkpoints/$label" ] || { chmod -R u+rwX ".checkpoints/$label"; rm -rf ".checkpoints/$label"; }
mv "$new" ".checkpoints/$label"
`

// restoreScript copies first and swaps then, so that a full disk leaves the folder as it was.
const restoreScript = `needs cp mv rm mkdir
dir=$1; label=$2
cd "$dir" || exit 1
from=.checkpoints/$label
[ ! -h .checkpoints ] && [ -d "$from" ] && [ ! -h "$from" ] || say 122 "there is no checkpoint $label in $dir"
new=.checkpoints/.restore
[ ! -e "$new" ] || { chmod -R u+rwX "$new"; rm -rf "$new"; }
cp -a --reflink=auto "$from" "$new" 2>/dev/null || { rm -rf "$new"; cp -a "$from" "$new" || { rm -rf "$new"; exit 1; }; }
for f in * .[!.]* ..?*; do
  case $f in .checkpoints|lost+found) continue;; esac
  if [ -e "$f" ] || [ -h "$f" ]; then chmod -R u+rwX "./$f" 2>/dev/null; rm -rf "./$f" || exit 1; fi
done
for f in "$new"/* "$new"/.[!.]* "$new"/..?*; do
  if [ -e "$f" ] || [ -h "$f" ]; then mv "$f" . || exit 1; fi
done
rm -rf "$new"
`

// MakeCheckpoint copies the working folder into its .checkpoints, by reflink where the file system can, and never by hard
// links: a write in place would change both. One of the same label is replaced once the new one is whole. It returns the
// copy's path in the guest.
func MakeCheckpoint(ctx context.Context, p Place, label string) (string, error) {
	if !labelPattern.MatchString(label) {
		return "", refused("%q can't be the name of a checkpoint", label)
	}
	if err := p.check(); err != nil {
		return "", err
	}
	_, err := p.run(ctx, call{verb: "copy the working folder", script: checkpointScript, args: []string{p.Dir, label}, limit: 1 << 10})
	return p.Dir + "/" + Checkpoints + "/" + label, err
}

// RestoreCheckpoint makes the working folder what it was at a checkpoint, which stays.
func RestoreCheckpoint(ctx context.Context, p Place, label string) error {
	if !labelPattern.MatchString(label) {
		return refused("%q can't be the name of a checkpoint", label)
	}
	if err := p.check(); err != nil {
		return err
	}
	_, err := p.run(ctx, call{verb: "restore the working folder", script: restoreScript, args: []string{p.Dir, label}, limit: 1 << 10})
	return err
}
