package guest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var guestFiles = map[string]string{
	"/etc/passwd":   "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/usr/sbin/nologin\nagent:x:1000:1001:Agent,,,:/home/agent:/bin/bash\n",
	"/etc/group":    "root:x:0:\nagents:x:1001:agent\n",
	"/etc/motd":     "hello\n",
	"/run/x":        "",
	"/home/agent/x": "",
	"/proc/mounts":  "/dev/loop0 / ext4 rw 0 0\nproc /proc proc rw 0 0\ntmpfs /run tmpfs rw 0 0\ntmpfs /mnt/a\\040b tmpfs rw 0 0\n/dev/sdb /run/disk ext4 rw 0 0\n",
}

// guestWithFiles is a guest with a file tree, whose commands are answered by exec.
func guestWithFiles(t testing.TB, exec func(script string) (out string, code int)) (*tree, *Pool, Target) {
	t.Helper()
	pemKey, public := newKey(t)
	tr := newTree(t, guestFiles)
	s := startServer(t, public, func(s *server) {
		s.sftp = tr.serve
		s.exec = func(_ string, ch *execChannel) {
			var header bytes.Buffer
			_, _ = header.ReadFrom(ch)
			out, code := "", 127
			if exec != nil {
				out, code = exec(header.String())
			}
			_, _ = ch.Write([]byte(out))
			ch.exit(code)
		}
	})
	return tr, newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}}), s.target("101")
}

func TestStatTellsSizeModeOwnerAndHash(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	tr.owners["etc/motd"] = [2]uint32{1000, 4242}
	info, err := p.Stat(t.Context(), target, "/etc/motd", true)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("hello\n"))
	if info.Size != 6 || info.Mode != 0o644 || info.UID != 1000 || info.GID != 4242 || info.Owner != "agent" || info.Group != "4242" || info.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("got %+v", info)
	}
	if info, err := p.Stat(t.Context(), target, "/etc", true); err != nil || !info.Mode.IsDir() || info.SHA256 != "" {
		t.Errorf("a folder: %+v, %v", info, err)
	}
	_, err = p.Stat(t.Context(), target, "/etc/none", false)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/etc/none") || !strings.Contains(err.Error(), "box101") {
		t.Errorf("a file that isn't there: %v", err)
	}
	if _, err := p.Stat(t.Context(), target, "etc/motd", false); err == nil {
		t.Error("a relative path was taken")
	}
}

func TestReadFileIsBounded(t *testing.T) {
	t.Parallel()
	_, p, target := guestWithFiles(t, nil)
	if content, err := p.ReadFile(t.Context(), target, "/etc/motd", 6); err != nil || string(content) != "hello\n" {
		t.Errorf("got %q, %v", content, err)
	}
	_, err := p.ReadFile(t.Context(), target, "/etc/motd", 5)
	var large *TooLargeError
	if !errors.As(err, &large) || large.Size != 6 || large.Limit != 5 {
		t.Errorf("got %v", err)
	}
	if _, err := p.ReadFile(t.Context(), target, "/etc", 100); err == nil {
		t.Error("a folder was read")
	}
}

func TestWriteFileReplacesAtOnceAndReadsBack(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	content := make([]byte, 1<<20+17)
	random := rand.NewChaCha8([32]byte{2})
	_, _ = random.Read(content)
	info, err := p.WriteFile(t.Context(), target, File{Path: "/etc/motd", Content: bytes.NewReader(content), Mode: 0o640, Owner: "agent:root"})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if info.SHA256 != hex.EncodeToString(sum[:]) || info.Size != int64(len(content)) || info.Mode != 0o640 || info.UID != 1000 || info.GID != 0 || info.Owner != "agent" {
		t.Errorf("got %+v", info)
	}
	if tr.content(t, "/etc/motd") != string(content) {
		t.Error("the file holds something else")
	}
	if names := tr.list(t, "/etc"); !slices.Equal(names, []string{"group", "motd", "passwd"}) {
		t.Errorf("left in the folder: %q", names)
	}
	for _, r := range tr.requests {
		if strings.HasSuffix(r, " /etc/motd") && !strings.HasPrefix(r, "Stat") && !strings.HasPrefix(r, "Lstat") && !strings.HasPrefix(r, "Get") {
			t.Errorf("the file itself was touched: %s", r)
		}
	}
}

func TestWriteFileIsClosedToOthersBeforeItHasContent(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	seen := fs.FileMode(0)
	peek := readerFunc(func() { // when the content is asked for
		for _, name := range tr.list(t, "/run") {
			if strings.HasPrefix(name, ".secret.sandbox-") {
				info, err := tr.root.Stat("run/" + name)
				if err != nil {
					t.Error(err)
					return
				}
				seen = info.Mode()
			}
		}
	})
	if _, err := p.WriteFile(t.Context(), target, File{Path: "/run/secret", Content: peek, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if seen != 0o600 {
		t.Errorf("the temporary file had mode %v", seen)
	}
}

// readerFunc is an empty reader that calls itself once.
type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) { f(); return 0, io.EOF }

func TestWriteFileLeavesTheOldContentWhenItFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("source is broken")
	for name, tc := range map[string]struct {
		deny string
		file File
		want string
	}{
		"source":          {"", File{Path: "/etc/motd", Content: &failing{broken}}, "source is broken"},
		"chmod":           {"Setstat", File{Path: "/etc/motd", Content: strings.NewReader("new")}, "mode"},
		"rename":          {"PosixRename", File{Path: "/etc/motd", Content: strings.NewReader("new")}, "unable to write"},
		"unknown user":    {"", File{Path: "/etc/motd", Owner: "nobody-here"}, `no user "nobody-here"`},
		"unknown group":   {"", File{Path: "/etc/motd", Owner: "root:none-such"}, `no group "none-such"`},
		"malformed owner": {"", File{Path: "/etc/motd", Owner: "a:b:c"}, "user:group"},
		"folder":          {"", File{Path: "/etc", Content: strings.NewReader("new")}, "a folder is there"},
		"missing folder":  {"", File{Path: "/none/x", Content: strings.NewReader("new")}, "/none/x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, p, target := guestWithFiles(t, nil)
			if tc.deny != "" {
				tr.deny[tc.deny] = errors.New("denied")
			}
			_, err := p.WriteFile(t.Context(), target, tc.file)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			if got := tr.content(t, "/etc/motd"); got != "hello\n" {
				t.Errorf("the file is now %q", got)
			}
			if names := tr.list(t, "/etc"); !slices.Equal(names, []string{"group", "motd", "passwd"}) {
				t.Errorf("left in the folder: %q", names)
			}
		})
	}
}

func TestWriteFileCutByTheContextLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	endless := endlessReader(cancel)
	_, err := p.WriteFile(ctx, target, File{Path: "/etc/motd", Content: endless})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if names := tr.list(t, "/etc"); !slices.Equal(names, []string{"group", "motd", "passwd"}) || tr.content(t, "/etc/motd") != "hello\n" {
		t.Errorf("left behind: %q", names)
	}
}

// endlessReader cancels at its first read and never ends.
type endlessReader func()

func (f endlessReader) Read(p []byte) (int, error) { f(); return len(p), nil }

func TestWriteFileReplacesALinkInsteadOfFollowingIt(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	if err := tr.root.Symlink("../../etc/passwd", "home/agent/link"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.WriteFile(t.Context(), target, File{Path: "/home/agent/link", Content: strings.NewReader("mine")}); err != nil {
		t.Fatal(err)
	}
	if tr.content(t, "/etc/passwd") != guestFiles["/etc/passwd"] || tr.content(t, "/home/agent/link") != "mine" {
		t.Error("the link was followed")
	}
}

func TestSecretsAreWrittenToMemoryOnly(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	if _, err := p.WriteFile(t.Context(), target, File{Path: "/run/deep/secret", Content: strings.NewReader("s"), TmpfsOnly: true, MakeDirs: true, Mode: 0o600}); err != nil {
		t.Error(err)
	}
	before := len(tr.requests)
	for _, path := range []string{"/etc/secret", "/run/disk/secret"} {
		tr.put(t, "/run/disk/x", "")
		_, err := p.WriteFile(t.Context(), target, File{Path: path, Content: strings.NewReader("s"), TmpfsOnly: true})
		var onDisk *NotTmpfsError
		if !errors.As(err, &onDisk) || onDisk.Type != "ext4" {
			t.Errorf("%s: got %v", path, err)
		}
	}
	for _, r := range tr.requests[before:] {
		if strings.HasPrefix(r, "Put") {
			t.Errorf("something was written: %s", r)
		}
	}
}

func TestIsTmpfsLooksAtTheNearestFolderThatExists(t *testing.T) {
	t.Parallel()
	_, p, target := guestWithFiles(t, nil)
	for path, want := range map[string]bool{"/run": true, "/run/a/b/c": true, "/runner": false, "/etc/passwd": false, "/": false} {
		if got, err := p.IsTmpfs(t.Context(), target, path); err != nil || got != want {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}

func TestIsTmpfsAsksStatWhereThereIsNoMountTable(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, func(script string) (string, int) {
		if strings.Contains(script, "stat -f") && strings.Contains(script, "/run") {
			return "tmpfs\n", 0
		}
		return "", 1
	})
	if err := tr.root.Remove("proc/mounts"); err != nil {
		t.Fatal(err)
	}
	if got, err := p.IsTmpfs(t.Context(), target, "/run/x"); err != nil || !got {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := p.IsTmpfs(t.Context(), target, "/etc"); err == nil {
		t.Error("an unknown file system passed")
	}
}

func TestOwnersOfOtherSourcesAreAskedFor(t *testing.T) {
	t.Parallel()
	_, p, target := guestWithFiles(t, func(script string) (string, int) {
		switch {
		case strings.Contains(script, "'id' '-u' 'ldap.user'"):
			return "5000\n", 0
		case strings.Contains(script, "'id' '-g' 'ldap.user'"):
			return "5001\n", 0
		case strings.Contains(script, "getent group") && strings.Contains(script, "'ldapgroup'"):
			return "5002\n", 0
		}
		return "", 1
	})
	for owner, want := range map[string][2]uint32{
		"ldap.user": {5000, 5001}, "ldap.user:ldapgroup": {5000, 5002}, ":agents": {0, 1001}, "agent": {1000, 1001}, "1000": {1000, 1001}, "77": {77, 77}, "77:88": {77, 88},
	} {
		info, err := p.WriteFile(t.Context(), target, File{Path: "/etc/owned", Owner: owner})
		if err != nil || info.UID != want[0] || info.GID != want[1] {
			t.Errorf("%s: %d:%d, %v", owner, info.UID, info.GID, err)
		}
		if err := p.Remove(t.Context(), target, "/etc/owned"); err != nil {
			t.Error(err)
		}
	}
}

func TestRemoveAndMkdirAreIdempotent(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	for range 2 {
		if err := p.Mkdir(t.Context(), target, "/srv/a/b", 0o700, "agent"); err != nil {
			t.Fatal(err)
		}
	}
	info, err := p.Stat(t.Context(), target, "/srv/a/b", false)
	if err != nil || info.Mode.Perm() != 0o700 || info.Owner != "agent" {
		t.Errorf("got %+v, %v", info, err)
	}
	if err := p.Mkdir(t.Context(), target, "/etc/motd", 0, ""); err == nil {
		t.Error("a folder was made of a file")
	}
	for range 2 {
		if err := p.Remove(t.Context(), target, "/srv/a/b"); err != nil {
			t.Fatal(err)
		}
		if err := p.Remove(t.Context(), target, "/etc/motd"); err != nil {
			t.Fatal(err)
		}
	}
	if names := tr.list(t, "/srv/a"); len(names) != 0 {
		t.Errorf("left: %q", names)
	}
	if err := p.Remove(t.Context(), target, "/etc"); err == nil {
		t.Error("a folder with files was removed")
	}
}

func TestAGuestWithoutSFTPIsExplained(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	_, err := p.Stat(t.Context(), s.target("1"), "/etc/passwd", false)
	if err == nil || !strings.Contains(err.Error(), "openssh-sftp-server") {
		t.Errorf("got %v", err)
	}
}

func TestManyFileOperationsAtOnceDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	_, p, target := guestWithFiles(t, func(string) (string, int) { return "1234\n", 0 })
	errs := make(chan error)
	for range 30 { // each asks for an owner too, which takes a session of its own
		go func() {
			_, err := p.WriteFile(t.Context(), target, File{Path: "/etc/shared", Content: strings.NewReader("same"), Owner: "ldap.user"})
			errs <- err
		}()
	}
	for range 30 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
