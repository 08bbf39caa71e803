package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// target is how the guest package names a sandbox.
func target(ref Ref, s Sandbox, hostKey string) guest.Target {
	t := guest.Target{ID: strconv.Itoa(ref.VMID), Name: s.Hostname, HostKey: hostKey}
	if addr := s.address(); addr.IsValid() {
		t.Address = addr.String()
	}
	return t
}

// address is where a sandbox is reached: IPv4 where there is one.
func (s Sandbox) address() netip.Addr {
	if s.IPv4.IsValid() {
		return s.IPv4
	}
	return s.IPv6
}

// sshOf says how a sandbox is reached; nil without an address.
func (m *Manager) sshOf(s Sandbox, hostKey string) *SSH {
	addr := s.address()
	if !addr.IsValid() {
		return nil
	}
	ssh := &SSH{Username: m.settings.Guest.Username, Host: addr.String(), Port: m.settings.Guest.Port, HostKey: hostKey}
	if ssh.Username == "" {
		ssh.Username = "root"
	}
	if ssh.Port == 0 {
		ssh.Port = guest.DefaultPort
	}
	return ssh
}

// ready waits for what the specification asks to wait for, and writes the
// authorized keys.
func (f *finishing) ready(ctx context.Context) error {
	keys := f.writeKeys && f.spec.AuthorizedKeys != nil
	if f.spec.WaitFor == WaitForNone && !keys {
		return nil
	}
	if err := f.waitAddress(ctx); err != nil {
		return err
	}
	if f.spec.WaitFor != WaitForSSH && !keys {
		return nil
	}
	began := f.m.clock.Now()
	defer func() { f.timings.SSH += f.m.clock.Now().Sub(began) }()
	t := target(f.ref, f.sandbox, f.hostKey)
	// That another sandbox has the same host key is among the guests' warnings.
	up, err := f.m.guests.WaitReady(ctx, t)
	if err != nil {
		return &Error{Op: "connect", Ref: f.ref, Kind: ErrNotReady, What: "log in over SSH", Err: err}
	}
	f.hostKey = up.HostKey
	f.fillSSH()
	f.proveRunning()
	if err := f.inform(ctx); err != nil {
		return err
	}
	f.rename(ctx)
	if !keys {
		return nil
	}
	if err := f.m.guests.SetAuthorizedKeys(ctx, target(f.ref, f.sandbox, f.hostKey), f.sandbox.SSH.Username, f.spec.AuthorizedKeys); err != nil {
		return &Error{Op: "connect", Ref: f.ref, What: "write authorized_keys", Err: err}
	}
	return nil
}

// waitAddress waits until an address is known. A static one is known at once.
func (f *finishing) waitAddress(ctx context.Context) error {
	if f.sandbox.address().IsValid() {
		return nil
	}
	began := f.m.clock.Now()
	defer func() { f.timings.Address += f.m.clock.Now().Sub(began) }()
	n := f.sandbox.Network
	err := f.m.poll(ctx, "an address of container "+strconv.Itoa(f.ref.VMID), func(ctx context.Context) (bool, error) {
		interfaces, err := f.m.pve.LXCInterfaces(ctx, f.ref.Node, f.ref.VMID)
		if err != nil {
			return false, err
		}
		v4, v6 := addressesOf(interfaces, n.MACAddress)
		f.sandbox.IPv4, f.sandbox.IPv6 = v4, v6
		if len(interfaces) > 0 {
			f.proveRunning() // only a running container has interfaces
		}
		if n.IPv4 == AddressDHCP {
			return v4.IsValid(), nil
		}
		return v4.IsValid() || v6.IsValid(), nil
	})
	if err != nil {
		e := &Error{Op: "connect", Ref: f.ref, Kind: ErrNotReady, What: "wait for an address", Err: err}
		if n.IPv4 == AddressDHCP && !errors.Is(err, context.Canceled) {
			e.Remedy = fmt.Sprintf("is there a DHCP server on %s? The interface's MAC address is %s; a static address (ipv4 = \"auto\" or a CIDR) needs no server", n.Bridge, n.MACAddress)
		}
		return e
	}
	f.fillSSH()
	return nil
}

// proveRunning notes that the container was seen to run, which spares the
// question.
func (f *finishing) proveRunning() {
	f.statusOK = true
	f.sandbox.Status = StatusRunning
}

// addressesOf finds the addresses of the interface with a MAC address. Others
// are the guest's own business (lo, docker0, tailscale0), and link-local
// addresses reach nobody.
func addressesOf(interfaces []pve.Interface, mac string) (v4, v6 netip.Addr) {
	for _, i := range interfaces {
		if mac == "" || !strings.EqualFold(i.MAC, mac) {
			continue
		}
		for _, prefix := range i.Addresses {
			switch addr := prefix.Addr(); {
			case addr.IsLinkLocalUnicast(), addr.IsLoopback(), addr.IsMulticast(), addr.IsUnspecified():
			case addr.Is4() && !v4.IsValid():
				v4 = addr
			case addr.Is6() && !v6.IsValid():
				v6 = addr
			}
		}
	}
	return v4, v6
}

// needsInterfaces says whether an address can only be known by asking the
// guest's interfaces.
func (n NetworkState) needsInterfaces() bool {
	return n.IPv4 == AddressDHCP || n.IPv6 == AddressDHCP || n.IPv6 == AddressAuto
}

func (m *Manager) guestWarnings() []Warning {
	var list []Warning
	for _, w := range m.guests.TakeWarnings() {
		list = append(list, Warning{Summary: w.Summary, Detail: w.Detail})
	}
	return list
}

// autostartWindow is how long after a node's start its on_boot guests may
// still wait for their turn: the node starts them one after the other, with
// each one's up_delay between.
const autostartWindow = 3 * time.Minute

// pendingAutostart says whether a stopped container will be started by its
// node.
func pendingAutostart(s Sandbox, nodeUptime time.Duration) bool {
	if s.Status != StatusStopped || !s.OnBoot || nodeUptime <= 0 {
		return false
	}
	window := autostartWindow
	if s.Startup != nil && s.Startup.UpDelaySec != nil {
		window += time.Duration(*s.Startup.UpDelaySec) * time.Second
	}
	return nodeUptime < window
}
