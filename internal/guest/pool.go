package guest

import (
	"context"
)

// Pool reaches guests: one pooled connection per guest, one shared connection
// to the jump host, a bounded number of dials at a time. Safe for concurrent use.
type Pool struct {
	cfg Config
}

// NewPool checks the configuration, reads the private keys and returns a pool.
// It contacts nobody. Close it when the run ends.
func NewPool(cfg Config) (*Pool, error) { return &Pool{cfg: cfg.withDefaults()}, nil }

// AuthorizedKeys returns our public keys in authorized_keys format: what a
// guest must hold for us to log in. One line, or one for each key of an agent.
func (p *Pool) AuthorizedKeys() ([]string, error) { panic("todo") }

// TakeWarnings returns what the user should hear and hasn't been given yet;
// each warning is returned once in the life of the pool.
func (p *Pool) TakeWarnings() []Warning { panic("todo") }

// NoteHostKey tells the pool of a host key that is known from elsewhere (state)
// without contact, so that keys shared by two guests are found. It returns the
// other guests that have the same key; not an error, see SharedHostKey.
func (p *Pool) NoteHostKey(target Target) []SharedHostKey { panic("todo") }

// Disconnect drops the pooled connection: the guest was stopped, restarted or
// rolled back. Its pinned host key stays.
func (p *Pool) Disconnect(target Target) { panic("todo") }

// Forget drops the connection and what is known of the host key: the guest was
// destroyed, and its id may soon be another's.
func (p *Pool) Forget(target Target) { panic("todo") }

// Close ends every connection. Later calls of the pool fail.
func (p *Pool) Close() error { panic("todo") }

// SourceAddress returns the address that the guest sees us come from: ours, or
// that of the jump host. It is what management_cidrs must hold.
func (p *Pool) SourceAddress(ctx context.Context, target Target) (string, error) { panic("todo") }
