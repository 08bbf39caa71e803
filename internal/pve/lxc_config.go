package pve

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// LXCConfig is the configuration of a container as the server has it: every key
// that it sent, and the known ones parsed.
type LXCConfig struct {
	// Raw holds every key with a single value, as the server's text: booleans are
	// "0" and "1", numbers as they were written. Absent keys have the server's
	// default.
	Raw map[string]string
	// RawLines are the "lxc.*" lines of the configuration file, in their order.
	// The API shows them and can't change them.
	RawLines []RawLine
	// Extra holds the keys whose value isn't a single one.
	Extra Extra
}

// RawLine is a line of LXC's own in a container's configuration.
type RawLine struct{ Key, Value string }

// LXCConfig reads a container's configuration with its pending values, as it
// will be after the next start. A container that isn't on that node is an error
// that means NoSuchGuest.
func (c *Client) LXCConfig(ctx context.Context, node string, vmid int) (*LXCConfig, error) {
	return c.lxcConfig(ctx, node, vmid, nil)
}

// LXCConfigCurrent reads the configuration that a container runs with.
func (c *Client) LXCConfigCurrent(ctx context.Context, node string, vmid int) (*LXCConfig, error) {
	return c.lxcConfig(ctx, node, vmid, params{"current": "1"})
}

func (c *Client) lxcConfig(ctx context.Context, node string, vmid int, p params) (*LXCConfig, error) {
	raw, err := c.get(ctx, lxcPath(node, vmid)+"/config", p)
	if err != nil {
		return nil, err
	}
	cfg, err := ParseLXCConfig(raw)
	if err != nil {
		return nil, &AnswerError{Method: "GET", Path: lxcPath(node, vmid) + "/config", Err: err}
	}
	return cfg, nil
}

// ParseLXCConfig reads the JSON object of a configuration.
func ParseLXCConfig(data []byte) (*LXCConfig, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, err
	}
	if keys == nil {
		return nil, fmt.Errorf("a configuration was expected, got null")
	}
	cfg := &LXCConfig{Raw: make(map[string]string, len(keys)), Extra: Extra{}}
	for key, raw := range keys {
		if key == "lxc" {
			lines, err := parseRawLines(raw)
			if err != nil {
				return nil, fmt.Errorf("lxc: %w", err)
			}
			cfg.RawLines = lines
			continue
		}
		if isNull(raw) {
			continue
		}
		text, err := scalarText(raw)
		if err != nil {
			cfg.Extra[key] = raw
			continue
		}
		cfg.Raw[key] = text
	}
	return cfg, nil
}

func parseRawLines(raw json.RawMessage) ([]RawLine, error) {
	var pairs [][]json.RawMessage
	if err := json.Unmarshal(raw, &pairs); err != nil {
		return nil, err
	}
	var lines []RawLine
	for _, pair := range pairs {
		if len(pair) != 2 {
			return nil, fmt.Errorf("a line has %d parts, want key and value", len(pair))
		}
		key, err := scalarText(pair[0])
		if err != nil {
			return nil, err
		}
		value, err := scalarText(pair[1])
		if err != nil {
			return nil, err
		}
		lines = append(lines, RawLine{Key: key, Value: value})
	}
	return lines, nil
}

// Text returns the value of a key, "" when it is absent.
func (c *LXCConfig) Text(key string) string { return c.Raw[key] }

// Has reports whether the configuration has the key.
func (c *LXCConfig) Has(key string) bool { _, ok := c.Raw[key]; return ok }

// Int returns the value of a key, and whether it is there and a whole number.
func (c *LXCConfig) Int(key string) (int64, bool) {
	text, ok := c.Raw[key]
	if !ok {
		return 0, false
	}
	n, err := parseWhole(text)
	return n, err == nil
}

// Float returns the value of a key, and whether it is there and a number.
func (c *LXCConfig) Float(key string) (float64, bool) {
	text, ok := c.Raw[key]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// Flag reports whether a key is there and true.
func (c *LXCConfig) Flag(key string) bool {
	b, err := parseFlag(c.Raw[key])
	return err == nil && b
}

// Hostname is the container's name.
func (c *LXCConfig) Hostname() string { return c.Raw["hostname"] }

// Description is the notes, without the newline that the server adds.
func (c *LXCConfig) Description() string { return strings.TrimSuffix(c.Raw["description"], "\n") }

// Digest is the digest of the configuration, for the next update.
func (c *LXCConfig) Digest() string { return c.Raw["digest"] }

// Lock is the kind of lock that an operation holds on the guest ("create",
// "disk", "backup", …), "" when none.
func (c *LXCConfig) Lock() string { return c.Raw["lock"] }

// Template reports whether the container is a template.
func (c *LXCConfig) Template() bool { return c.Flag("template") }

// Protection reports whether the server refuses to remove it.
func (c *LXCConfig) Protection() bool { return c.Flag("protection") }

// Unprivileged reports whether its root is not the host's.
func (c *LXCConfig) Unprivileged() bool { return c.Flag("unprivileged") }

// OnBoot reports whether it starts with its node.
func (c *LXCConfig) OnBoot() bool { return c.Flag("onboot") }

// Tags returns the tags, in the server's order (lower case, sorted).
func (c *LXCConfig) Tags() []string { return splitTags(c.Raw["tags"]) }

func splitTags(s string) []string {
	// An emptied list is kept as one space by the server.
	return strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
}

// Features returns the features property (nesting=1,keyctl=1,…).
func (c *LXCConfig) Features() Properties { return ParseProperties(c.Raw["features"]) }

// RootFS returns the root volume.
func (c *LXCConfig) RootFS() Mount { return Mount{ParseProperties(c.Raw["rootfs"])} }

// Nets returns the interfaces by index (net0 is 0).
func (c *LXCConfig) Nets() map[int]Net {
	out := map[int]Net{}
	for i, value := range c.numbered("net") {
		out[i] = Net{ParseProperties(value)}
	}
	return out
}

// Mounts returns the mount points by index (mp0 is 0).
func (c *LXCConfig) Mounts() map[int]Mount {
	out := map[int]Mount{}
	for i, value := range c.numbered("mp") {
		out[i] = Mount{ParseProperties(value)}
	}
	return out
}

// Devices returns the devices passed through by index (dev0 is 0).
func (c *LXCConfig) Devices() map[int]Properties {
	out := map[int]Properties{}
	for i, value := range c.numbered("dev") {
		out[i] = ParseProperties(value)
	}
	return out
}

// Unused returns the volumes that belong to the container and are mounted
// nowhere, by index (unused0 is 0). Destroying it destroys them.
func (c *LXCConfig) Unused() map[int]string { return c.numbered("unused") }

var numberedKey = regexp.MustCompile(`^([a-z]+)(\d+)$`)

func (c *LXCConfig) numbered(prefix string) map[int]string {
	out := map[int]string{}
	for key, value := range c.Raw {
		m := numberedKey.FindStringSubmatch(key)
		if m == nil || m[1] != prefix {
			continue
		}
		if n, err := strconv.Atoi(m[2]); err == nil {
			out[n] = value
		}
	}
	return out
}

// Keys returns the keys of Raw, sorted.
func (c *LXCConfig) Keys() []string { return slices.Sorted(maps.Keys(c.Raw)) }

// Net is a network interface of a container (net0).
type Net struct{ Properties }

// ParseNet reads a netN value.
func ParseNet(s string) Net { return Net{ParseProperties(s)} }

// Name is the interface's name inside the container.
func (n Net) Name() string { return n.Text("name") }

// Bridge is the host's bridge that it is on.
func (n Net) Bridge() string { return n.Text("bridge") }

// MAC is the hardware address, in the case that it was given in.
func (n Net) MAC() string { return n.Text("hwaddr") }

// IP is "dhcp", "manual" or an address with its prefix length, "" for none.
func (n Net) IP() string { return n.Text("ip") }

// Gateway is the IPv4 gateway.
func (n Net) Gateway() string { return n.Text("gw") }

// IP6 is as IP, and may be "auto".
func (n Net) IP6() string { return n.Text("ip6") }

// Gateway6 is the IPv6 gateway.
func (n Net) Gateway6() string { return n.Text("gw6") }

// Firewall reports whether the guest's firewall rules apply to the interface.
func (n Net) Firewall() bool { return n.Flag("firewall") }

// LinkDown reports whether the interface has no carrier.
func (n Net) LinkDown() bool { return n.Flag("link_down") }

// Mount is a root volume or mount point of a container.
type Mount struct{ Properties }

// Volume is the volume's id ("local-btrfs:105/vm-105-disk-0.raw"), the path of a
// bind mount, or the device's path.
func (m Mount) Volume() string {
	if v, ok := m.Get("volume"); ok {
		return v
	}
	return m.Bare()
}

// Storage is the storage that holds the volume, "" for a bind mount or device.
func (m Mount) Storage() string {
	volume := m.Volume()
	if strings.HasPrefix(volume, "/") {
		return ""
	}
	storage, _, ok := strings.Cut(volume, ":")
	if !ok {
		return ""
	}
	return storage
}

// Path is where it is mounted; empty for the root volume.
func (m Mount) Path() string { return m.Text("mp") }

// SizeBytes is the volume's size, and whether the configuration has one.
func (m Mount) SizeBytes() (int64, bool) { return ParseSize(m.Text("size")) }

var sizeForm = regexp.MustCompile(`^(\d+(?:\.\d+)?)([KMGT])?$`)

// ParseSize reads a size as the server writes it: "8G", "512M", "0T", or bytes.
func ParseSize(s string) (bytes int64, ok bool) {
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[m[2]]
	return int64(n * float64(int64(1)<<shift)), true
}
