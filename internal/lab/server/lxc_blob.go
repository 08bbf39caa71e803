package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Backups' contents are files beside the state, or memory in a lab that keeps nothing.

func (s *Server) blobFile(name string) string {
	return filepath.Join(s.opt.Dir, "blobs", filepath.Base(name))
}

// writeBlob stores what fill writes and returns its size. The caller holds the state lock; fill runs without it.
func (s *Server) writeBlob(ctx context.Context, name string, fill func(ctx context.Context, e engine.Engine, w io.Writer) error) (int64, error) {
	if s.engine == nil {
		return 0, nil
	}
	if s.opt.Dir == "" {
		var buffer bytes.Buffer
		err := s.inEngine(ctx, func(ctx context.Context, e engine.Engine) error { return fill(ctx, e, &buffer) })
		if err != nil {
			return 0, err
		}
		if s.blobs == nil {
			s.blobs = map[string][]byte{}
		}
		s.blobs[name] = buffer.Bytes()
		return int64(buffer.Len()), nil
	}
	path := s.blobFile(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, fmt.Errorf("keep a backup: %w", err)
	}
	var size int64
	err := s.inEngine(ctx, func(ctx context.Context, e engine.Engine) error {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("keep a backup: %w", err)
		}
		err = fill(ctx, e, file)
		if info, serr := file.Stat(); serr == nil {
			size = info.Size()
		}
		return errors.Join(err, file.Close())
	})
	if err != nil {
		return 0, errors.Join(err, os.Remove(path))
	}
	return size, nil
}

// readBlob opens a stored content.
func (s *Server) readBlob(name string) (io.ReadCloser, error) {
	if s.opt.Dir == "" {
		content, ok := s.blobs[name]
		if !ok {
			return nil, failf("backup content '%s' is missing", name)
		}
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	file, err := os.Open(s.blobFile(name))
	if err != nil {
		return nil, fmt.Errorf("open a backup: %w", err)
	}
	return file, nil
}

// dropArchive frees what a backup holds. To be called when its volume is removed.
func (s *Server) dropArchive(ctx context.Context, v *volume) error {
	if v.Archive == nil {
		return nil
	}
	for _, key := range optionsOf(v.Archive.Config, "mp") {
		if err := s.destroyVolumeInEngine(ctx, archivedVolume(v.VolID, key)); err != nil {
			return err
		}
	}
	if v.Blob == "" {
		return nil
	}
	delete(s.blobs, v.Blob)
	if s.opt.Dir != "" {
		if err := os.Remove(s.blobFile(v.Blob)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a backup: %w", err)
		}
	}
	return nil
}
