package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// prepareSource finds where the container will be made and what it will start
// out with.
func (c *creation) prepareSource(ctx context.Context, resources []pve.Resource) error {
	if c.spec.Source.RestoreFrom != "" {
		return c.prepareRestore(ctx, resources)
	}
	if !c.spec.Source.IsClone() {
		node, err := c.m.nodeForFile(resources, c.spec)
		c.origin, c.base = node, emptyConfig()
		return err
	}
	id := c.spec.Source.TemplateID
	entry := guestIn(resources, id)
	problem, cfg, err := c.m.template(ctx, entry, id)
	if err != nil {
		return err
	}
	if problem != nil {
		return &ProblemsError{Problems: []Problem{*problem}}
	}
	if p := checkDisk(c.spec, cfg); p != nil {
		return &ProblemsError{Problems: []Problem{*p}}
	}
	c.origin, c.base = entry.Node, cfg
	c.spec.NodeName = c.m.placement(resources, c.spec.NodeName, entry.Node)
	if to := c.spec.NodeName; to != "" && to != entry.Node && c.sharedDisk(resources, to) {
		c.target = to
	}
	return nil
}

// placement is the node where a clone of a template on home ends up; empty
// leaves it there. Without a wish it stays, unless the provider's nodes
// exclude it: then the online one of them with the most free memory.
func (m *Manager) placement(resources []pve.Resource, wanted, home string) string {
	if wanted != "" || len(m.settings.Nodes) == 0 || slices.Contains(m.settings.Nodes, home) {
		return wanted
	}
	best := ""
	var free int64 = -1
	for _, name := range m.settings.Nodes {
		if n := nodeIn(resources, name); n != nil && n.Status == "online" && n.MaxMem-n.Mem > free {
			best, free = name, n.MaxMem-n.Mem
		}
	}
	return best
}

// sharedDisk says whether the clone's disk is on storage that another node has
// too: then the server can make it there at once. From local storage it can't,
// and the clone is migrated instead.
func (c *creation) sharedDisk(resources []pve.Resource, node string) bool {
	storage := c.spec.Storage
	if storage == "" {
		storage = c.base.RootFS().Storage()
	}
	s := storageIn(resources, node, storage)
	return s != nil && s.Shared
}

// makeAs makes the container under c.ref's id and waits until it is there.
func (c *creation) makeAs(ctx context.Context) error {
	leave, err := c.queue(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if c.proceed != nil {
		if err := c.proceed(); err != nil {
			return err
		}
	}
	began := c.m.clock.Now()
	// The lease begins when its turn has come, and goes in with the call itself: a
	// second call would be lost with the process that was to make it.
	c.marker.take(c.spec.Lease, began)
	c.marker.Born = began
	defer func() { c.out.Timings.Clone += c.m.clock.Now().Sub(began) }()

	what := c.what()
	// A lock failure may be the answer, or the exit status of the task: then the
	// server has removed what it began.
	locked := c.spec.Source.TemplateID // a clone locks its source
	if locked == 0 {
		locked = c.ref.VMID
	}
	err = c.m.whileLocked(ctx, what, c.origin, locked, func(ctx context.Context) error {
		upid, err := c.call(ctx)
		if err != nil {
			return err
		}
		c.tell(upid)
		if upid != "" && c.spec.Source.IsClone() {
			return c.m.taskInPace(ctx, upid, fmt.Sprintf("clone %d %v", c.spec.Source.TemplateID, c.spec.FullClone), c.warnings)
		}
		if upid != "" {
			return c.m.task(ctx, upid, c.warnings)
		}
		// The answer was lost; the lock is what says that it is still at work.
		cfg, err := c.m.waitUnlocked(ctx, c.ref.Node, c.ref.VMID)
		if err != nil {
			return fmt.Errorf("%s: the call's answer was lost, and then: %w", what, err)
		}
		if _, marker := SplitDescription(cfg.Text("description")); !marker.Matches(c.ref.Owner, c.ref.Claim, c.ref.VMID) {
			return &conflictError{fmt.Errorf("container %d was made by somebody else", c.ref.VMID)}
		}
		return nil
	})
	if c.spec.Source.RestoreFrom == "" {
		return err
	}
	if err == nil {
		err = c.restored(ctx)
	}
	return c.restoreFailure(err)
}

// what names the step for messages.
func (c *creation) what() string {
	switch {
	case c.spec.Source.IsClone():
		return fmt.Sprintf("clone template %d", c.spec.Source.TemplateID)
	case c.spec.Source.RestoreFrom != "":
		return "restore " + c.spec.Source.RestoreFrom
	}
	return "create from " + c.spec.Source.TemplateFileID
}

// queue waits for a turn. The server locks the source of a clone until the
// clone is done, linked or not, so a second clone of the same template would
// only be refused; and a storage has one lock for allocations.
func (c *creation) queue(ctx context.Context) (leave func(), err error) {
	storage := c.spec.Storage
	if storage == "" {
		storage = c.base.RootFS().Storage()
	}
	leaveTemplate := func() {}
	if c.spec.Source.IsClone() {
		leaveTemplate, err = c.m.queues.enter(ctx, "template "+strconv.Itoa(c.spec.Source.TemplateID), 1)
		if err != nil {
			return nil, err
		}
	}
	leaveStorage, err := c.m.queues.enter(ctx, "storage "+storage, c.m.settings.MaxClones)
	if err != nil {
		leaveTemplate()
		return nil, err
	}
	return func() { leaveStorage(); leaveTemplate() }, nil
}

// lostAttempts is how often a write whose answer was lost is sent again.
const lostAttempts = 4

// call sends the call that makes the container. The id and the claim together
// make it safe to send again when its answer was lost: either the container is
// there with our claim, or the id is still free, or it is somebody else's.
func (c *creation) call(ctx context.Context) (pve.UPID, error) {
	var lost error
	for attempt := 0; ; attempt++ {
		// A call that is under way when the user presses Ctrl-C is not cut off:
		// it takes a moment, and then we know what exists.
		upid, err := c.send(context.WithoutCancel(ctx))
		switch {
		case err == nil:
			return upid, nil
		case pve.LostAnswer(err), (lost != nil || c.told == c.ref) && pve.Means(err, pve.GuestExists):
			ours, lookErr := c.ours(context.WithoutCancel(ctx))
			switch {
			case lookErr != nil:
				// It may exist and can't be asked for: the caller must know the ref.
				c.tell("")
				return "", fmt.Errorf("%w; and whether it was made can't be found out: %w", err, lookErr)
			case ours:
				return "", nil
			case pve.Means(err, pve.GuestExists):
				return "", &conflictError{err}
			case attempt == lostAttempts:
				return "", err
			}
			lost = err
			if err := c.m.pause(ctx, lockedMin<<attempt); err != nil {
				return "", err
			}
		case pve.Means(err, pve.GuestExists):
			return "", &conflictError{err}
		default:
			return "", err
		}
	}
}

func (c *creation) send(ctx context.Context) (pve.UPID, error) {
	description, err := JoinDescription(c.spec.Description, &c.marker)
	if err != nil {
		return "", err
	}
	if c.custom != nil {
		return c.custom(ctx, description)
	}
	if c.spec.Source.IsClone() {
		return c.m.pve.CloneLXC(ctx, c.origin, c.spec.Source.TemplateID, pve.CloneOptions{
			NewID: c.ref.VMID, Hostname: c.spec.Hostname, Description: description, Pool: c.spec.PoolID,
			Full: c.spec.FullClone, Storage: c.spec.Storage, Target: c.target,
		})
	}
	if c.spec.Source.RestoreFrom != "" {
		return c.restore(ctx, description)
	}
	keys, err := c.m.guests.AuthorizedKeys()
	if err != nil && c.spec.WaitFor == WaitForSSH && c.spec.Started {
		return "", err
	}
	set := map[string]string{
		"hostname": c.spec.Hostname, "description": description, "unprivileged": "1",
		"rootfs": fmt.Sprintf("%s:%d", c.spec.Storage, *c.spec.DiskGiB),
	}
	if len(keys) > 0 {
		set["ssh-public-keys"] = strings.Join(keys, "\n")
	}
	return c.m.pve.CreateLXC(ctx, c.origin, pve.CreateOptions{
		VMID: c.ref.VMID, OSTemplate: c.spec.Source.TemplateFileID, Pool: c.spec.PoolID, Set: set,
	})
}

// ours looks whether the guest with the chosen id is the one that our call
// made. The claim of a clone can be read from its first milliseconds on. That
// of a create from a template file or a backup can be read only when its task
// has ended; until then the vmid with our own task stands for it.
func (c *creation) ours(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	var marker *Marker
	var lock string
	err := c.m.poll(ctx, "the claim", func(ctx context.Context) (bool, error) {
		cfg, err := c.m.pve.LXCConfig(ctx, c.ref.Node, c.ref.VMID)
		if err != nil {
			return true, err
		}
		_, marker = SplitDescription(cfg.Text("description"))
		lock = cfg.Lock()
		// A clone is locked for some milliseconds before it has its description.
		return marker != nil || lock != "create" || !c.spec.Source.IsClone(), nil
	})
	switch {
	case pve.Means(err, pve.NoSuchGuest):
		return false, nil
	case err != nil:
		return false, err
	case marker != nil:
		return marker.Matches(c.ref.Owner, c.ref.Claim, c.ref.VMID), nil
	case lock != "create":
		return false, nil
	}
	kind := "vzcreate"
	if c.spec.Source.RestoreFrom != "" {
		kind = "vzrestore"
	}
	tasks, err := c.m.pve.Tasks(ctx, c.ref.Node, pve.TaskFilter{VMID: c.ref.VMID, Type: kind, All: true})
	if err != nil {
		return false, err
	}
	for _, task := range tasks {
		// The server's clock may differ from ours by some seconds.
		if c.m.ownTask(task) && time.Unix(task.StartTime, 0).After(c.started.Add(-time.Minute)) {
			return true, nil
		}
	}
	return false, nil
}

// ownTask says whether the task was started by our own identity. A token's
// task names it as "user@realm!token".
func (m *Manager) ownTask(task pve.TaskEntry) bool {
	id, err := task.UPID.Parse()
	return err == nil && strings.HasSuffix(m.pve.Identity(), " "+id.User)
}

// template looks at the template with an id, whose entry in the cluster's list
// is entry. What is wrong with it is a problem; the error is a failure to ask.
func (m *Manager) template(ctx context.Context, entry *pve.Resource, id int) (*Problem, *pve.LXCConfig, error) {
	bad := func(summary, detail string) (*Problem, *pve.LXCConfig, error) {
		return &Problem{Attribute: "template_id", Summary: summary, Detail: detail}, nil, nil
	}
	if entry == nil {
		return bad(fmt.Sprintf("There is no template %d", id), "The cluster has no guest with this id, or the token can't see it (it needs VM.Audit and VM.Clone on /vms/"+strconv.Itoa(id)+").")
	}
	if entry.Type != "lxc" {
		return bad(fmt.Sprintf("%d is a virtual machine", id), fmt.Sprintf("%q on node %s is no container; only a container template can be cloned into a container.", entry.Name, entry.Node))
	}
	cfg, err := m.templates.config(ctx, entry.Node, id)
	if pve.Means(err, pve.NoSuchGuest) {
		return bad(fmt.Sprintf("There is no template %d", id), "It was there a moment ago; somebody has removed or moved it.")
	}
	if err != nil {
		return nil, nil, err
	}
	if !cfg.Template() {
		return bad(fmt.Sprintf("Container %d is no template", id), fmt.Sprintf("%q on node %s is an ordinary container: cloning it would copy a running system, its keys and its data. Convert it to a template (pct template %d) or name another.", cfg.Hostname(), entry.Node, id))
	}
	return nil, cfg, nil
}

// build is the generation of what is cloned. The configuration inside a backup
// holds another guest's marker, which says nothing about this one.
func (c *creation) build() string {
	if !c.spec.Source.IsClone() {
		return ""
	}
	return buildOf(c.base)
}

// buildOf is the generation of a template, which its marker says; empty for a
// template that wasn't built by this project.
func buildOf(template *pve.LXCConfig) string {
	_, marker := SplitDescription(template.Text("description"))
	if marker == nil || marker.Kind != KindTemplate {
		return ""
	}
	return marker.TemplateBuild
}

// checkDisk refuses a root disk that is smaller than its source's.
func checkDisk(spec Spec, template *pve.LXCConfig) *Problem {
	bytes, ok := template.RootFS().SizeBytes()
	if spec.DiskGiB == nil || !ok || int64(*spec.DiskGiB)*gib >= bytes {
		return nil
	}
	p := smallerThanTemplate(*spec.DiskGiB, template.RootFS().Text("size"))
	return &p
}

func smallerThanTemplate(wantGiB int, size string) Problem {
	return Problem{Attribute: "disk", Summary: fmt.Sprintf("%d GiB is less than the template's %s", wantGiB, size),
		Detail: "Proxmox VE can't shrink a root disk. Leave disk out to keep the template's size, or give a larger one."}
}

// nodeForFile chooses the node that unpacks a template file: the wanted one,
// or an online one that has both the file's storage and the root disk's, the
// one with the most free memory first.
func (m *Manager) nodeForFile(resources []pve.Resource, spec Spec) (string, error) {
	fileStorage, _, _ := strings.Cut(spec.Source.TemplateFileID, ":")
	var candidates []pve.Resource
	for _, r := range resources {
		if r.Type != "node" || r.Status != "online" || len(m.settings.Nodes) > 0 && !slices.Contains(m.settings.Nodes, r.Node) {
			continue
		}
		if spec.NodeName != "" && r.Node != spec.NodeName {
			continue
		}
		if storageIn(resources, r.Node, fileStorage) != nil && storageIn(resources, r.Node, spec.Storage) != nil {
			candidates = append(candidates, r)
		}
	}
	if len(candidates) == 0 {
		where := "no node that is online"
		if spec.NodeName != "" {
			where = "node " + spec.NodeName + " is not online or not one that"
		}
		return "", &ProblemsError{Problems: []Problem{{Attribute: "storage", Summary: "No node can make the container",
			Detail: fmt.Sprintf("%s has both the storage %q of the template file and the storage %q for the root disk.", where, fileStorage, spec.Storage)}}}
	}
	slices.SortStableFunc(candidates, func(a, b pve.Resource) int {
		return int((b.MaxMem-b.Mem)>>20) - int((a.MaxMem-a.Mem)>>20)
	})
	return candidates[0].Node, nil
}
