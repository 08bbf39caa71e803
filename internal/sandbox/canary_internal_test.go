package sandbox

import (
	"bytes"
	"net/netip"
	"os/exec"
	"testing"
)

func TestAQuestionIsTheSameFromHereAndFromAShell(t *testing.T) {
	t.Parallel()
	for _, port := range []uint16{portDNS, portNTP, 9999} {
		want := datagram(question(port))
		if port == portNTP && len(want) != 48 || port == portDNS && len(want) != 17 {
			t.Errorf("port %d: %d bytes", port, len(want))
		}
		for _, shell := range []string{"sh", "bash"} {
			got, err := exec.CommandContext(t.Context(), shell, "-c", `printf "$1"`, shell, question(port)).Output()
			if err != nil {
				t.Skipf("no %s here: %v", shell, err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("port %d: %s sends %x, we send %x", port, shell, got, want)
			}
		}
		if bytes.ContainsRune(want, '\n') {
			t.Errorf("port %d: bash would send the question in parts", port)
		}
	}
}

func TestATwinIsTheAddressOfATranslator(t *testing.T) {
	t.Parallel()
	if got := twin(netip.MustParseAddrPort("192.0.2.33:443")).String(); got != "[64:ff9b::c000:221]:443" { // RFC 6052, 2.4
		t.Error(got)
	}
}
