package examples

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// canary is a secret whose way is followed.
type canary struct {
	name, value string
	// inGuest says where in the guest it may be found: "" is nowhere.
	inGuest string
}

// canaries are those of one test, with what finds them in whatever form.
type canaries struct {
	t     *testing.T
	all   []canary
	finds []*redact.Redactor
}

func (c *canaries) add(name, value, inGuest string) string {
	c.all = append(c.all, canary{name, value, inGuest})
	c.finds = append(c.finds, redact.New(value))
	return value
}

// fresh makes a canary that nothing else can look like.
func (c *canaries) fresh(name, inGuest string) string {
	sum := sha256.Sum256([]byte(name + c.t.TempDir()))
	return c.add(name, "canary+"+name+"/"+hex.EncodeToString(sum[:8]), inGuest)
}

// in lists what a text holds of the canaries.
func (c *canaries) in(text string, legitimate func(canary) bool) []string {
	var found []string
	for i, one := range c.all {
		if legitimate != nil && legitimate(one) {
			continue
		}
		if c.finds[i].Known(text) != text || strings.Contains(text, one.value) {
			found = append(found, one.name)
		}
	}
	return found
}

// absent fails for what a text holds.
func (c *canaries) absent(where, text string) {
	c.t.Helper()
	if found := c.in(text, nil); len(found) > 0 {
		c.t.Errorf("%s holds %v", where, found)
	}
}

// The detector is what all depends on: it must find each form, or the test proves nothing.
func (c *canaries) proveDetector() {
	c.t.Helper()
	for _, one := range c.all {
		line := strings.TrimSpace(strings.Split(one.value, "\n")[len(strings.Split(one.value, "\n"))/2])
		quoted, _ := json.Marshal(line)
		for how, text := range map[string]string{
			"plain": line, "JSON": string(quoted), "URL": url.QueryEscape(line), "hex": hex.EncodeToString([]byte(line)),
			"base64 0": base64.StdEncoding.EncodeToString([]byte(line)), "base64 1": base64.StdEncoding.EncodeToString([]byte("x" + line)), "base64 2": base64.URLEncoding.EncodeToString([]byte("xy" + line + "z")),
		} {
			if len(c.in("before "+text+" after", func(other canary) bool { return other.name != one.name })) == 0 {
				c.t.Fatalf("the detector doesn't see %s as %s", one.name, how)
			}
		}
	}
}

// recorder is a server in front of the API that keeps every request and answer, bodies too, without the header that
// logs in.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen bytes.Buffer
	n    int
}

func record(t *testing.T, endpoint string) *recorder {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: false}
	proxy.ModifyResponse = func(res *http.Response) error {
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(body))
		r.keep("answer %s\n%s\n", res.Status, body)
		return err
	}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		headers := req.Header.Clone()
		headers.Del("Authorization")
		r.keep("%s %s\n%v\n%s\n", req.Method, req.URL, headers, body)
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) keep(format string, values ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	fmt.Fprintf(&r.seen, format, values...)
}

func (r *recorder) text() (string, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen.String(), r.n
}

func (r *recorder) fingerprint() string {
	sum := sha256.Sum256(r.Certificate().Raw)
	return hex.EncodeToString(sum[:])
}

// mint is as much of Tailscale's API as one key needs.
func mint(t *testing.T, key string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "k1", "key": key, "expires": time.Now().Add(time.Minute)})
	}))
	t.Cleanup(s.Close)
	return s
}

const canaryConfig = `
terraform {
  required_providers {
    sandbox = { source = "agentsandbox/sandbox" }
  }
}
provider "sandbox" {}
variable "secrets" {}
variable "mint" {}
variable "log" {}
variable "mode" { default = {} }
variable "join" { default = false }
ephemeral "sandbox_secrets" "s" {
  environment = ["CANARY_ENVIRONMENT"]
  file        = { path = var.secrets }
}
data "sandbox_secrets" "s" {
  environment = ["CANARY_ENVIRONMENT"]
  file        = { path = var.secrets }
}
ephemeral "sandbox_ssh_key" "k" {}
ephemeral "sandbox_tailscale_key" "t" {
  base_url = var.mint
}
resource "sandbox_container" "box" {
  hostname                   = "canary"
  network                    = var.mode
  authorized_keys_wo         = [ephemeral.sandbox_secrets.s.values["AUTHORIZED"], ephemeral.sandbox_ssh_key.k.public_key]
  authorized_keys_wo_version = 1
  tailscale = var.join ? { auth_key_wo = ephemeral.sandbox_tailscale_key.t.key, auth_key_wo_version = 1 } : null
}
resource "sandbox_file" "tailscale" {
  for_each     = toset(["tailscale", "tailscaled"])
  container_id = sandbox_container.box.id
  path         = "/usr/local/bin/${each.key}"
  mode         = "0755"
  content      = "#!/bin/sh\ncase $1 in status) [ -e /run/tailscaled.up ] ;; up) : ;; *) touch /run/tailscaled.up ;; esac\n"
}
resource "sandbox_file" "secret" {
  container_id       = sandbox_container.box.id
  path               = "/run/canary/file"
  content_wo         = ephemeral.sandbox_secrets.s.values["FILE"]
  content_wo_version = data.sandbox_secrets.s.version
}
# Unknown in the first plan, where it is left to the apply; known in the second.
ephemeral "sandbox_port_forward" "f" {
  container_id = sandbox_container.box.id
  port         = 22
}
resource "sandbox_file" "forward" {
  container_id       = sandbox_container.box.id
  path               = "/run/canary/forward"
  content_wo         = ephemeral.sandbox_port_forward.f.address
  content_wo_version = 1
}
resource "sandbox_agent_run" "run" {
  container_id       = sandbox_container.box.id
  command            = <<-EOT
    set -e
    cd "$HOME"
    [ -n "$FROM_ENVIRONMENT" ] && [ -n "$FROM_FILE" ] && echo "secrets: both"
    printf '%s\n' "$FROM_ENVIRONMENT" "$FROM_FILE"
    printf '%s' "$FROM_ENVIRONMENT" | base64
    printf 'xx%s' "$FROM_FILE" | base64
    ps -eo args > "$HOME/processes" 2>&1 || true
    for p in /proc/[0-9]*; do cat "$p/cmdline" 2>/dev/null || true; echo; done >> "$HOME/processes"
  EOT
  secrets_wo         = { FROM_ENVIRONMENT = ephemeral.sandbox_secrets.s.values["CANARY_ENVIRONMENT"], FROM_FILE = ephemeral.sandbox_secrets.s.values["RUN"] }
  secrets_wo_version = data.sandbox_secrets.s.version
  log_file           = var.log
  timeout            = "2m"
}
output "fingerprints" { value = data.sandbox_secrets.s.fingerprints }
`

// TestSecretsCanary follows secrets along their whole way, and looks wherever they must not be: state, plan, what the command
// line shows, its log at TRACE, every request to the API and its answer, the server's tasks and configurations, every file of
// the guest outside its memory file systems (and those too, after the run, but for the file that was put there), and
// what ran. It looks for every form of them.
func TestSecretsCanary(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	c := &canaries{t: t}
	private, err := env.PrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	// The first lines of every OpenSSH key without a passphrase are the same, and then its public half follows.
	lines := strings.Split(strings.TrimSpace(private), "\n")
	c.add("the guests' private key", strings.Join(lines[min(3, len(lines)-2):len(lines)-1], "\n"), "")
	if _, uuid, ok := strings.Cut(env.APIToken, "="); ok {
		c.add("the API token", uuid, "")
	}
	dir := t.TempDir()
	secretsFile := filepath.Join(dir, "secrets.env")
	content := fmt.Sprintf("FILE='%s'\nRUN='%s'\nAUTHORIZED='%s %s'\n", c.fresh("file", "/run/canary/file"), c.fresh("run", ""), env.SSH.PublicKey, c.fresh("authorized", "/root/.ssh/authorized_keys"))
	if err := os.WriteFile(secretsFile, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := c.fresh("environment", "")
	apiKey := c.fresh("tailscale-api", "")
	tailscaleKey := c.fresh("tailscale-key", "")
	c.proveDetector()

	front := record(t, env.Endpoint)
	variables := env.Variables()
	variables["SANDBOX_ENDPOINT"], variables["SANDBOX_FINGERPRINT"] = front.URL, front.fingerprint()
	delete(variables, "SANDBOX_CA_FILE")
	delete(variables, "SANDBOX_INSECURE")
	variables["CANARY_ENVIRONMENT"], variables["TAILSCALE_API_KEY"] = environment, apiKey

	config := filepath.Join(dir, "source")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	given := map[string]any{"secrets": secretsFile, "mint": mint(t, tailscaleKey).URL, "log": filepath.Join(dir, "run.log")}
	if !env.Firewalled(t) {
		given["mode"] = map[string]any{"mode": "unmanaged"}
	}
	asJSON, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"main.tf": canaryConfig, "given.auto.tfvars.json": string(asJSON)} {
		if err := os.WriteFile(filepath.Join(config, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	work := t.TempDir()
	var said bytes.Buffer
	workspace, err := acctest.CommandLine(t).NewWorkspace(tfcli.WorkspaceOptions{Config: config, Dir: work, ProviderDir: providerDir(t), Environment: variables, Stdout: &said})
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "trace.log")
	for _, err := range []error{workspace.SetLogPath(trace), workspace.SetLog("TRACE")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	destroyed := false
	t.Cleanup(func() {
		if !destroyed {
			if err := workspace.Destroy(context.WithoutCancel(ctx)); err != nil {
				t.Log(err, said.String())
			}
		}
	})
	for _, join := range []string{"false", "true"} { // first what stands for tailscale, then the joining
		plan := filepath.Join(workspace.Dir, "plan-"+join)
		if _, err := workspace.Plan(ctx, tfexec.Out(plan), tfexec.Var("join="+join)); err != nil {
			t.Fatalf("plan: %v\n%s", err, said.String())
		}
		shown, err := workspace.ShowPlanFileRaw(ctx, plan)
		if err != nil {
			t.Fatal(err)
		}
		c.absent("terraform show of the plan", shown)
		if err := workspace.Apply(ctx, tfexec.DirOrPlan(plan)); err != nil {
			t.Fatalf("apply: %v\n%s", err, said.String())
		}
	}
	state, err := workspace.Show(ctx)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"secrets: both", redact.Mark} {
		if !strings.Contains(string(encoded), want) {
			t.Errorf("%q isn't in the state: the run didn't get its secrets, or its output wasn't looked through:\n%s", want, encoded)
		}
	}
	c.absent("terraform show", string(encoded))
	c.absent("what the command line said", said.String())
	c.inFolder(work)
	c.inFile(trace, 100_000)
	c.inFile(filepath.Join(dir, "run.log"), 10)
	requests, n := front.text()
	if n < 20 {
		t.Errorf("only %d requests and answers were seen", n)
	}
	c.absent("the requests to the API, or their answers", requests)
	if state.Values.Outputs["fingerprints"] == nil {
		t.Error("the fingerprints aren't shown")
	}
	c.inGuest(env)

	if err := workspace.Destroy(ctx); err != nil {
		t.Fatalf("destroy: %v\n%s", err, said.String())
	}
	destroyed = true
	c.inFolder(work)
	c.inFile(trace, 100_000)
	if env.Lab != nil {
		dump, err := env.Lab.Control.Dump(ctx)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(dump)
		if err != nil {
			t.Fatal(err)
		}
		c.absent("the server's tasks and configurations", strings.ReplaceAll(string(text), env.APIToken[strings.IndexByte(env.APIToken, '=')+1:], ""))
	}
}

// inFile looks through a file that must have at least so many bytes.
func (c *canaries) inFile(name string, least int) {
	c.t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(text) < least {
		c.t.Errorf("%s has %d bytes: it isn't what was to be looked through", name, len(text))
	}
	c.absent(filepath.Base(name), string(text))
}

// inFolder looks through every file of a folder, and into what is packed in a plan.
func (c *canaries) inFolder(dir string) {
	c.t.Helper()
	plans := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c.absent(path, string(content))
		packed, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil //nolint:nilerr // not packed
		}
		plans++
		for _, f := range packed.File {
			r, err := f.Open()
			if err != nil {
				return err
			}
			inside, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			c.absent(path+", "+f.Name, string(inside))
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if plans == 0 {
		c.t.Error("no plan file was looked into")
	}
}

// inGuest looks through the container's disk, its memory file systems and its processes.
func (c *canaries) inGuest(env *acctest.Environment) {
	c.t.Helper()
	if env.Lab == nil {
		c.inRealGuest(env)
		return
	}
	ctx := c.t.Context()
	for _, id := range env.Lab.Engine().List() {
		if id < env.VMIDs.First || id > env.VMIDs.Last {
			continue
		}
		var disk bytes.Buffer
		if err := env.Lab.Engine().Export(ctx, id, "", &disk); err != nil {
			c.t.Fatal(err)
		}
		if disk.Len() < 10_000 || !strings.Contains(disk.String(), "processes") {
			c.t.Errorf("the disk has %d bytes, or the list of processes isn't on it", disk.Len())
		}
		if found := c.in(disk.String(), func(one canary) bool { return one.inGuest == "/root/.ssh/authorized_keys" }); len(found) > 0 {
			c.t.Errorf("the container's disk holds %v", found)
		}
	}
	c.inRealGuest(env)
}

// inRealGuest asks the container itself: each file of its memory file systems, and of its disk where there is no other way.
func (c *canaries) inRealGuest(env *acctest.Environment) {
	c.t.Helper()
	settings := env.Settings()
	pool, err := guest.NewPool(settings.Guest)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	target := guest.Target{ID: strconv.Itoa(env.VMIDs.First), Address: env.Addresses.First.String()}
	folders := "/run /tmp /dev/shm /var/tmp"
	if env.Lab == nil {
		folders = "/run /tmp /dev/shm /etc /home /opt /root /srv /usr/local /var"
	}
	script := `for d in ` + folders + `; do find "$d" -type f 2>/dev/null; done | while read -r f; do echo "== $f"; cat "$f" 2>/dev/null; echo; done; echo "== processes"; for p in /proc/[0-9]*; do cat "$p/cmdline" "$p/environ" 2>/dev/null | tr '\0' ' '; echo; done`
	result, err := pool.Exec(c.t.Context(), target, guest.Command{Script: script, StdoutLimit: 256 << 20})
	if err != nil || result.ExitCode != 0 || !strings.Contains(string(result.Stdout), "== /run/canary/file") || !strings.Contains(string(result.Stdout), "== processes") {
		c.t.Fatalf("the container can't be looked through: %d, %v, %s", result.ExitCode, err, result.Stderr)
	}
	if !strings.Contains(string(result.Stdout), "== /run/canary/forward\n127.0.0.1:") {
		c.t.Error("the tunnel's address isn't in the container: it wasn't open in the apply")
	}
	for _, part := range strings.Split(string(result.Stdout), "\n== ") {
		name, text, _ := strings.Cut(strings.TrimPrefix(part, "== "), "\n")
		if found := c.in(text, func(one canary) bool { return one.inGuest == name }); len(found) > 0 {
			c.t.Errorf("in the container, %s holds %v", name, found)
		}
	}
}
