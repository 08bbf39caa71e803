package sandbox

import (
	"context"
	"maps"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// An update finds what a rollback that was cut has left to be done, and does it
// along with its own work: the sandbox's specification decides, and what it
// doesn't say comes from the rollback's journal.

// takeOverRollback looks for the journal. It stays in the marker until the keys
// inside are written again, or goes with the next write where none can be.
func (f *finishing) takeOverRollback() {
	if f.left = journalOf(&f.marker); f.left != nil && !f.spec.Started {
		f.marker = f.marker.withExtra(markerRollback, "")
	}
}

// noteKeys has the marker say which keys are being written, so that a rollback
// can tell them from others.
func (f *finishing) noteKeys() {
	if f.spec.AuthorizedKeys != nil {
		f.marker = f.marker.withExtra(markerKeys, keysDigest(f.spec.AuthorizedKeys))
	}
}

// growBack gives volumes the size back that they had before the rollback.
func (f *finishing) growBack(ctx context.Context) error {
	if f.left == nil || len(f.left.Sizes) == 0 {
		return nil
	}
	if err := f.readConfig(ctx); err != nil {
		return err
	}
	now := f.now
	for _, key := range slices.Sorted(maps.Keys(f.left.Sizes)) {
		size := f.left.Sizes[key]
		want, ok := pve.ParseSize(size)
		has, known := volumeAt(now, key).SizeBytes()
		if !ok || !known || has >= want {
			continue
		}
		if err := f.m.growTo(ctx, f.ref, key, size, f.warnings); err != nil {
			return err
		}
		f.now = nil
	}
	return nil
}

// closeRollback takes the journal out of the marker once all is done.
func (f *finishing) closeRollback(ctx context.Context) error {
	if f.left == nil {
		return nil
	}
	for attempt := 1; ; attempt++ {
		if err := f.readConfig(ctx); err != nil {
			return err
		}
		err := f.m.closeJournal(ctx, f.ref, f.now)
		if err == nil {
			f.now, f.sandbox.RollingBack = nil, ""
			return nil
		}
		if !pve.Means(err, pve.DigestMismatch) || attempt == updateAttempts {
			return f.m.step("update", f.ref, "note that its rollback is done", err)
		}
		f.now = nil
	}
}
