package guest

import (
	"slices"
	"strings"
	"testing"
)

func keyLine(t *testing.T, comment string) string {
	t.Helper()
	_, public := newKey(t)
	return formatHostKey(public) + " " + comment
}

func TestAuthorizedKeysAreABlockThatLeavesOtherLinesAlone(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	const file = "/root/.ssh/authorized_keys"
	mine, a, b := keyLine(t, "provider"), keyLine(t, "a"), `no-pty,command="echo hi" `+keyLine(t, "b")
	others := "# by hand\n" + mine + "\n\n"
	tr.put(t, file, others)
	set := func(keys ...string) {
		t.Helper()
		if err := p.SetAuthorizedKeys(t.Context(), target, "root", keys); err != nil {
			t.Fatal(err)
		}
		got, err := p.AuthorizedKeysOf(t.Context(), target, "root")
		if err != nil || !slices.Equal(got, keys) {
			t.Errorf("read back %q, %v; want %q", got, err, keys)
		}
		if content := tr.content(t, file); !strings.HasPrefix(content, others) {
			t.Errorf("others' lines: %q", content)
		}
	}
	set(a, b)
	set(b)
	set(b, a)
	set()
	if content := tr.content(t, file); content != others {
		t.Errorf("without keys: %q", content)
	}
	info, err := p.Stat(t.Context(), target, file, false)
	if err != nil || info.Mode != 0o600 || info.UID != 0 {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestAuthorizedKeysThatAreRightAreNotWrittenAgain(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	key := keyLine(t, "a")
	for range 2 {
		if err := p.SetAuthorizedKeys(t.Context(), target, "agent", []string{key, " " + key + "\n"}); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	for _, r := range tr.requests {
		if strings.HasPrefix(r, "PosixRename") {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
}

func TestAuthorizedKeysOfAUserWithoutAFolderGetOne(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	if keys, err := p.AuthorizedKeysOf(t.Context(), target, "agent"); err != nil || len(keys) != 0 {
		t.Errorf("before: %q, %v", keys, err)
	}
	if err := p.SetAuthorizedKeys(t.Context(), target, "agent", []string{keyLine(t, "a")}); err != nil {
		t.Fatal(err)
	}
	folder, err := p.Stat(t.Context(), target, "/home/agent/.ssh", false)
	if err != nil || folder.Mode.Perm() != 0o700 || folder.Owner != "agent" {
		t.Errorf("folder %+v, %v", folder, err)
	}
	file, err := p.Stat(t.Context(), target, "/home/agent/.ssh/authorized_keys", false)
	if err != nil || file.Mode.Perm() != 0o600 || file.Owner != "agent" || file.Group != "agents" {
		t.Errorf("file %+v, %v", file, err)
	}
	_ = tr
}

func TestAuthorizedKeysAreNotWrittenThroughALink(t *testing.T) {
	t.Parallel()
	tr, p, target := guestWithFiles(t, nil)
	if err := tr.root.Symlink("../../etc", "home/agent/.ssh"); err != nil {
		t.Fatal(err)
	}
	err := p.SetAuthorizedKeys(t.Context(), target, "agent", []string{keyLine(t, "a")})
	if err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %v", err)
	}
	if names := tr.list(t, "/etc"); slices.Contains(names, "authorized_keys") {
		t.Error("the link was followed")
	}
}

func TestAuthorizedKeysThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	_, p, target := guestWithFiles(t, nil)
	good := keyLine(t, "a")
	for name, key := range map[string]string{
		"two lines": good + "\n" + good, "private key": "-----BEGIN OPENSSH PRIVATE KEY-----", "comment": "# " + good, "empty": "", "fingerprint": "SHA256:abc",
	} {
		if err := p.SetAuthorizedKeys(t.Context(), target, "root", []string{good, key}); err == nil || !strings.Contains(err.Error(), "authorized key 2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := p.SetAuthorizedKeys(t.Context(), target, "nobody", []string{good}); err == nil || !strings.Contains(err.Error(), `no user "nobody"`) {
		t.Errorf("unknown user: %v", err)
	}
}

func TestABlockWithoutItsEndLosesNoLine(t *testing.T) {
	t.Parallel()
	others, managed := splitKeys([]byte("a\n" + keysBegin + "\nb\nc\n"))
	if !slices.Equal(others, []string{"a", "b", "c"}) || managed != nil {
		t.Errorf("others %q, managed %q", others, managed)
	}
	others, managed = splitKeys([]byte(keysBegin + "\nx\n" + keysEnd + "\na\n" + keysBegin + "\ny\n" + keysEnd))
	if !slices.Equal(others, []string{"a"}) || !slices.Equal(managed, []string{"x", "y"}) {
		t.Errorf("others %q, managed %q", others, managed)
	}
}
