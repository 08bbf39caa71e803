package redact_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
)

func TestKnownValuesGoInEveryForm(t *testing.T) {
	t.Parallel()
	const secret = "correct horse/battery"
	key := "-----BEGIN X-----\nb25lbGluZW9mdGhla2V5\n-----END X-----"
	r := redact.New(secret, key, "abc")
	in := strings.Join([]string{
		secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), "b25lbGluZW9mdGhla2V5", "abcdef stays",
	}, "\n")
	got := r.Text(in)
	for _, gone := range []string{"horse", "b25lbGluZW9mdGhla2V5", "Y29ycmVjdC"} {
		if strings.Contains(got, gone) {
			t.Errorf("%q is still in\n%s", gone, got)
		}
	}
	if !strings.Contains(got, "abcdef stays") {
		t.Errorf("a value too short to look for tore up a word:\n%s", got)
	}
}

func TestWhatLooksLikeASecretGoesAndTheRestStays(t *testing.T) {
	t.Parallel()
	r := redact.New()
	for in, want := range map[string]string{
		"password=hunter2 user=bob":                                                        "password=[redacted] user=bob",
		`{"api_key": "a b\"c", "n": 1}`:                                                    `{"api_key": [redacted], "n": 1}`,
		"MY_SECRET_KEY='x y' next":                                                         "MY_SECRET_KEY=[redacted] next",
		"curl --token abc123 http://h":                                                     "curl --token [redacted] http://h",
		"git clone https://bob:pw@host/x":                                                  "git clone https://bob:[redacted]@host/x",
		"Authorization: Bearer abc.def":                                                    "Authorization: [redacted]",
		"PVEAPIToken=a@pve!t=11111111-2222-3333":                                           "PVEAPIToken=[redacted]",
		"got ghp_abcdefghijklmnopqrstuvwx now":                                             "got [redacted] now",
		"key sk-" + strings.Repeat("ab1", 8) + " end":                                      "key [redacted] end",
		"a\n-----BEGIN OPENSSH PRIVATE KEY-----\nAA\n-----END OPENSSH PRIVATE KEY-----\nb": "a\n[redacted]\nb",
		"-----BEGIN PRIVATE KEY-----\ncut off":                                             "[redacted]",
		"net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:9E:06:AD":                            "net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:9E:06:AD",
		"sshd[12]: Accepted publickey for root":                                            "sshd[12]: Accepted publickey for root",
		"rootfs: local-btrfs:200/vm-200-disk-0.raw":                                        "rootfs: local-btrfs:200/vm-200-disk-0.raw",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}
