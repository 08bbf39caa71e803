package guest

import "context"

// SetAuthorizedKeys makes keys (authorized_keys lines) the managed ones of a
// user in the guest: a block between two marker lines in ~/.ssh/authorized_keys.
// Lines outside the block stay as they are; no keys removes the block. The file
// is read back and compared.
func (p *Pool) SetAuthorizedKeys(ctx context.Context, target Target, user string, keys []string) error {
	panic("todo")
}

// AuthorizedKeysOf returns the managed keys of a user in the guest, in the
// order of the file; none when there is no block or no file.
func (p *Pool) AuthorizedKeysOf(ctx context.Context, target Target, user string) ([]string, error) {
	panic("todo")
}
