package sshkey_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestEachOpenMakesAKeyPairOfItsOwn(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	seen := map[string]bool{}
	for range 3 {
		key := server.MustOpen(t, "sandbox_ssh_key", protocoltest.Values{"comment": "agent@ci"})
		signer, err := ssh.ParsePrivateKey([]byte(key.Text(t, "private_key")))
		if err != nil {
			t.Fatal(err)
		}
		public, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(key.Text(t, "public_key")))
		if err != nil || comment != "agent@ci" || string(public.Marshal()) != string(signer.PublicKey().Marshal()) || public.Type() != "ssh-ed25519" {
			t.Errorf("%q, %v", key.Text(t, "public_key"), err)
		}
		if got := key.Text(t, "fingerprint"); got != ssh.FingerprintSHA256(public) || seen[got] {
			t.Errorf("fingerprint %s", got)
		}
		seen[key.Text(t, "fingerprint")] = true
		if strings.Contains(key.Private(), "PRIVATE") {
			t.Error("the key stands in the private data")
		}
	}
	if _, diags := server.Open(t, "sandbox_ssh_key", protocoltest.Values{"comment": "two\nlines"}); !protocoltest.HasErrors(diags) {
		t.Error("a comment of two lines was accepted")
	}
}
