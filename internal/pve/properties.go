package pve

import "strings"

// Properties is a property string of the API, "name=eth0,bridge=vmbr0,…", in its
// order, with every key that it holds, known to us or not: what is changed is
// changed, and the rest goes back as it came.
type Properties struct {
	pairs []property
}

type property struct {
	key, value string
	// bare is a value without a key (the volume of "local:1/x.raw,size=1G").
	bare bool
}

// ParseProperties reads a property string. It takes any text: a part without
// "=" is a bare value.
func ParseProperties(s string) Properties {
	var p Properties
	for part := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		if key, value, ok := strings.Cut(part, "="); ok {
			p.pairs = append(p.pairs, property{key: strings.TrimSpace(key), value: value})
		} else {
			p.pairs = append(p.pairs, property{value: part, bare: true})
		}
	}
	return p
}

// Get returns the value of key, and whether it is there.
func (p Properties) Get(key string) (string, bool) {
	for _, kv := range p.pairs {
		if !kv.bare && kv.key == key {
			return kv.value, true
		}
	}
	return "", false
}

// Text returns the value of key, "" when it isn't there.
func (p Properties) Text(key string) string {
	v, _ := p.Get(key)
	return v
}

// Flag reports whether key is there and true.
func (p Properties) Flag(key string) bool {
	b, err := parseFlag(p.Text(key))
	return err == nil && b
}

// Bare returns the first value without a key: the volume of a mount point, the
// path of a device.
func (p Properties) Bare() string {
	for _, kv := range p.pairs {
		if kv.bare {
			return kv.value
		}
	}
	return ""
}

// With returns a copy with key set to value, in its old place or at the end.
func (p Properties) With(key, value string) Properties {
	out := Properties{pairs: make([]property, 0, len(p.pairs)+1)}
	found := false
	for _, kv := range p.pairs {
		if !kv.bare && kv.key == key {
			kv.value, found = value, true
		}
		out.pairs = append(out.pairs, kv)
	}
	if !found {
		out.pairs = append(out.pairs, property{key: key, value: value})
	}
	return out
}

// WithBare returns a copy whose value without a key is value, at the front when
// there was none.
func (p Properties) WithBare(value string) Properties {
	out := Properties{pairs: append([]property(nil), p.pairs...)}
	for i := range out.pairs {
		if out.pairs[i].bare {
			out.pairs[i].value = value
			return out
		}
	}
	out.pairs = append([]property{{value: value, bare: true}}, out.pairs...)
	return out
}

// Without returns a copy that lacks the keys.
func (p Properties) Without(keys ...string) Properties {
	out := Properties{pairs: make([]property, 0, len(p.pairs))}
next:
	for _, kv := range p.pairs {
		for _, key := range keys {
			if !kv.bare && kv.key == key {
				continue next
			}
		}
		out.pairs = append(out.pairs, kv)
	}
	return out
}

// Keys returns the keys in their order.
func (p Properties) Keys() []string {
	keys := make([]string, 0, len(p.pairs))
	for _, kv := range p.pairs {
		if !kv.bare {
			keys = append(keys, kv.key)
		}
	}
	return keys
}

// Empty reports whether there is nothing in it.
func (p Properties) Empty() bool { return len(p.pairs) == 0 }

// String returns the property string.
func (p Properties) String() string {
	parts := make([]string, len(p.pairs))
	for i, kv := range p.pairs {
		if kv.bare {
			parts[i] = kv.value
		} else {
			parts[i] = kv.key + "=" + kv.value
		}
	}
	return strings.Join(parts, ",")
}
