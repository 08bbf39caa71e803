package sandbox

// What a specification leaves out and the provider block answers.

func (m *Manager) source(spec Spec) Source {
	src := spec.Source
	if src.TemplateID == 0 && src.TemplateFileID == "" {
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
