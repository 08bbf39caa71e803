package sandbox

import (
	"context"
	"errors"
	"strings"
)

// HasWorkspaces says whether workspaces are attached to the sandbox.
func (i *Inside) HasWorkspaces(ctx context.Context) (bool, error) {
	_, cfg, err := i.manager.owned(ctx, "read", i.Ref)
	if err != nil {
		return false, err
	}
	return len(attachedVolumes(cfg)) > 0, nil
}

// Checkpoint takes a snapshot of the sandbox. One of the same name that begins
// with the same first line of its description is an earlier checkpoint of the
// same kind, and gives way; any other is ErrSnapshotExists.
func (i *Inside) Checkpoint(ctx context.Context, name, description string) ([]Warning, error) {
	spec := SnapshotSpec{Name: name, Description: description}
	out, err := i.manager.CreateSnapshot(ctx, i.Ref, spec)
	if out.Unfinished {
		err = context.Cause(ctx)
	}
	if !errors.Is(err, ErrSnapshotExists) {
		return out.Warnings, err
	}
	there, readErr := i.manager.ReadSnapshot(ctx, i.Ref, name)
	if readErr != nil || firstLine(there.Description) != firstLine(description) {
		return out.Warnings, err
	}
	warned, err := i.manager.DestroySnapshot(ctx, i.Ref, name)
	if err != nil {
		return warned, err
	}
	out, err = i.manager.CreateSnapshot(ctx, i.Ref, spec)
	if out.Unfinished {
		err = context.Cause(ctx)
	}
	return append(warned, out.Warnings...), err
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}
