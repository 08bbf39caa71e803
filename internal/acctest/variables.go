package acctest

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/target"
)

// Variable names of a real server, all with the prefix SANDBOX_ACC_. CONTRIBUTING.md says what the server must have.
const (
	varEndpoint     = "ENDPOINT"            // https://host:8006; its presence selects the real server
	varToken        = "TOKEN"               // user@realm!name=uuid
	varUsername     = "USERNAME"            // with PASSWORD instead of TOKEN
	varPassword     = "PASSWORD"            //
	varFingerprint  = "FINGERPRINT"         // SHA-256 of a self-signed certificate (as first seen if unset); or
	varCAFile       = "CA_FILE"             // PEM
	varInsecure     = "INSECURE"            // true: certificate not verified
	varNode         = "NODE"                // one, or several with commas: the first has the template
	varTemplateID   = "TEMPLATE_ID"         // carries the public half of SSH_KEY_FILE
	varTemplateFile = "TEMPLATE_FILE"       // local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst
	varStorage      = "STORAGE"             // for root disks
	varBackups      = "BACKUP_STORAGE"      // for backups; local if unset
	varBridge       = "BRIDGE"              // vmbr0
	varAddressRange = "ADDRESS_RANGE"       // cidr,first[,gateway]: 10.77.0.0/16,10.77.1.0,10.77.0.1
	varVMIDRange    = "VMID_RANGE"          // first-last, at least 20 ids
	varSSHKeyFile   = "SSH_KEY_FILE"        // private key, OpenSSH format, no passphrase
	varProxyJump    = "PROXY_JUMP"          // user@host[:port], optional
	varManagement   = "MANAGEMENT_CIDRS"    // with commas: where guests see us come from; with PROXY_JUMP needed for network modes
	varJumpHostKey  = "PROXY_JUMP_HOST_KEY" // ssh-ed25519 AAAA…; as first seen if unset
)

const prefix = "SANDBOX_ACC_"

// onRealServer says whether the tests run against a server that the user named.
func onRealServer() bool { return os.Getenv(prefix+varEndpoint) != "" }

// fromVariables reads the description of a real server, and fails the test with everything that is missing or wrong at once.
func fromVariables(t testing.TB) *Environment {
	t.Helper()
	r := reader{}
	env := &Environment{Target: target.Target{
		Endpoint:     r.required(varEndpoint),
		APIToken:     r.optional(varToken),
		Username:     r.optional(varUsername),
		Password:     r.optional(varPassword),
		Fingerprint:  r.optional(varFingerprint),
		CAFile:       r.optional(varCAFile),
		Insecure:     r.optional(varInsecure) == "true" || r.optional(varInsecure) == "1",
		Nodes:        strings.Split(r.required(varNode), ","),
		TemplateID:   r.number(varTemplateID, r.required(varTemplateID)),
		TemplateFile: r.required(varTemplateFile),
		Storage:      r.required(varStorage),
		Backups:      cmp.Or(r.optional(varBackups), "local"),
		Bridge:       r.required(varBridge),
		VMIDs:        r.vmidRange(),
		Addresses:    r.addressRange(),
		SSH:          r.ssh(),
		Management:   r.management(),
	}}
	if env.Fingerprint == "" && env.CAFile == "" && !env.Insecure && env.Endpoint != "" {
		env.Fingerprint = fingerprint(env.Endpoint)
	}
	if env.APIToken == "" && (env.Username == "" || env.Password == "") {
		r.complain(varToken, "or "+prefix+varUsername+" and "+prefix+varPassword+" must be set")
	}
	if len(r.problems) > 0 {
		t.Fatalf("the acceptance environment is incomplete (CONTRIBUTING.md says what it must have):\n  %s", strings.Join(r.problems, "\n  "))
	}
	return env
}

// reader collects what is wrong with the variables, so that a user mends them in one go.
type reader struct{ problems []string }

func (r *reader) complain(name, problem string) {
	r.problems = append(r.problems, prefix+name+" "+problem)
}

func (r *reader) optional(name string) string { return strings.TrimSpace(os.Getenv(prefix + name)) }

func (r *reader) required(name string) string {
	value := r.optional(name)
	if value == "" {
		r.complain(name, "is not set")
	}
	return value
}

func (r *reader) number(name, value string) int {
	n, err := strconv.Atoi(value)
	if err != nil && value != "" {
		r.complain(name, fmt.Sprintf("is not a number: %q", value))
	}
	return n
}

func (r *reader) vmidRange() target.VMIDRange {
	value := r.required(varVMIDRange)
	first, last, _ := strings.Cut(value, "-")
	ids := target.VMIDRange{First: r.number(varVMIDRange, first), Last: r.number(varVMIDRange, last)}
	if value != "" && ids.Last-ids.First+1 < idsPerTest {
		r.complain(varVMIDRange, fmt.Sprintf("must be first-last with at least %d ids: %q", idsPerTest, value))
	}
	return ids
}

func (r *reader) addressRange() target.AddressRange {
	value := r.required(varAddressRange)
	if value == "" {
		return target.AddressRange{}
	}
	parts := strings.Split(value, ",")
	if len(parts) < 2 || len(parts) > 3 {
		r.complain(varAddressRange, fmt.Sprintf("must be cidr,first[,gateway]: %q", value))
		return target.AddressRange{}
	}
	var a target.AddressRange
	var err error
	if a.CIDR, err = netip.ParsePrefix(parts[0]); err != nil {
		r.complain(varAddressRange, "cidr: "+err.Error())
	}
	if a.First, err = netip.ParseAddr(parts[1]); err != nil {
		r.complain(varAddressRange, "first: "+err.Error())
	}
	if len(parts) == 3 {
		if a.Gateway, err = netip.ParseAddr(parts[2]); err != nil {
			r.complain(varAddressRange, "gateway: "+err.Error())
		}
	}
	return a
}

func (r *reader) management() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range strings.FieldsFunc(r.optional(varManagement), func(c rune) bool { return c == ',' }) {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			r.complain(varManagement, err.Error())
			continue
		}
		all = append(all, prefix)
	}
	return all
}

func (r *reader) ssh() target.SSH {
	s := target.SSH{Username: "root", PrivateKeyFile: r.required(varSSHKeyFile), ProxyJump: r.proxyJump()}
	if s.PrivateKeyFile == "" {
		return s
	}
	content, err := os.ReadFile(s.PrivateKeyFile)
	if err != nil {
		r.complain(varSSHKeyFile, "can't be read: "+err.Error())
		return s
	}
	key, err := ssh.ParsePrivateKey(content)
	if err != nil {
		r.complain(varSSHKeyFile, "is no private key without passphrase: "+err.Error())
		return s
	}
	s.PublicKey = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	return s
}

func (r *reader) proxyJump() *target.ProxyJump {
	value := r.optional(varProxyJump)
	if value == "" {
		return nil
	}
	user, address, ok := strings.Cut(value, "@")
	if !ok {
		r.complain(varProxyJump, fmt.Sprintf("must be user@host[:port]: %q", value))
		return nil
	}
	jump := &target.ProxyJump{Username: user, Host: address, Port: 22, HostKey: r.optional(varJumpHostKey)}
	if host, port, err := net.SplitHostPort(address); err == nil {
		jump.Host, jump.Port = host, r.number(varProxyJump, port)
	}
	if jump.HostKey == "" {
		var err error
		if jump.HostKey, err = hostKey(net.JoinHostPort(jump.Host, strconv.Itoa(jump.Port))); err != nil {
			r.complain(varProxyJump, "shows no host key: "+err.Error())
		}
	}
	return jump
}

// newOwner makes an owner that no other run has: leftovers are told apart by it.
func newOwner() string {
	var id [5]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand
	return "acc-" + hex.EncodeToString(id[:])
}
