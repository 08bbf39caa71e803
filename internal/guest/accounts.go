package guest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/pkg/sftp"
)

// account is a line of passwd.
type account struct {
	name     string
	uid, gid uint32
	home     string
}

// accounts are the guest's users and groups, as far as its files name them.
type accounts struct {
	users  []account
	groups []account // name and gid only
}

// longestAccounts bounds passwd and group; a real one has some kilobytes.
const longestAccounts = 4 << 20

// readAccounts reads /etc/passwd and /etc/group. A guest without them has no
// names, which is no error.
func readAccounts(client *sftp.Client) (accounts, error) {
	var a accounts
	passwd, err := readSmall(client, "/etc/passwd", longestAccounts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	group, err := readSmall(client, "/etc/group", longestAccounts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	a.users, a.groups = parseAccounts(passwd, 7), parseAccounts(group, 4)
	return a, nil
}

// parseAccounts reads the lines of passwd (7 fields) or group (4 fields);
// lines that are neither are passed over, as the C library does.
func parseAccounts(text []byte, fields int) []account {
	var list []account
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		f := strings.Split(lines.Text(), ":")
		if len(f) != fields || f[0] == "" {
			continue
		}
		a := account{name: f[0]}
		id, err := parseID(f[2])
		if err != nil {
			continue
		}
		if fields == 4 {
			a.gid = id
			list = append(list, a)
			continue
		}
		a.uid, a.home = id, f[5]
		if a.gid, err = parseID(f[3]); err == nil {
			list = append(list, a)
		}
	}
	return list
}

func parseID(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	return uint32(id), err
}

func (a accounts) user(name string) (account, bool) {
	for _, u := range a.users {
		if u.name == name {
			return u, true
		}
	}
	return account{}, false
}

// userName and groupName are for display: the number where there is no name.
func (a accounts) userName(uid uint32) string {
	for _, u := range a.users {
		if u.uid == uid {
			return u.name
		}
	}
	return strconv.FormatUint(uint64(uid), 10)
}

func (a accounts) groupName(gid uint32) string {
	for _, g := range a.groups {
		if g.gid == gid {
			return g.name
		}
	}
	return strconv.FormatUint(uint64(gid), 10)
}

// owner is what a file's owner should be; an id that isn't set stays.
type owner struct {
	uid, gid       uint32
	setUID, setGID bool
}

// splitOwner reads "user", "user:group" or ":group".
func splitOwner(text string) (user, group string, err error) {
	user, group, colon := strings.Cut(text, ":")
	if colon && group == "" || user == "" && group == "" ||
		user != "" && !userName.MatchString(user) || group != "" && !userName.MatchString(group) {
		return "", "", fmt.Errorf("owner %q is not of the form user, user:group or :group", text)
	}
	return user, group, nil
}

// resolveOwner turns an owner by name or number into ids: numbers as they are,
// names by the guest's files, then by asking its id and getent, which know
// other sources too. A user alone brings its primary group; a number that is
// no user's brings the group of the same number.
func (p *Pool) resolveOwner(ctx context.Context, target Target, known accounts, text string) (owner, error) {
	user, group, err := splitOwner(text)
	if err != nil {
		return owner{}, err
	}
	var o owner
	if user != "" {
		u, ok := known.user(user)
		if !ok {
			if u, err = p.lookUpUser(ctx, target, known, user); err != nil {
				return owner{}, err
			}
		}
		o.uid, o.gid, o.setUID, o.setGID = u.uid, u.gid, true, true
	}
	if group != "" {
		if o.gid, err = p.resolveGroup(ctx, target, known, group); err != nil {
			return owner{}, err
		}
		o.setGID = true
	}
	return o, nil
}

func (p *Pool) lookUpUser(ctx context.Context, target Target, known accounts, name string) (account, error) {
	if uid, err := parseID(name); err == nil {
		for _, u := range known.users {
			if u.uid == uid {
				return u, nil
			}
		}
		return account{name: name, uid: uid, gid: uid}, nil
	}
	uid, err := p.askID(ctx, target, Command{Path: "id", Args: []string{"-u", name}})
	if err != nil {
		return account{}, err
	}
	gid, err := p.askID(ctx, target, Command{Path: "id", Args: []string{"-g", name}})
	if err != nil {
		return account{}, err
	}
	if uid == nil || gid == nil {
		return account{}, fmt.Errorf("%s has no user %q", target, name)
	}
	return account{name: name, uid: *uid, gid: *gid}, nil
}

func (p *Pool) resolveGroup(ctx context.Context, target Target, known accounts, name string) (uint32, error) {
	for _, g := range known.groups {
		if g.name == name {
			return g.gid, nil
		}
	}
	if gid, err := parseID(name); err == nil {
		return gid, nil
	}
	gid, err := p.askID(ctx, target, Command{
		Script: `line=$(getent group "$1") || exit 1; line=${line#*:}; line=${line#*:}; printf '%s\n' "${line%%:*}"`, Args: []string{name},
	})
	if err != nil {
		return 0, err
	}
	if gid == nil {
		return 0, fmt.Errorf("%s has no group %q", target, name)
	}
	return *gid, nil
}

// askID runs a command that prints an id; nil when the guest knows none.
func (p *Pool) askID(ctx context.Context, target Target, cmd Command) (*uint32, error) {
	res, err := p.Exec(ctx, target, cmd)
	if err != nil {
		return nil, err
	}
	id, err := parseID(strings.TrimSpace(string(res.Stdout)))
	if res.ExitCode != 0 || err != nil {
		return nil, nil //nolint:nilerr // an answer that isn't a number is the guest's way to say no
	}
	return &id, nil
}

// home is where a user's files are, by passwd or by asking getent.
func (p *Pool) home(ctx context.Context, target Target, known accounts, name string) (account, error) {
	u, ok := known.user(name)
	if !ok {
		var err error
		if u, err = p.lookUpUser(ctx, target, known, name); err != nil {
			return account{}, err
		}
	}
	if u.home == "" {
		res, err := p.Exec(ctx, target, Command{
			Script: `line=$(getent passwd "$1") || exit 1; line=${line%:*}; printf '%s\n' "${line##*:}"`, Args: []string{name},
		})
		if err != nil {
			return account{}, err
		}
		u.home = strings.TrimSpace(string(res.Stdout))
	}
	if checkPath(u.home) != nil {
		return account{}, fmt.Errorf("user %q has no home folder in %s", name, target)
	}
	return u, nil
}

// readSmall reads a file of at most limit bytes. The size that the guest names
// is not relied on: it is 0 for files of /proc.
func readSmall(client *sftp.Client, name string, limit int64) ([]byte, error) {
	f, err := client.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, &TooLargeError{Path: name, Limit: limit}
	}
	return content, nil
}
