package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// TemplateBuild is one template on its way: planned, made, booted, filled, sealed, converted, proved and marked. Its
// steps are called in this order by one goroutine; between Start and Stop the caller works inside.
type TemplateBuild struct {
	m        *Manager
	spec     TemplateSpec
	taken    map[int]bool
	node     string
	file     string         // the template file that it is made from
	source   *pve.LXCConfig // of the guest that it is cloned from
	sourceAt *pve.Resource
	// generations are the templates that have the name already.
	generations []generation
	replaced    []Template // removed when the new one is there (or before, for a wanted id)
	creation    *creation
	ref         Ref
	macs        []string // of its interfaces
	buildID     string
	text        string // the description without marker
	warnings    *warnings
	// throwaway is a clone of Verify\'s that could not be removed then.
	throwaway *Ref
}

// Ref says what was made; its VMID is 0 before Make.
func (b *TemplateBuild) Ref() Ref { return b.ref }

// Node is where it is built.
func (b *TemplateBuild) Node() string { return b.node }

// BuildID is the template's generation.
func (b *TemplateBuild) BuildID() string { return b.buildID }

// Warnings hands out what the user should hear, each once.
func (b *TemplateBuild) Warnings() []Warning {
	return append(b.warnings.take(), b.m.guestWarnings()...)
}

// Make creates the container, stopped. accepted is called as soon as the server has accepted it. After an error with a
// Ref the container exists or may exist: Remove takes it away.
func (b *TemplateBuild) Make(ctx context.Context, accepted Accepted) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(DefaultTemplateTimeout)
	}
	if err := b.replaceWanted(ctx); err != nil {
		return err
	}
	if err := b.fetch(ctx); err != nil {
		return err
	}
	c := &creation{
		m: b.m, accepted: func(ref Ref, upid string) {
			b.ref = ref
			if accepted != nil {
				accepted(ref, upid)
			}
		},
		started: b.m.clock.Now(), warnings: b.warnings, origin: b.node, target: "", base: emptyConfig(),
		spec: Spec{Hostname: b.buildName(), VMID: b.spec.VMID, Description: b.spec.Description, PoolID: b.spec.PoolID, Storage: b.spec.Storage},
	}
	b.creation = c
	if b.spec.Source.IsClone() {
		c.origin, c.base = b.sourceAt.Node, b.source
		c.spec.Source.TemplateID = b.sourceAt.VMID
		c.custom = func(ctx context.Context, description string) (pve.UPID, error) {
			return b.sendClone(ctx, c, description)
		}
	} else {
		c.spec.Source.TemplateFileID = b.file
		c.custom = func(ctx context.Context, description string) (pve.UPID, error) {
			return b.sendCreate(ctx, c, description)
		}
	}
	c.marker = Marker{
		Owner: b.m.settings.Owner, Kind: KindTemplate, Phase: PhaseCreating,
		Until: b.m.clock.Now().Add(time.Until(deadline)).Add(time.Minute),
	}
	err := c.make(ctx, b.taken)
	if c.ref.VMID != 0 {
		b.ref = c.ref
	}
	if err != nil {
		return b.m.step("create", b.ref, c.what(), explainFeatures(err, b.spec.Config["features"]))
	}
	return b.settle(ctx)
}

// DefaultTemplateTimeout bounds a build whose context has no deadline: it decides when what a killed build has left
// counts as abandoned.
const DefaultTemplateTimeout = 4 * time.Hour

func (b *TemplateBuild) buildName() string { return cmp.Or(b.spec.BuildName, b.spec.Name) }

func (b *TemplateBuild) sendClone(ctx context.Context, c *creation, description string) (pve.UPID, error) {
	o := pve.CloneOptions{NewID: c.ref.VMID, Hostname: b.buildName(), Description: description, Pool: b.spec.PoolID, Full: b.spec.Source.Full}
	if o.Full || !b.source.Template() {
		o.Full, o.Storage = true, b.spec.Storage
	}
	return b.m.pve.CloneLXC(ctx, c.origin, b.sourceAt.VMID, o)
}

func (b *TemplateBuild) sendCreate(ctx context.Context, c *creation, description string) (pve.UPID, error) {
	set := maps.Clone(b.spec.Config)
	if set == nil {
		set = map[string]string{}
	}
	set["hostname"], set["description"] = b.buildName(), description
	set["unprivileged"] = pve.Bool(!b.spec.Privileged)
	set["rootfs"] = fmt.Sprintf("%s:%d", b.spec.Storage, cmp.Or(b.spec.DiskGiB, DefaultTemplateDiskGiB))
	if len(b.spec.AuthorizedKeys) > 0 {
		set["ssh-public-keys"] = strings.Join(b.spec.AuthorizedKeys, "\n")
	}
	return b.m.pve.CreateLXC(ctx, b.node, pve.CreateOptions{VMID: c.ref.VMID, OSTemplate: b.file, Pool: b.spec.PoolID, Set: set})
}

// settle reads what was made, and gives a clone its settings: a clone call takes none.
func (b *TemplateBuild) settle(ctx context.Context) error {
	cfg, err := b.m.pve.LXCConfig(ctx, b.ref.Node, b.ref.VMID)
	if err != nil {
		return b.m.step("create", b.ref, "read what was made", err)
	}
	if _, err := b.m.prove("create", b.ref, cfg); err != nil {
		return err
	}
	b.text, _ = SplitDescription(cfg.Text("description"))
	if b.spec.Source.IsClone() {
		c := noChange()
		for key, value := range b.spec.Config {
			c.put(key, value)
		}
		for _, key := range []string{"onboot", "protection", "startup", "tags"} { // the source's own
			if _, set := c.set[key]; !set {
				c.remove(cfg, key)
			}
		}
		if !c.empty() {
			err := b.m.write(ctx, b.ref, fmt.Sprintf("configure container %d", b.ref.VMID), func(ctx context.Context) error {
				return b.m.pve.UpdateLXC(ctx, b.ref.Node, b.ref.VMID, c.update(""))
			})
			if err != nil {
				return b.m.step("create", b.ref, "write its configuration", explainFeatures(err, b.spec.Config["features"]))
			}
			if cfg, err = b.m.pve.LXCConfig(ctx, b.ref.Node, b.ref.VMID); err != nil {
				return b.m.step("create", b.ref, "read back its configuration", err)
			}
		}
		if bytes, ok := cfg.RootFS().SizeBytes(); ok && int64(b.spec.DiskGiB)*gib > bytes {
			if err := b.m.grow(ctx, b.ref, b.spec.DiskGiB, b.warnings); err != nil {
				return err
			}
		}
	}
	b.macs = macsOf(cfg)
	return nil
}

// macsOf are the hardware addresses of a container's interfaces, in their order.
func macsOf(cfg *pve.LXCConfig) []string {
	nets := cfg.Nets()
	var macs []string
	for _, n := range sortedKeys(nets) {
		macs = append(macs, nets[n].MAC())
	}
	return macs
}

// Start boots it.
func (b *TemplateBuild) Start(ctx context.Context) error { return b.m.start(ctx, b.ref, b.warnings) }

// Address waits for an address of the running container: IPv4 before IPv6, interfaces in their order.
func (b *TemplateBuild) Address(ctx context.Context) (netip.Addr, error) {
	return b.m.addressOf(ctx, b.ref, b.macs)
}

// addressOf waits until one of the interfaces has an address.
func (m *Manager) addressOf(ctx context.Context, ref Ref, macs []string) (netip.Addr, error) {
	if len(macs) == 0 {
		return netip.Addr{}, &Error{Op: "connect", Ref: ref, Kind: ErrNotReady, What: "it has no network interface",
			Remedy: `use communicator = "pct", which goes through the node`}
	}
	var found netip.Addr
	err := m.poll(ctx, "an address of container "+strconv.Itoa(ref.VMID), func(ctx context.Context) (bool, error) {
		interfaces, err := m.pve.LXCInterfaces(ctx, ref.Node, ref.VMID)
		if err != nil {
			return false, err
		}
		for _, mac := range macs {
			v4, v6 := addressesOf(interfaces, mac)
			switch {
			case v4.IsValid():
				found = v4
			case v6.IsValid() && !found.IsValid():
				found = v6
			}
			if found.IsValid() {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return found, &Error{Op: "connect", Ref: ref, Kind: ErrNotReady, What: "wait for an address", Err: err,
			Remedy: "is there a DHCP server on its bridge? A static address (network_adapters.ip) needs none"}
	}
	return found, nil
}

// Stop shuts it down, orderly where it lets itself.
func (b *TemplateBuild) Stop(ctx context.Context) error { return b.m.shutdown(ctx, b.ref, b.warnings) }

// Convert makes it a template and returns when it is one.
func (b *TemplateBuild) Convert(ctx context.Context) error {
	err := b.m.whileLocked(ctx, fmt.Sprintf("make container %d a template", b.ref.VMID), b.ref.Node, b.ref.VMID, func(ctx context.Context) error {
		err := b.m.pve.ConvertToTemplate(ctx, b.ref.Node, b.ref.VMID)
		if pve.Means(err, pve.IsTemplate) { // an earlier call whose answer was lost
			return nil
		}
		return err
	})
	if err != nil {
		return b.m.step("convert", b.ref, "make it a template", err)
	}
	b.m.ids.block(b.ref.VMID)
	return nil
}

// Finish writes what it is: name, tags and the marker with the summary of its manifest, phase ready. Until then it may
// be taken for a leftover.
func (b *TemplateBuild) Finish(ctx context.Context, summary TemplateSummary) error {
	marker, err := TemplateMarker(b.ref.Owner, b.ref.Claim, b.ref.VMID, PhaseReady, summary)
	if err != nil {
		return &Error{Op: "finish", Ref: b.ref, What: "write its marker", Err: err}
	}
	description, err := JoinDescription(b.text, marker)
	if err != nil {
		return &Error{Op: "finish", Ref: b.ref, What: "write its marker", Err: err, Remedy: "shorten template_description, or install fewer agents"}
	}
	set := map[string]string{
		"description": description,
		"tags":        joinTags(append(slices.Clone(b.spec.Tags), OwnerTag(b.ref.Owner))),
	}
	if b.buildName() != b.spec.Name {
		set["hostname"] = b.spec.Name
	}
	err = b.m.write(ctx, b.ref, fmt.Sprintf("mark template %d as ready", b.ref.VMID), func(ctx context.Context) error {
		return b.m.pve.UpdateLXC(ctx, b.ref.Node, b.ref.VMID, pve.LXCUpdate{Set: set})
	})
	return b.m.step("finish", b.ref, "mark it as ready", err)
}

// Remove takes away what was made, template or not, after its marker was read back. What is gone already is a success.
func (b *TemplateBuild) Remove(ctx context.Context) error {
	if b.throwaway != nil {
		if _, err := b.m.Destroy(ctx, *b.throwaway, ""); err != nil {
			return err
		}
		b.throwaway = nil
	}
	if b.ref.VMID == 0 {
		return nil
	}
	warnings, err := b.m.Destroy(ctx, b.ref, "")
	for _, w := range warnings {
		b.warnings.add(w.Summary, w.Detail)
	}
	return err
}

// DestroyTemplate removes a template of ours that a finished build has made.
func (m *Manager) DestroyTemplate(ctx context.Context, ref Ref) error {
	_, err := m.Destroy(ctx, ref, "")
	return err
}

// explainFeatures says what a token can do where the server only says what it can't.
func explainFeatures(err error, features string) error {
	if !pve.Means(err, pve.RootOnly) {
		return err
	}
	return fmt.Errorf("%w; asked for: features %q. Only root@pam with its password may set more than nesting on an unprivileged container, no token may: keep nesting = true alone, "+
		"log in with username = \"root@pam\" and password, or set what else is needed by lxc_raw over the node's SSH", err, features)
}
