package guest

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/pkg/sftp"
)

// fileSystemOf is the type of the file system that name lies on, or that it
// would be made on: "ext4", "tmpfs".
func fileSystemOf(client *sftp.Client, name string) (string, error) {
	// The nearest folder that exists, with its links resolved, as a link into
	// a disk's file system would else pass for memory.
	for {
		_, err := client.Stat(name)
		if err == nil || name == "/" {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		name = path.Dir(name)
	}
	real, err := client.RealPath(name)
	if err != nil {
		return "", err
	}
	table, err := readSmall(client, "/proc/mounts", 16<<20)
	if err != nil {
		return "", err
	}
	return mountType(string(table), real), nil
}

// mountType finds the file system of an absolute path in /proc/mounts: the
// longest mount point above it, and of several at one point the last.
func mountType(table, name string) string {
	best, kind := -1, ""
	for _, line := range strings.Split(table, "\n") {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		point := unescapeMount(f[1])
		if point != "/" && name != point && !strings.HasPrefix(name, point+"/") {
			continue
		}
		if len(point) >= best {
			best, kind = len(point), f[2]
		}
	}
	return kind
}

// unescapeMount undoes the kernel's octal escapes of blank, tab, newline, \ and #.
func unescapeMount(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func inMemory(kind string) bool { return kind == "tmpfs" || kind == "ramfs" }
