package pve

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// params are the parameters of one call: the query of a GET or DELETE, the form
// of a POST or PUT.
type params map[string]string

func (p params) set(key, value string) { p[key] = value }

// setText sets key unless value is empty.
func (p params) setText(key, value string) {
	if value != "" {
		p[key] = value
	}
}

func (p params) setInt(key string, value int) { p[key] = strconv.Itoa(value) }

// setFlag sets key to 1 if value is true. The server's defaults are 0.
func (p params) setFlag(key string, value bool) {
	if value {
		p[key] = "1"
	}
}

// encode returns the parameters as a form. Every value is percent-encoded in
// full: a bare "=" in one is read by the server as another key.
func (p params) encode() string {
	v := make(url.Values, len(p))
	for key, value := range p {
		v.Set(key, value)
	}
	return v.Encode()
}

func (p params) with(more map[string]string) params {
	out := maps.Clone(p)
	if out == nil {
		out = params{}
	}
	maps.Copy(out, more)
	return out
}

// Bool writes a boolean as the API takes it in a form: exactly 0 or 1.
func Bool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// joinKeys joins names for a delete parameter, in one order.
func joinKeys(keys []string) string {
	return strings.Join(slices.Sorted(slices.Values(keys)), ",")
}

func nodePath(node string) string { return "/nodes/" + escapeSegment(node) }

func lxcPath(node string, vmid int) string {
	return nodePath(node) + "/lxc/" + strconv.Itoa(vmid)
}
