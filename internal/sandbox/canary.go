package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// parseCanary reads a listener that is tried from inside: "192.168.1.1:443" or
// "tcp://192.168.1.1:443", "udp://192.168.1.1:53".
func parseCanary(text string) (proto string, at netip.AddrPort, err error) {
	proto, address, found := strings.Cut(text, "://")
	if !found {
		proto, address = "tcp", text
	}
	if proto != "tcp" && proto != "udp" {
		return "", at, fmt.Errorf("%q is neither tcp nor udp", proto)
	}
	at, err = netip.ParseAddrPort(address)
	if err == nil && (at.Port() == 0 || at.Addr().Zone() != "") {
		err = fmt.Errorf("%q is no address with a port", address)
	}
	return proto, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), err
}

// nat64 is the prefix under which a translator reaches IPv4 from IPv6 (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// twin is an IPv4 address as a translator on the way would reach it by IPv6.
func twin(at netip.AddrPort) netip.AddrPort {
	b, four := nat64.Addr().As16(), at.Addr().As4()
	copy(b[12:], four[:])
	return netip.AddrPortFrom(netip.AddrFrom16(b), at.Port())
}

// Ports whose services answer only to their own questions.
const (
	portDNS = 53
	portNTP = 123
)

// question is a datagram that a listener at a UDP port answers, as octal escapes
// for printf: at 53 one for the root's name servers (RFC 1035), at 123 one for the
// time (RFC 5905), else a text.
func question(port uint16) string {
	switch port {
	case portDNS:
		return `\022\064\001\000\000\001\000\000\000\000\000\000\000\000\002\000\001`
	case portNTP:
		return `\033` + strings.Repeat(`\000`, 47)
	}
	return "sandbox"
}

// datagram is a question's bytes.
func datagram(question string) []byte {
	var out []byte
	for i := 0; i < len(question); i++ {
		if question[i] != '\\' {
			out = append(out, question[i])
			continue
		}
		var b byte
		for _, digit := range question[i+1 : i+4] {
			b = b<<3 + byte(digit-'0')
		}
		out = append(out, b)
		i += 3
	}
	return out
}

// answers says whether a listener answers a datagram from here. Nothing carries
// one over a jump host.
func answers(ctx context.Context, at netip.AddrPort) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "udp", at.String())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := conn.Write(datagram(question(at.Port()))); err != nil {
		return false
	}
	n, err := conn.Read(make([]byte, 512))
	return err == nil && n > 0
}

// askScript asks over UDP from inside. It takes four words for each target: a
// number, address, port and question; it prints "<number> open" or "<number>
// blocked", and nothing where there is no program to ask with. A lab's guests have
// a command probe that tells by the rules; it says so.
const askScript = `if command -v probe >/dev/null 2>&1; then
  echo simulated
  while [ $# -ge 4 ]; do
    case $(probe udp "$2" "$3") in open*) echo "$1 open" ;; blocked*) echo "$1 blocked" ;; esac
    shift 4
  done
  exit 0
fi
ask() {
  if command -v bash >/dev/null 2>&1; then
    got=$(timeout 3 bash -c 'exec 3<>"/dev/udp/$0/$1" && printf "$2" >&3 && timeout 1 head -c 1 <&3 | wc -c' "$2" "$3" "$4" 2>/dev/null) || got=0
  elif command -v python3 >/dev/null 2>&1; then
    got=$(printf "$4" | timeout 3 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
try:
    s.connect((sys.argv[1], int(sys.argv[2])))
    s.send(sys.stdin.buffer.read())
    print(len(s.recv(512)))
except OSError:
    print(0)
' "$2" "$3")
  elif command -v nc >/dev/null 2>&1; then
    got=$(printf "$4" | timeout 3 nc -u -w 1 "$2" "$3" 2>/dev/null | head -c 1 | wc -c)
  else
    return
  fi
  if [ "${got:-0}" -gt 0 ]; then echo "$1 open"; else echo "$1 blocked"; fi
}
while [ $# -ge 4 ]; do
  ask "$1" "$2" "$3" "$4" &
  shift 4
done
wait
`
