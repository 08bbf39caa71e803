//go:build linux

package ns

import (
	"context"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/supervisor"
)

// AllocVolume makes an empty volume.
func (e *Engine) AllocVolume(ctx context.Context, volume string, bytes int64) error {
	return e.call(ctx, supervisor.CallAllocVolume, supervisor.Size{Volume: volume, Bytes: bytes})
}

// CopyVolume copies a volume's content.
func (e *Engine) CopyVolume(ctx context.Context, from, to string) error {
	return e.call(ctx, supervisor.CallCopyVolume, supervisor.Volume{Name: from, To: to})
}

// RenameVolume gives a volume another name.
func (e *Engine) RenameVolume(ctx context.Context, from, to string) error {
	return e.call(ctx, supervisor.CallRenameVolume, supervisor.Volume{Name: from, To: to})
}

// ResizeVolume sets a volume's size, which is only reported.
func (e *Engine) ResizeVolume(ctx context.Context, volume string, bytes int64) error {
	return e.call(ctx, supervisor.CallResizeVolume, supervisor.Size{Volume: volume, Bytes: bytes})
}

// AttachVolume mounts a volume in a guest.
func (e *Engine) AttachVolume(ctx context.Context, id int, volume string, at engine.Mount) error {
	return e.call(ctx, supervisor.CallAttachVolume, supervisor.Volume{ID: id, Name: volume, At: at})
}

// DetachVolume unmounts a volume.
func (e *Engine) DetachVolume(ctx context.Context, id int, volume string) error {
	return e.call(ctx, supervisor.CallDetachVolume, supervisor.Volume{ID: id, Name: volume})
}

// DestroyVolume removes a detached volume.
func (e *Engine) DestroyVolume(ctx context.Context, volume string) error {
	return e.call(ctx, supervisor.CallDestroyVolume, supervisor.Volume{Name: volume})
}
