package sandbox

// What a specification leaves out and the provider block answers.

// DefaultDiskGiB is the root disk of a container made from a template file.
const DefaultDiskGiB = 4

func (m *Manager) source(spec Spec) Source {
	src := spec.Source
	if src.empty() {
		src.TemplateID = m.settings.TemplateID
	}
	return src
}

func (m *Manager) bridge(spec Spec) string {
	if spec.Network.Bridge != "" {
		return spec.Network.Bridge
	}
	return m.settings.Bridge
}

func (m *Manager) poolID(spec Spec) string {
	if spec.PoolID != "" {
		return spec.PoolID
	}
	return m.settings.PoolID
}

// storage is where a root disk of its own goes; empty for a linked clone.
func (m *Manager) storage(spec Spec) string {
	switch {
	case m.source(spec).IsClone() && !spec.FullClone:
		return ""
	case spec.Storage != "":
		return spec.Storage
	}
	return m.settings.Storage
}

// resolve fills in what the provider block answers, for any container.
func (m *Manager) resolve(spec Spec) Spec {
	spec = spec.Clone()
	spec.Source = m.source(spec)
	spec.Storage = m.storage(spec)
	spec.PoolID = m.poolID(spec)
	spec.Network.Bridge = m.bridge(spec)
	if spec.Network.Mode == "" {
		spec.Network.Mode = DefaultMode
	}
	if spec.Network.Proof == "" {
		spec.Network.Proof = ProofGuarded
	}
	if spec.WaitFor == "" {
		spec.WaitFor = WaitForSSH
	}
	spec.Tags = NormalizeTags(spec.Tags)
	return spec
}

// resolveNew also fills in what a template would have brought along.
func (m *Manager) resolveNew(spec Spec) Spec {
	spec = m.resolve(spec)
	if spec.Source.IsClone() {
		return spec
	}
	unpacked := spec.Source.TemplateFileID != "" // a backup brings its own
	if spec.DiskGiB == nil && unpacked {
		spec.DiskGiB = ptr(DefaultDiskGiB)
	}
	if spec.Nesting == nil && unpacked {
		// systemd 257 and later (Debian 13, Ubuntu 25) needs it to start.
		spec.Nesting = ptr(true)
	}
	if spec.Network.IPv4 == "" {
		spec.Network.IPv4 = AddressDHCP
	}
	if spec.Network.IPv6 == "" && spec.Source.RestoreFrom != "" {
		spec.Network.IPv6 = AddressNone // the backup's belongs to the container that was saved
	}
	return spec
}

func ptr[T any](v T) *T { return &v }
