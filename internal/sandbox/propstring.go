package sandbox

import "strings"

// propString is a comma-separated list of key=value as Proxmox VE keeps net0,
// rootfs and features. Order and keys that this package doesn't know are kept,
// so that a change of one key can't drop another that the server, or somebody
// else, has put there (host-managed, mountoptions).
type propString []property

type property struct{ key, value string }

// parseProps takes s apart. A first element without a key gets defaultKey
// (rootfs: the volume).
func parseProps(s, defaultKey string) propString {
	var p propString
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			key, value = defaultKey, part
		}
		p = append(p, property{key, value})
	}
	return p
}

func (p propString) get(key string) string {
	for _, kv := range p {
		if kv.key == key {
			return kv.value
		}
	}
	return ""
}

// set gives key a value; an empty one removes it.
func (p *propString) set(key, value string) {
	for i, kv := range *p {
		if kv.key == key {
			if value == "" {
				*p = append((*p)[:i:i], (*p)[i+1:]...)
				return
			}
			(*p)[i].value = value
			return
		}
	}
	if value != "" {
		*p = append(*p, property{key, value})
	}
}

// String writes the elements in their order; the element with an empty key is
// written as its value alone.
func (p propString) String() string {
	parts := make([]string, 0, len(p))
	for _, kv := range p {
		if kv.key == "" {
			parts = append(parts, kv.value)
			continue
		}
		parts = append(parts, kv.key+"="+kv.value)
	}
	return strings.Join(parts, ",")
}

// equalProps compares as the server does: order carries no meaning.
func equalProps(a, b propString) bool {
	if len(a) != len(b) {
		return false
	}
	for _, kv := range a {
		if b.get(kv.key) != kv.value {
			return false
		}
	}
	return true
}
