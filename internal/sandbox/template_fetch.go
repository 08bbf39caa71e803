package sandbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// fetch has the node get the template file, where the source is an address or an image. It stays on the storage: the
// next build finds it there.
func (b *TemplateBuild) fetch(ctx context.Context) error {
	s := b.spec.Source
	if s.URL == "" && s.Image == "" {
		return nil
	}
	b.file = s.FileStorage + ":vztmpl/" + s.fileName()
	if s.Image != "" {
		return b.pull(ctx)
	}
	algorithm, sum, _ := strings.Cut(s.Checksum, ":")
	upid, err := b.m.pve.DownloadURL(ctx, b.node, pve.DownloadOptions{
		Storage: s.FileStorage, Content: "vztmpl", Filename: s.fileName(), URL: s.URL, Algorithm: algorithm, Checksum: sum,
	})
	if err == nil {
		err = b.m.task(ctx, upid, b.warnings)
	}
	if err == nil {
		return nil
	}
	e := &Error{Op: "download", What: fmt.Sprintf("have node %s fetch %s", b.node, s.URL), Err: err}
	switch text := strings.ToLower(err.Error()); {
	case strings.Contains(text, "checksum"):
		e.Remedy = "the file is another than template_checksum says: compare it with the publisher's sum. Nothing was kept or built"
	case pve.Means(err, pve.Forbidden):
		e.Remedy = "the identity needs Datastore.AllocateTemplate on the storage, and Sys.AccessNetwork on the node (or Sys.Audit and Sys.Modify on /)"
	default:
		e.Remedy = "the node itself must reach the address: look at its proxy (Datacenter, Options) and its DNS"
	}
	return e
}

// pull gets an image, unless a file of its name is there already.
func (b *TemplateBuild) pull(ctx context.Context) error {
	s := b.spec.Source
	_, err := b.m.pve.VolumeInfo(ctx, b.node, b.file)
	switch {
	case err == nil:
		b.warnings.add("The image was not pulled again", fmt.Sprintf("%s is on the storage already. Remove it there to have what %s is now.", b.file, s.Image))
		return nil
	case !pve.Means(err, pve.NoSuchVolume):
		return b.m.step("download", Ref{}, "look for "+b.file, err)
	}
	upid, err := b.m.pve.PullImage(ctx, b.node, s.FileStorage, s.Image, strings.TrimSuffix(s.fileName(), ".tar"))
	if err == nil {
		err = b.m.task(ctx, upid, b.warnings)
	}
	if pve.Means(err, pve.UnsupportedPath) {
		return &Error{Op: "download", What: "pull " + s.Image, Err: err, Remedy: "Proxmox VE 9.1 and later can; use os_template or template_url"}
	}
	return b.m.step("download", Ref{}, "pull "+s.Image, err)
}
