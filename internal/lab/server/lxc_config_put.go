package server

import (
	"context"
	"strconv"
	"strings"
)

// configChange is what a PUT config asks for.
type configChange struct {
	set    map[string]string
	delete []string
	revert []string
}

// lxcConfigPut checks in the server's order: the container, that something is asked, the options' names, the
// permission of every option, the lock and the digest. Then the change is stored, and applied as far as it can be.
func (s *Server) lxcConfigPut(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	change, err := c.configChange()
	if err != nil {
		return nil, err
	}
	if err := c.checkConfigChange(g, change); err != nil {
		return nil, err
	}
	if err := c.checkMountStorages(change.set); err != nil {
		return nil, err
	}
	if err := c.storeChange(change); err != nil {
		return nil, err
	}
	return nil, c.sleep(s.delays().Config)
}

// storeChange makes the change under the container's lock file. A bridge that isn't there is noticed only when the new
// values are stored.
func (c *call) storeChange(change configChange) error {
	s := c.s
	release, err := s.lockGuest(c.ctx, c.vmid())
	if err != nil {
		return err
	}
	defer release()
	g, err := c.guest()
	if err != nil {
		return err
	}
	if err := g.checkLock(); err != nil {
		return err
	}
	if err := checkDigest(c.params.str("digest"), g.digest()); err != nil {
		return err
	}
	if err := s.changeConfig(c.ctx, g, change); err != nil {
		return err
	}
	return s.checkBridges(g.Node, g.Config)
}

// configChange reads the parameters.
func (c *call) configChange() (configChange, error) {
	change := configChange{set: map[string]string{}}
	for name, value := range c.params {
		switch name {
		case "node", "vmid", "digest":
		case "delete":
			change.delete = c.params.list("delete")
		case "revert":
			change.revert = c.params.list("revert")
		default:
			change.set[name] = value
		}
	}
	if len(change.set) == 0 && !c.params.has("delete") && !c.params.has("revert") {
		return change, failf("no options specified")
	}
	for _, list := range []struct {
		word string
		keys []string
	}{{"delete", change.delete}, {"revert", change.revert}} {
		for _, key := range list.keys {
			if _, both := change.set[key]; both {
				return change, paramError(list.word, "you can't use '-%s' and -%s %s' at the same time", key, list.word, key)
			}
			if !isLXCOption(key) {
				return change, paramError(list.word, "unknown option '%s'", key)
			}
		}
	}
	return change, nil
}

// isLXCOption says that a configuration may have an option. Raw lines ("lxc") are none.
func isLXCOption(key string) bool {
	fact := loadFacts()["PUT /nodes/{node}/lxc/{vmid}/config"]
	switch key {
	case "node", "vmid", "digest", "delete", "revert":
		return false
	}
	_, ok := fact.fact(key)
	return ok
}

// checkMountStorages refuses new volumes on storages that aren't there.
func (c *call) checkMountStorages(options map[string]string) error {
	for _, key := range mountKeys(options) {
		if id, _, ok := parseMount(key, options[key]).wanted(); ok {
			if _, err := c.s.lxcStorage(c.node.Name, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeConfig stores a change as pending and applies what it can: all of it while the container is stopped, what can
// be changed hot while it runs. The caller holds the container's lock file.
func (s *Server) changeConfig(ctx context.Context, g *guest, change configChange) error {
	pending := newPending(g)
	for _, key := range change.revert {
		delete(pending.values, key)
		delete(pending.deletes, key)
	}
	for _, key := range change.delete {
		if err := pending.remove(g, key); err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(change.set) {
		value, err := storedValue(g, key, change.set[key])
		if err != nil {
			return err
		}
		pending.values[key] = value
		delete(pending.deletes, key)
	}
	if g.active() {
		if err := s.checkUplinks(g, change.set); err != nil {
			return err
		}
	}
	g.Pending, g.PendingDelete = pending.values, pending.deletes
	g.tidyPending()
	s.dirty()
	if g.active() {
		return s.applyHot(ctx, g, change.keys())
	}
	return s.applyPending(ctx, g)
}

// keys are the options that a change touches.
func (change configChange) keys() map[string]bool {
	keys := map[string]bool{}
	for key := range change.set {
		keys[key] = true
	}
	for _, key := range change.delete {
		keys[key] = true
	}
	return keys
}

// storedValue is a new value as the server keeps it, or its refusal.
func storedValue(g *guest, key, value string) (string, error) {
	kind, _ := splitNumbered(key)
	switch {
	case key == "unprivileged":
		return "", failf("unable to modify read-only option: '%s'", key)
	case key == "rootfs" || kind == "mp":
		if err := g.checkProtection("can't update CT " + strconv.Itoa(g.VMID) + " drive '" + key + "'"); err != nil {
			return "", err
		}
	case key == "nameserver" || key == "searchdomain":
		return strings.Join(splitList(value), " "), nil
	case key == "tags":
		return normalTags(value), nil
	case key == "description":
		return descriptionText(value), nil
	}
	return value, nil
}

// normalTags: lower case, sorted, each once, joined by semicolons. No tags at all are stored as a blank.
func normalTags(value string) string {
	seen := map[string]string{}
	for _, tag := range splitList(strings.ToLower(value)) {
		seen[tag] = tag
	}
	if len(seen) == 0 {
		return " "
	}
	return strings.Join(sortedKeys(seen), ";")
}
