package audit

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var secretChecks = []check{
	{Check: Check{ID: "G13.1", Title: "Secrets have a place in memory", Severity: Medium, How: "/etc/tmpfiles.d, and the mounts of a running system",
		Remedy: "A line in tmpfiles.d that makes /run/sandbox at boot, on the tmpfs that /run is: secrets of a run go there, and are gone when the power is."},
		guest: checkTmpfs},
	{Check: Check{ID: "G13.2", Title: "No secret is at rest", Severity: Critical, Cap: GradeF, How: "contents of settings, homes and data, and names of files that hold credentials",
		Remedy: "Remove it, and revoke it: whoever had the image has the secret. Secrets reach a sandbox by secrets_wo, in memory, for the life of a run."},
		guest: checkSecrets},
	{Check: Check{ID: "G15", Title: "Logs, histories and caches of the build are gone", Severity: Low, How: "/var/log, /var/cache, /tmp and the homes",
		Remedy: "Empty them before sealing: they tell who built what with which mirrors, and make every clone larger."},
		guest: checkLeftovers},
}

// secretFolders are where secrets are looked for. What packages bring into /usr is
// full of examples that look like some.
var secretFolders = []string{"etc", "root", "home", "srv", "opt", "tmp", "var/tmp", "var/lib/cloud", "var/www", "var/backups", "var/spool", "var/log", "usr/local/etc", "mnt", "media", "workspace"}

// secretFiles are names, or ends of paths, of files that hold credentials and have
// no business in an image.
var secretFiles = []struct{ suffix, kind string }{
	{"/.claude/.credentials.json", "login of Claude Code"}, {"/.codex/auth.json", "login of Codex"}, {"/.gemini/oauth_creds.json", "login of Gemini"},
	{"/.config/gh/hosts.yml", "login of GitHub's command line"}, {"/.config/gcloud/credentials.db", "login of gcloud"}, {"/.config/gcloud/application_default_credentials.json", "login of gcloud"},
	{"/.aws/credentials", "AWS credentials"}, {"/.azure/msal_token_cache.json", "Azure token"}, {"/.git-credentials", "git credentials"}, {"/.netrc", "netrc"}, {"/.pgpass", "PostgreSQL passwords"},
	{"/.kube/config", "Kubernetes credentials"}, {"/.local/share/opencode/auth.json", "login of OpenCode"}, {"/.pi/agent/auth.json", "login of Pi"},
	{"/.vault-token", "Vault token"}, {"/.terraform.d/credentials.tfrc.json", "Terraform credentials"}, {"/.cargo/credentials.toml", "crates.io token"},
}

// secretForms are texts that are secrets. plain is a part that each has: a file
// without it isn't searched.
var secretForms = []struct {
	kind  string
	plain string
	form  *regexp.Regexp
}{
	{"Anthropic key", "sk-ant-", regexp.MustCompile(`sk-ant-[A-Za-z0-9_-]{20,}`)},
	{"OpenAI key", "sk-", regexp.MustCompile(`\bsk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}`)},
	{"GitHub token", "gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,}`)},
	{"GitHub token", "github_pat_", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{40,}`)},
	{"GitLab token", "glpat-", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{"AWS key", "AKIA", regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"Google key", "AIza", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`)},
	{"Slack token", "xox", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{10,}`)},
	{"npm token", "npm_", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}`)},
	{"npm token", "_auth", regexp.MustCompile(`(?m)^[^#;\n]*:?_(?:authToken|auth|password)\s*=\s*[^\s$]{8,}`)},
	{"PyPI token", "pypi-", regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{50,}`)},
	{"Tailscale key", "tskey-", regexp.MustCompile(`\btskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}`)},
	{"Hugging Face token", "hf_", regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`)},
	{"age key", "AGE-SECRET-KEY-", regexp.MustCompile(`AGE-SECRET-KEY-1[0-9A-Z]{50,}`)},
	{"Proxmox VE token", "PVEAPIToken", regexp.MustCompile(`PVEAPIToken=[^\s!]+![^\s=]+=[0-9a-f-]{36}`)},
	{"private key", "PRIVATE KEY-----", regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----`)},
	{"key in an environment file", "_", regexp.MustCompile(`(?m)^(?:export )?[A-Z][A-Z0-9_]*(?:API_KEY|SECRET|TOKEN|PASSWORD|SECRET_KEY)\s*=\s*["']?[^\s"'$<]{12,}`)},
	{"password in an address", "://", regexp.MustCompile(`\b(?:https?|postgres(?:ql)?|mysql|redis|mongodb(?:\+srv)?)://[^\s/:@"'$<{]+:[^\s/@"'$<{]{6,}@`)},
}

// environmentFiles are the names in which a line NAME_TOKEN=… is a secret; in
// other files such lines are code.
func environmentFile(name string) bool {
	base := path.Base(name)
	return base == "environment" || base == ".env" || strings.HasPrefix(base, ".env.") && !strings.HasSuffix(base, ".example") && !strings.HasSuffix(base, ".sample") ||
		strings.HasSuffix(base, ".env") || strings.HasSuffix(base, "_history") || base == ".bashrc" || base == ".profile" || base == ".zshrc" || strings.Contains(name, "environment.d/") || strings.Contains(name, "profile.d/")
}

// knownPrivate are private keys that belong where they are.
func (g *system) knownPrivate(e entry) bool {
	base := path.Base(e.path)
	return path.Dir(e.path) == "etc/ssh" && strings.HasPrefix(base, "ssh_host_") || // G6
		path.Dir(e.path) == "etc/ssl/private" && base == "ssl-cert-snakeoil.key"
}

const (
	maxSecretFiles = 20_000
	maxSecretBytes = 256 << 20
	secretBatch    = 8 << 20 // bytes that are read at a time
)

func checkSecrets(g *system) verdict {
	const by = "contents of settings, homes and data, and names of files that hold credentials"
	if g.partial != "" {
		return unknown(by, g.partial)
	}
	var found []string
	var files []entry
	var total int64
	left := 0
	for _, dir := range secretFolders {
		for _, e := range g.under(dir) {
			if !e.mode.IsRegular() || e.size == 0 {
				continue
			}
			for _, s := range secretFiles {
				if strings.HasSuffix("/"+e.path, s.suffix) {
					found = append(found, fmt.Sprintf("/%s: %s", e.path, s.kind))
				}
			}
			if programText(e.path) {
				continue
			}
			if e.size > maxFile || len(files) >= maxSecretFiles || total+e.size > maxSecretBytes {
				if e.size <= maxFile || !skippedLarge(e.path) {
					left++
				}
				continue
			}
			files = append(files, e)
			total += e.size
		}
	}
	for len(files) > 0 {
		n, size := 0, int64(0)
		var names []string
		for n < len(files) && (n == 0 || size+files[n].size <= secretBatch) {
			size += files[n].size
			names = append(names, files[n].path)
			n++
		}
		contents, err := g.fetch(g.ctx, names, maxFile)
		if err != nil {
			return unknown(by, err.Error())
		}
		for _, e := range files[:n] {
			content, ok := contents[e.path]
			if !ok {
				left++
				continue
			}
			found = append(found, g.secretsIn(e, content)...)
		}
		files = files[n:]
	}
	slices.Sort(found)
	switch found = slices.Compact(found); {
	case len(found) > 0:
		return failed(by, found...)
	case left > 0:
		return unknown(by, fmt.Sprintf("%d files could not be searched: too many, too large or unreadable", left))
	}
	return passed(by, fmt.Sprintf("%d KiB searched", total>>10))
}

// programText says whether a file is part of an installed program, whose text is
// full of examples.
func programText(name string) bool {
	return strings.Contains(name, "/node_modules/") && path.Base(name) != ".npmrc" || strings.Contains(name, "/site-packages/") || strings.Contains(name, "/dist-packages/") ||
		strings.Contains(name, "/.git/objects/") || strings.HasPrefix(name, "etc/ssl/certs/")
}

// skippedLarge says whether a large file is of a kind that holds no text.
func skippedLarge(name string) bool {
	switch path.Ext(name) {
	case ".gz", ".xz", ".zst", ".bz2", ".zip", ".so", ".a", ".bin", ".db", ".sqlite", ".png", ".jpg", ".node", ".wasm", ".deb", ".whl", ".pack", ".journal", ".pdf", ".ttf", ".woff2":
		return true
	}
	return strings.HasPrefix(name, "opt/") // programs
}

// secretsIn names what was found, where, and never the secret.
func (g *system) secretsIn(e entry, content []byte) []string {
	if bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
		return nil // no text
	}
	var found []string
	for _, s := range secretForms {
		if !bytes.Contains(content, []byte(s.plain)) || s.kind == "key in an environment file" && !environmentFile(e.path) ||
			s.kind == "private key" && g.knownPrivate(e) {
			continue
		}
		for _, at := range s.form.FindAllIndex(content, 5) {
			match := content[at[0]:at[1]]
			if example(match) {
				continue
			}
			line := 1 + bytes.Count(content[:at[0]], []byte{'\n'})
			found = append(found, fmt.Sprintf("/%s line %d: %s", e.path, line, s.kind))
		}
	}
	return found
}

// example says whether what looks like a secret only shows its form: words of
// documentation, or one character over and over.
func example(match []byte) bool {
	lower := bytes.ToLower(match)
	for _, word := range []string{"example", "your", "xxxx", "placeholder", "changeme", "dummy", "0000000000", "1234567890"} {
		if bytes.Contains(lower, []byte(word)) {
			return true
		}
	}
	return false
}

func checkTmpfs(g *system) verdict {
	const by = "/etc/tmpfiles.d, and the mounts of a running system"
	made := false
	for _, dir := range []string{"etc/tmpfiles.d", "usr/lib/tmpfiles.d", "usr/local/lib/tmpfiles.d"} {
		for _, e := range g.children(dir) {
			for _, l := range g.lines(e.path) {
				if f := strings.Fields(l); len(f) >= 3 && strings.HasPrefix(f[0], "d") && f[1] == "/run/sandbox" {
					made = true
				}
			}
		}
		if made {
			break
		}
	}
	var found []string
	if !made && g.systemd() {
		found = append(found, "nothing makes /run/sandbox at boot")
	}
	if p, ok := g.probes["/proc/self/mounts"]; ok && g.running {
		kind := ""
		for line := range strings.Lines(p.out) {
			if f := strings.Fields(line); len(f) > 2 && (f[1] == "/run" || f[1] == "/run/sandbox") {
				kind = f[2]
			}
		}
		if kind != "tmpfs" && kind != "ramfs" {
			found = append(found, "/run is not in memory: "+kind)
		}
	}
	return judge(by, found)
}

// leftovers are what a build leaves: folders whose files go, and single files.
var (
	leftoverFolders = []string{"var/cache/apt/archives", "var/lib/apt/lists", "tmp", "var/tmp", "var/log/journal", "root/.cache", "root/.npm"}
	leftoverFiles   = []string{".bash_history", ".ash_history", ".zsh_history", ".python_history", ".lesshst", ".viminfo", ".wget-hsts", ".node_repl_history", ".sqlite_history", ".ssh/known_hosts"}
)

func checkLeftovers(g *system) verdict {
	const by = "/var/log, /var/cache, /tmp and the homes"
	if g.o.Stage != StageTemplate {
		return notApplicable("a running system has logs of its own")
	}
	if g.partial != "" {
		return unknown(by, g.partial)
	}
	var found []string
	for _, dir := range leftoverFolders {
		n, size := 0, int64(0)
		for _, e := range g.under(dir) {
			if e.mode.IsRegular() && e.size > 0 && path.Base(e.path) != "lock" && !strings.HasPrefix(path.Base(e.path), "sandbox-audit.") && !strings.Contains(e.path, "/sandbox-audit.") {
				n++
				size += e.size
			}
		}
		if n > 0 {
			found = append(found, fmt.Sprintf("/%s: %d files, %d KiB", dir, n, size>>10))
		}
	}
	for _, e := range g.under("var/log") {
		if e.mode.IsRegular() && e.size > 0 {
			found = append(found, fmt.Sprintf("/%s: %d bytes", e.path, e.size))
		}
	}
	for _, a := range g.accounts() {
		if a.uid != "0" && atoi(a.uid) < 1000 {
			continue
		}
		for _, name := range leftoverFiles {
			if e, ok := g.lstat(path.Join(a.home, name)); ok && e.size > 0 {
				found = append(found, "/"+e.path)
			}
		}
	}
	return judge(by, found)
}
