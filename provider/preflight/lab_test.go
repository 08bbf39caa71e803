package preflight_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/pveum"
)

// narrowToken makes a privilege-separated token without any right.
func narrowToken(t *testing.T, env *acctest.Environment) string {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(env.Lab.CAPEM()))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(client.CloseIdleConnections)
	root := pveum.CLI{Endpoint: env.Lab.Endpoint(), Token: env.Lab.Token(), HTTP: client}
	var out strings.Builder
	for _, line := range []string{"pveum user add narrow@pve", "pveum user token add narrow@pve tf --privsep 1 --output-format json"} {
		out.Reset()
		if err := root.Line(t.Context(), line, &out); err != nil {
			t.Fatal(err)
		}
	}
	var made struct{ Value string }
	if err := json.Unmarshal([]byte(out.String()), &made); err != nil {
		t.Fatal(err)
	}
	return "narrow@pve!tf=" + made.Value
}
