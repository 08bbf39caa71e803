package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// newUUID is a random UUID, as mkfs prints it.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// logFormat is what making a volume prints: the image on folder storage, then the file system. A subvolume prints
// nothing.
func (t *task) logFormat(st *storage, v *volume) {
	if v.Format != "raw" {
		return
	}
	if st.Type == "dir" {
		t.logf("Formatting '%s', fmt=raw size=%d preallocation=off", volumePathOf(st, v.VolID), v.Size)
	}
	blocks := v.Size / 4096
	t.logf("Creating filesystem with %d 4k blocks and %d inodes", blocks, v.Size/16384)
	t.logf("Filesystem UUID: %s", newUUID())
	t.Lines = append(t.Lines, "Superblock backups stored on blocks: ")
	t.logf("\t%s", strings.Join(superblockBackups(blocks), ", "))
}

// superblockBackups: ext4 keeps copies in the block groups 1 and the powers of 3, 5 and 7.
func superblockBackups(blocks int64) []string {
	const group = 32768
	var out []string
	for n := int64(1); n*group < blocks; n++ {
		if n == 1 || powerOf(n, 3) || powerOf(n, 5) || powerOf(n, 7) {
			out = append(out, fmt.Sprint(n*group))
		}
	}
	return out
}

func powerOf(n, base int64) bool {
	for n > 1 && n%base == 0 {
		n /= base
	}
	return n == 1
}

// volumePathOf is a volume's file on the node.
func volumePathOf(st *storage, volid string) string {
	_, name, _ := strings.Cut(volid, ":")
	switch st.Type {
	case "btrfs":
		return fmt.Sprintf("%s/images/%s/disk.raw", st.Path, strings.TrimSuffix(name, ".raw"))
	case "dir":
		if kind, file, _ := strings.Cut(name, "/"); kind == "vztmpl" {
			return st.Path + "/template/cache/" + file
		} else if kind == "backup" {
			return st.Path + "/dump/" + file
		}
		return st.Path + "/images/" + name
	}
	return "/dev/" + st.ID + "/" + name
}

// logExtract is what unpacking a template prints.
func (t *task) logExtract(path string, bytes int64, took time.Duration) {
	t.logf("extracting archive '%s'", path)
	t.logf("Total bytes read: %d (%dMiB, %dMiB/s)", bytes, bytes>>20, rate(bytes, took)>>20)
}

func rate(bytes int64, took time.Duration) int64 {
	if took < time.Millisecond {
		took = time.Millisecond
	}
	return int64(float64(bytes) / took.Seconds())
}

// logHostKeys is what the first set-up of a guest prints about its SSH host keys.
func (t *task) logHostKeys(hostname string) {
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		var seed [32]byte
		_, _ = rand.Read(seed[:]) // never fails
		sum := sha256.Sum256(seed[:])
		t.logf("Creating SSH host key 'ssh_host_%s_key' - this may take some time ...", kind)
		t.logf("done: SHA256:%s root@%s", base64.RawStdEncoding.EncodeToString(sum[:]), hostname)
	}
}

// logCopy is the statistics that copying a root prints, or the lab's empty-looking mount points.
func (t *task) logCopy(key string, bytes int64) {
	files := int64(rootFiles)
	if key != "rootfs" {
		files, bytes = 0, 0
	}
	t.Lines = append(t.Lines,
		"",
		"Number of files: "+fileKinds(files+2),
		"Number of created files: "+fileKinds(files),
		"Number of deleted files: 0",
		"Number of regular files transferred: "+thousands(files*8/10),
		fmt.Sprintf("Total file size: %s bytes", thousands(bytes)),
		fmt.Sprintf("Total transferred file size: %s bytes", thousands(bytes)),
		fmt.Sprintf("Literal data: %s bytes", thousands(bytes)),
		"Matched data: 0 bytes",
		"File list size: "+thousands(files*20),
		"File list generation time: 0.001 seconds",
		"File list transfer time: 0.000 seconds",
		"Total bytes sent: "+thousands(bytes+files*60),
		"Total bytes received: "+thousands(files*16),
		"",
		fmt.Sprintf("sent %s bytes  received %s bytes  %s bytes/sec", thousands(bytes+files*60), thousands(files*16), thousands(bytes)+".00"),
		fmt.Sprintf("total size is %s  speedup is 1.00", thousands(bytes)),
	)
}

// rootFiles is about how many files a small Debian has.
const rootFiles = 6551

// fileKinds splits a number of files as they are in a small Debian; a few are a volume's own folders.
func fileKinds(files int64) string {
	regular, links := files*8/10, files/12
	switch {
	case files == 0:
		return "0"
	case files < 10:
		return fmt.Sprintf("%d (dir: %d)", files, files)
	}
	return fmt.Sprintf("%s (reg: %s, dir: %s, link: %s)", thousands(files), thousands(regular), thousands(files-regular-links), thousands(links))
}

// thousands writes 1,234,567.
func thousands(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// logResize is what growing an ext4 image prints. A running container's is grown in place, a stopped one's is checked
// first.
func (t *task) logResize(path string, before, after int64, root, running bool) {
	t.logf("Image resized.")
	if running {
		t.logf("resize2fs 1.47.2 (1-Jan-2025)")
		t.logf("Filesystem at %s is mounted on /tmp; on-line resizing required", path)
		t.logf("old_desc_blocks = 1, new_desc_blocks = 1")
	} else {
		t.logf("e2fsck 1.47.2 (1-Jan-2025)")
		t.logf("Pass 1: Checking inodes, blocks, and sizes")
		t.logf("Pass 2: Checking directory structure")
		t.logf("Pass 3: Checking directory connectivity")
		t.logf("Pass 4: Checking reference counts")
		t.logf("Pass 5: Checking group summary information")
		files, blocks := int64(12), 8779+before/(1<<30)*4241
		if root {
			files, blocks = 6561, 49079+before/(1<<30)*4241
		}
		t.logf("%s: %d/%d files (0.0%% non-contiguous), %d/%d blocks", path, files, before/16384, blocks, before/4096)
		t.logf("resize2fs 1.47.2 (1-Jan-2025)")
		t.logf("Resizing the filesystem on %s to %d (4k) blocks.", path, after/4096)
	}
	t.logf("The filesystem on %s is now %d (4k) blocks long.", path, after/4096)
	t.Lines = append(t.Lines, "")
}
