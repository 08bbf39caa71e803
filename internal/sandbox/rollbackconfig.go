package sandbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// back is what has to be written onto now so that it is as former again: what
// to set and delete, and the volumes that have to grow, with their size. What
// the server never lets anybody set is left out; what it lets only root set is
// left out too, and named to warn, where byToken says that we can't be root.
func back(former, now *pve.LXCConfig, byToken bool, warn func(key string)) (change, map[string]string) {
	c := change{set: map[string]string{}}
	sizes := map[string]string{}
	for _, key := range union(former, now) {
		if !restorable(key) {
			continue
		}
		value, wanted := former.Raw[key]
		if wanted && isNumbered(key, "mp") {
			value = sized(value, now.Text(key))
		}
		if wanted && key == "features" && byToken {
			value = tokenFeatures(former, now, warn)
		}
		switch {
		case wanted == now.Has(key) && (!wanted || sameSetting(key, now.Text(key), value, true)):
			continue
		case byToken && rootOnly(key, value, now.Text(key)):
			if warn != nil {
				warn(key)
			}
		case wanted && value != "":
			c.put(key, value)
		default:
			c.remove(now, key)
		}
	}
	for _, key := range volumeKeys(former) {
		is, was := volumeAt(now, key), volumeAt(former, key)
		has, known := is.SizeBytes()
		if want, ok := was.SizeBytes(); ok && known && is.Volume() == was.Volume() && want > has {
			sizes[key] = was.Text("size")
		}
	}
	return c, sizes
}

func union(a, b *pve.LXCConfig) []string {
	keys := map[string]bool{}
	for key := range a.Raw {
		keys[key] = true
	}
	for key := range b.Raw {
		keys[key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

// restorable says whether a key is a setting that a rollback changes and that
// can be written back. The description isn't changed; the root disk is what
// the rollback is about; the rest is the server's own.
func restorable(key string) bool {
	switch key {
	case "description", "digest", "lock", "parent", "snaptime", "snapstate", "rootfs", "template", "unprivileged", "arch", "ostype":
		return false
	}
	return !isNumbered(key, "unused")
}

// sized is a mount point's value with the size that its volume has now: a
// write doesn't change it.
func sized(value, now string) string {
	want, is := pve.ParseProperties(value), pve.ParseProperties(now)
	if size := is.Text("size"); size != "" && (pve.Mount{Properties: want}).Volume() == (pve.Mount{Properties: is}).Volume() {
		return want.With("size", size).String()
	}
	return value
}

// tokenFeatures is the former value as far as a token may write it: nesting as
// it was, everything else as it is.
func tokenFeatures(former, now *pve.LXCConfig, warn func(string)) string {
	was, is := former.Features(), now.Features()
	if !sameProperties(was.Without("nesting"), is.Without("nesting")) && warn != nil {
		warn("features")
	}
	if nesting, ok := was.Get("nesting"); ok {
		return is.With("nesting", nesting).String()
	}
	return is.Without("nesting").String()
}

// rootOnly says whether only root@pam's password login may make a change.
func rootOnly(key, want, is string) bool {
	folder := func(value string) bool {
		return value != "" && (pve.Mount{Properties: pve.ParseProperties(value)}).Storage() == ""
	}
	switch {
	case key == "hookscript", isNumbered(key, "dev"):
		return true
	case isNumbered(key, "mp"):
		return want != "" && folder(want) // taking one out is allowed
	}
	return key == "features" && want == "" && !onlyNesting(is)
}

func onlyNesting(features string) bool {
	return pve.ParseProperties(features).Without("nesting").Empty()
}

// restoreConfig writes the former configuration back, in one call, before the
// container starts. The journal goes with that call unless a start follows.
func (r *rollingBack) restoreConfig(ctx context.Context, startFollows bool) error {
	for attempt := 1; ; attempt++ {
		cfg, err := r.m.pve.LXCConfig(ctx, r.ref.Node, r.ref.VMID)
		if err != nil {
			return r.m.step("roll back", r.ref, "read its configuration after the rollback", err)
		}
		marker, err := r.m.prove("roll back", r.ref, cfg)
		if err != nil {
			return err
		}
		r.now, r.marker = cfg, *marker
		r.text, _ = SplitDescription(cfg.Text("description"))
		err = r.writeBack(ctx, startFollows)
		if err == nil {
			return nil
		}
		if !pve.Means(err, pve.DigestMismatch) || attempt == updateAttempts {
			return r.m.step("roll back", r.ref, "write its configuration back", err)
		}
	}
}

func (r *rollingBack) writeBack(ctx context.Context, startFollows bool) error {
	var lost []string
	c, sizes := back(r.former, r.now, r.m.pve.ByToken(), func(key string) { lost = append(lost, key) })
	if !startFollows && len(sizes) == 0 && r.marker.extra(markerRollback) != "" {
		description, err := withJournal(r.text, r.marker, nil)
		if err != nil {
			return err
		}
		c.put("description", description)
	}
	if !c.empty() {
		digest := r.now.Digest()
		err := r.m.write(ctx, r.ref, fmt.Sprintf("write the configuration of container %d back", r.ref.VMID), func(ctx context.Context) error {
			return r.m.pve.UpdateLXC(ctx, r.ref.Node, r.ref.VMID, c.update(digest))
		})
		if err != nil {
			return err
		}
		r.now = nil
	}
	if len(lost) > 0 {
		r.warnings.add("Settings of the snapshot stay", fmt.Sprintf(
			"The rollback of container %d has brought these back as the snapshot had them, and only root@pam with a password may change them: %s.", r.ref.VMID, strings.Join(lost, ", ")))
	}
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		if err := r.m.growTo(ctx, r.ref, key, sizes[key], r.warnings); err != nil {
			return err
		}
		r.now = nil
	}
	return nil
}

// growTo enlarges a volume to a size as the configuration writes it ("8G").
func (m *Manager) growTo(ctx context.Context, ref Ref, key, size string, w *warnings) error {
	want, _ := pve.ParseSize(size)
	err := m.do(ctx, action{
		what: fmt.Sprintf("grow %s of container %d", key, ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			upid, err := m.pve.ResizeLXC(ctx, ref.Node, ref.VMID, key, size, "")
			if pve.Means(err, pve.SameSize) {
				return "", nil
			}
			return upid, err
		},
		done: func(ctx context.Context) (bool, error) {
			cfg, err := m.pve.LXCConfig(ctx, ref.Node, ref.VMID)
			if err != nil {
				return false, err
			}
			has, ok := volumeAt(cfg, key).SizeBytes()
			return ok && has >= want && cfg.Lock() == "", nil
		},
	}, w)
	return m.step("resize", ref, fmt.Sprintf("grow %s to %s", key, size), err)
}
