package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// The managed block of an authorized_keys file stands between these lines.
const (
	keysBegin = "# BEGIN sandbox managed keys (what is changed in this block is overwritten)"
	keysEnd   = "# END sandbox managed keys"
)

// longestKeys bounds an authorized_keys file, in bytes.
const longestKeys = 4 << 20

// SetAuthorizedKeys makes keys (authorized_keys lines) the managed ones of a
// user in the guest: a block between two marker lines in ~/.ssh/authorized_keys.
// Lines outside the block stay as they are; no keys removes the block. The file
// is read back and compared.
func (p *Pool) SetAuthorizedKeys(ctx context.Context, target Target, user string, keys []string) error {
	keys, err := cleanKeys(keys)
	if err != nil {
		return err
	}
	account, err := p.accountOf(ctx, target, user)
	if err != nil {
		return err
	}
	folder := path.Join(account.home, ".ssh")
	own := owner{uid: account.uid, gid: account.gid, setUID: true, setGID: true}
	w := atomicWrite{path: path.Join(folder, "authorized_keys"), mode: 0o600, owner: own}
	w.nameTemp()
	err = p.withSFTP(ctx, target, func(client *sftp.Client) error {
		old, err := readKeysFile(client, folder)
		if err != nil {
			return err
		}
		text := mergeKeys(old, keys)
		if bytes.Equal(text, old) {
			return nil
		}
		if _, err := client.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
			if err := mkdir(client, folder, 0o700, own); err != nil {
				return fmt.Errorf("%s: %w", folder, err)
			}
		}
		w.content = bytes.NewReader(text)
		_, err = w.do(client) // compares what is read back
		return err
	})
	if err != nil {
		p.sweep(ctx, target, w.temp)
		return pathError(target, "set the authorized keys of "+user+" in", w.path, err)
	}
	return nil
}

// AuthorizedKeysOf returns the managed keys of a user in the guest, in the
// order of the file; none when there is no block or no file.
func (p *Pool) AuthorizedKeysOf(ctx context.Context, target Target, user string) ([]string, error) {
	account, err := p.accountOf(ctx, target, user)
	if err != nil {
		return nil, err
	}
	folder := path.Join(account.home, ".ssh")
	var text []byte
	err = p.withSFTP(ctx, target, func(client *sftp.Client) (err error) {
		text, err = readKeysFile(client, folder)
		return err
	})
	if err != nil {
		return nil, pathError(target, "read the authorized keys of "+user+" in", folder, err)
	}
	_, managed := splitKeys(text)
	return managed, nil
}

func (p *Pool) accountOf(ctx context.Context, target Target, user string) (account, error) {
	if !userName.MatchString(user) {
		return account{}, fmt.Errorf("user %q is not a user name", user)
	}
	known, err := p.accountsOf(ctx, target)
	if err != nil {
		return account{}, err
	}
	return p.home(ctx, target, known, user)
}

// readKeysFile returns the file's content, none when it or its folder isn't
// there. Links are refused: their owner could have root write through them.
func readKeysFile(client *sftp.Client, folder string) ([]byte, error) {
	file := path.Join(folder, "authorized_keys")
	for _, name := range []string{folder, file} {
		attr, err := client.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		case attr.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Errorf("%s is a symbolic link, which is not followed", name)
		case name == folder && !attr.IsDir():
			return nil, fmt.Errorf("%s is not a folder", name)
		}
	}
	return readSmall(client, file, longestKeys)
}

// cleanKeys checks that each key is one authorized_keys line, and drops
// repetitions.
func cleanKeys(keys []string) ([]string, error) {
	var clean []string
	for i, key := range keys {
		key = strings.TrimSpace(key)
		if strings.ContainsAny(key, "\r\n\x00") {
			return nil, fmt.Errorf("authorized key %d is more than one line: give each key as an element of its own", i+1)
		}
		if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key)); err != nil || strings.HasPrefix(key, "#") {
			return nil, fmt.Errorf("authorized key %d is not a public key in authorized_keys format (\"ssh-ed25519 AAAA… comment\")", i+1)
		}
		if !slices.Contains(clean, key) {
			clean = append(clean, key)
		}
	}
	return clean, nil
}

// splitKeys divides a file into the lines that are others' and those managed. A
// beginning without its end is others' work: only that line is dropped.
func splitKeys(text []byte) (others, managed []string) {
	if len(text) == 0 {
		return nil, nil
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		switch lines[i] {
		case keysBegin:
			if n := slices.Index(lines[i:], keysEnd); n > 0 {
				managed = append(managed, lines[i+1:i+n]...)
				i += n
			}
		case keysEnd:
		default:
			others = append(others, lines[i])
		}
	}
	return others, managed
}

// mergeKeys puts the managed block at the end of others' lines.
func mergeKeys(text []byte, keys []string) []byte {
	lines, _ := splitKeys(text)
	if len(keys) > 0 {
		lines = append(lines, keysBegin)
		lines = append(lines, keys...)
		lines = append(lines, keysEnd)
	}
	if len(lines) == 0 {
		return nil
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}
