package sandbox

import (
	"net/netip"
	"strings"
	"testing"
)

// What a kernel shows of an SSH login, two connections and a resolver's socket (recorded from Linux 6.18, addresses
// changed).
const recordedTables = `# 1 tcp
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 00014D0A:0016 01004D0A:C350 01 00000000:00000000 02:000A7214 00000000     0        0 2 2 0 20 4 31 10 -1
   2: 00014D0A:BEEF 0A32A8C0:01BB 01 00000000:00000000 02:000A7214 00000000     0        0 3 2 0 20 4 31 10 -1
   3: 00014D0A:BEF0 0A32A8C0:01BB 06 00000000:00000000 03:000004B3 00000000     0        0 0 3 0
   4: 00014D0A:BEF2 0A32A8C0:01BB 02 00000000:00000001 01:000004B3 00000003     0        0 9 2 0
   5: 0100007F:BEF1 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
# 1 tcp6
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 770000FD000000000000000009000000:BEEF B80D0120000000000000000001000000:01BB 01 00000000:00000000 00:00000000 00000000     0        0 5 1 0
# 1 udp
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  100: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 6 2 0 0
  101: 00000000:A2E9 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 7 2 0 0
# 77 tcp
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 020011AC:0016 0A32A8C0:0016 01 00000000:00000000 00:00000000 00000000     0        0 8 1 0
`

func TestTheKernelsTablesOfSocketsAreRead(t *testing.T) {
	t.Parallel()
	flows, err := parseFlows(recordedTables)
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort
	want := []flow{
		{"1", "tcp", address("10.77.1.0:22"), address("10.77.0.1:50000"), true},
		{"1", "tcp", address("10.77.1.0:48879"), address("192.168.50.10:443"), false},
		{"1", "tcp", address("[fd00:77::9]:48879"), address("[2001:db8::1]:443"), false},
		{"1", "udp", address("0.0.0.0:41705"), address("0.0.0.0:0"), false},
		{"77", "tcp", address("172.17.0.2:22"), address("192.168.50.10:22"), false}, // no one listens there: it began here
	}
	if len(flows) != len(want) {
		t.Fatalf("%d flows: %+v", len(flows), flows)
	}
	for i := range want {
		if flows[i] != want[i] {
			t.Errorf("flow %d is %+v, want %+v", i, flows[i], want[i])
		}
	}
}

func TestTablesThatCantBeReadAreNoProofThatNothingIsOpen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "cat: permission denied\n", strings.Replace(recordedTables, "0A32A8C0:01BB", "garbage", 1)} {
		if flows, err := parseFlows(text); err == nil {
			t.Errorf("%.40q gives %v", text, flows)
		}
	}
}
