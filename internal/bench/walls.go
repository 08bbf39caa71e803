package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/matrix"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// Bounds of the walls.
const (
	maxManagedCreate = 18 // requests, without polls and what is asked once a run
	oncePerRun       = 5
	managedRefresh   = 10 // containers that are refreshed: at most 3 n + 1 + nodes requests
	// maxGuardedRest is what a guarded creation with a static address may take beside the clone and the time that the
	// rules are given.
	maxGuardedRest = 3 * time.Second
)

// domain is the provider's domain against a stage.
func (s *stage) domain() (*sandbox.Manager, func() error, error) {
	client, err := pve.New(s.target.Connection())
	if err != nil {
		return nil, nil, err
	}
	m, err := sandbox.NewManager(client, s.target.Settings(), sandbox.Options{})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return m, func() error { defer client.Close(); return m.Close() }, nil
}

func (s *stage) spec(hostname string, mode sandbox.NetworkMode) sandbox.Spec {
	return sandbox.Spec{
		Hostname: hostname, Source: sandbox.Source{TemplateID: s.target.TemplateID}, Started: true, WaitFor: sandbox.WaitForSSH,
		Network: sandbox.Network{IPv4: sandbox.AddressAuto, Mode: mode},
	}
}

// measureWalls counts the requests of a container with a managed mode: the first of a run, and a refresh.
func measureWalls(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, lab.Fast())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	m, end, err := s.domain()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var made []sandbox.Ref
	for i := range managedRefresh {
		if err := s.resetRequests(ctx); err != nil {
			return err
		}
		spec := s.spec(fmt.Sprintf("wall-%d", i), sandbox.ModeNAT)
		out, err := m.Create(ctx, spec, nil)
		if err != nil {
			return err
		}
		made = append(made, out.Sandbox.Ref)
		requests, _, err := s.requests(ctx)
		if err != nil {
			return err
		}
		work, _ := split(requests)
		switch i {
		case 0:
			fmt.Fprintf(log, "the first managed creation of a run: %s\n", describe(requests))
			// With what is asked once a run: the guests, the template, the datacenter's switch, the nodes' addresses, the resolvers.
			report(atMost("managed_create_first_requests", work, maxManagedCreate+oncePerRun))
		case 1:
			report(atMost("managed_create_requests", work, maxManagedCreate))
		}
	}
	reader, endReader, err := s.domain()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endReader()) }()
	if err := s.resetRequests(ctx); err != nil {
		return err
	}
	for _, ref := range made {
		if _, err := reader.Read(ctx, sandbox.Prior{Ref: ref}); err != nil {
			return err
		}
	}
	requests, _, err := s.requests(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "refresh of %d with a managed mode: %s\n", len(made), describe(requests))
	report(atMost(fmt.Sprintf("managed_refresh_%d_requests", len(made)), len(requests), 3*len(made)+1+len(s.target.Nodes)))
	return nil
}

// measureGuarded is the time of a guarded creation with a real server's times: with a static address, and with one by
// DHCP, whose client waits longer on a real server than in the lab.
func measureGuarded(ctx context.Context, provider string, _ io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, lab.Real())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	m, end, err := s.domain()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for _, address := range []string{sandbox.AddressAuto, sandbox.AddressDHCP} {
		spec := s.spec("guarded-"+address, sandbox.ModeNAT)
		spec.Network.IPv4 = address
		out, err := m.Create(ctx, spec, nil)
		if err != nil {
			return err
		}
		t := out.Timings
		rest := t.Total - t.Clone - s.target.Settings().FirewallSettle
		if address == sandbox.AddressAuto {
			report(shown("guarded_create_static", fmt.Sprintf("%.2fs", t.Total.Seconds())))
			report(Metric{Name: "guarded_create_static_rest", Value: fmt.Sprintf("%.2fs", rest.Seconds()), Bound: "<=" + maxGuardedRest.String(), OK: rest <= maxGuardedRest})
			continue
		}
		report(shown("guarded_create_dhcp", fmt.Sprintf("%.2fs", t.Total.Seconds())))
	}
	return nil
}

// measurePackets tries from inside real containers what the modes let out.
func measurePackets(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	if why := lab.CheckEngine(lab.EngineNS); why != nil {
		fmt.Fprintf(log, "no figures from real containers (matrix_wrong, spoof_passed, window_connections): %v\n", why)
		return nil
	}
	s, err := newStageWith(ctx, provider, lab.Options{EngineName: lab.EngineNS, Outside: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	m, end, err := s.domain()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	made := map[sandbox.NetworkMode]sandbox.Sandbox{}
	wrong, tried, open := 0, 0, 0
	for _, mode := range []sandbox.NetworkMode{sandbox.ModeUnmanaged, sandbox.ModeOff, sandbox.ModeWeb, sandbox.ModeNAT, sandbox.ModeAllowlist} {
		spec := s.spec("packets-"+string(mode), mode)
		spec.Network.IPv6 = sandbox.AddressAuto
		spec.DNS = &sandbox.DNS{Servers: []string{matrix.Resolver4, matrix.Resolver6}}
		if mode == sandbox.ModeAllowlist {
			spec.Network.Allow = []egress.Allow{{To: matrix.Named4, Ports: "443"}, {To: matrix.Named6, Ports: "443"}}
		}
		out, err := m.Create(ctx, spec, nil)
		if err != nil {
			return err
		}
		made[mode] = out.Sandbox
		found, err := matrix.Try(ctx, s.lab, out.Sandbox.VMID)
		if err != nil {
			return err
		}
		for _, f := range found {
			switch {
			case mode == sandbox.ModeUnmanaged && f.Reached:
				open++
			case mode == sandbox.ModeUnmanaged:
				fmt.Fprintf(log, "control: %s (%s %s) is closed\n", f.What, f.Proto, f.To)
			default:
				tried++
				if f.Reached != f.ReachedBy(string(mode)) {
					wrong++
					fmt.Fprintf(log, "mode %s: %s (%s %s): reached %t\n", mode, f.What, f.Proto, f.To, f.Reached)
				}
			}
		}
	}
	all := len(matrix.Targets())
	report(Metric{Name: "control_open", Value: fmt.Sprint(open), Bound: fmt.Sprintf("=%d", all), OK: open == all})
	report(shown("matrix_tried", fmt.Sprint(tried)))
	report(atMost("matrix_wrong", wrong, 0))

	victim, nobody := made[sandbox.ModeNAT], netip.MustParseAddr("10.77.9.9")
	for _, mode := range []sandbox.NetworkMode{sandbox.ModeUnmanaged, sandbox.ModeWeb} {
		passed, err := matrix.Spoof(ctx, s.lab, made[mode].VMID, victim.IPv4, victim.Network.MACAddress, nobody)
		if err != nil {
			return err
		}
		if mode == sandbox.ModeUnmanaged {
			report(Metric{Name: "spoof_control", Value: fmt.Sprint(passed), Bound: ">=1", OK: passed > 0})
			continue
		}
		report(atMost("spoof_passed", passed, 0))
	}
	return measureWindow(ctx, s, m, report)
}

// measureWindow counts what gets out of a container that tries from its first instant on, over its start, a restart and
// a change of its mode.
func measureWindow(ctx context.Context, s *stage, m *sandbox.Manager, report func(Metric)) error {
	const forbidden = "192.168.77.7"
	hammer := fmt.Sprintf("for i in $(seq 1000); do timeout 0.2 bash -c ': <>/dev/tcp/%s/443' 2>/dev/null; done", forbidden)
	count := func(mode sandbox.NetworkMode, proof sandbox.Proof, hostname string) (int, error) {
		spec := s.spec(hostname, mode)
		spec.Network.Proof = proof
		spec.VMID = lab.VMIDFirst + 500
		if mode == sandbox.ModeUnmanaged {
			spec.VMID++
		}
		hammering, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { // from before there is such a container
			defer close(done)
			for hammering.Err() == nil {
				if err := matrix.Run(hammering, s.lab, spec.VMID, hammer); err != nil {
					select {
					case <-hammering.Done():
					case <-time.After(time.Millisecond):
					}
				}
			}
		}()
		defer func() { stop(); <-done }()
		out, err := m.Create(ctx, spec, nil)
		if err != nil {
			return 0, err
		}
		if mode != sandbox.ModeUnmanaged {
			stopped, web := spec.Clone(), spec.Clone()
			stopped.Started, web.Network.Mode = false, sandbox.ModeWeb
			was := spec
			for _, to := range []sandbox.Spec{stopped, spec, web} {
				if out, err = m.Update(ctx, sandbox.Prior{Ref: out.Sandbox.Ref, Baseline: &out.Sandbox.Posture}, was, to); err != nil {
					return 0, err
				}
				was = to
			}
		}
		contacts, err := s.lab.Contacts(ctx)
		n := 0
		for _, c := range contacts {
			if c.Source.Addr() == out.Sandbox.IPv4 && strings.HasPrefix(c.Dest.String(), forbidden+":") {
				n++
			}
		}
		return n, err
	}
	control, err := count(sandbox.ModeUnmanaged, "", "window-control")
	if err != nil {
		return err
	}
	report(Metric{Name: "window_control", Value: fmt.Sprint(control), Bound: ">=1", OK: control > 0})
	n, err := count(sandbox.ModeNAT, sandbox.ProofGuarded, "window")
	if err != nil {
		return err
	}
	report(atMost("window_connections", n, 0))
	return nil
}
