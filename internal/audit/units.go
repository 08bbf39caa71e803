package audit

import (
	"io/fs"
	"path"
	"strings"
)

// unitFolders are where systemd looks for units, the first first.
var unitFolders = []string{"etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

// unit is a unit's file, and whether it is there; a masked one isn't.
func (g *system) unit(name string) (file string, ok bool) {
	for _, dir := range unitFolders {
		file := dir + "/" + name
		e, ok := g.lstat(file)
		if !ok {
			continue
		}
		if e.mode&fs.ModeSymlink != 0 && e.target == "/dev/null" || e.mode.IsRegular() && e.size == 0 {
			return "", false
		}
		if e.mode&fs.ModeSymlink != 0 {
			if _, ok := g.stat(file); !ok {
				continue
			}
		}
		return file, true
	}
	return "", false
}

// enabled says whether something pulls a unit in at boot: a link in a .wants or
// .requires folder, under /etc or as the distribution ships it.
func (g *system) enabled(name string) (where string, on bool) {
	if _, ok := g.unit(name); !ok {
		return "", false
	}
	for _, dir := range unitFolders {
		for _, d := range g.children(dir) {
			if !strings.HasSuffix(d.path, ".wants") && !strings.HasSuffix(d.path, ".requires") {
				continue
			}
			if _, ok := g.lstat(path.Join(d.path, name)); ok {
				return path.Join(d.path, name), true
			}
		}
	}
	return "", false
}

// unitHas says whether a unit, or a drop-in of it, has a line.
func (g *system) unitHas(file, line string) bool {
	for _, l := range g.lines(file) {
		if strings.ReplaceAll(l, " ", "") == strings.ReplaceAll(line, " ", "") {
			return true
		}
	}
	return false
}
