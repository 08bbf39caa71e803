//go:generate packer-sdc struct-markdown

// Package access is how the plugin reaches a Proxmox VE server: the settings, the environment's part of them, and the
// client and domain made of both.
package access

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/version"
)

// Config says which server and who we are there. Each field that is left out is taken from the environment: from the
// variables of the Proxmox plugin (PROXMOX_…), then from those of the Terraform provider (SANDBOX_…).
type Config struct {
	// The API's address, `https://pve.example.org:8006`, with or without `/api2/json`. Else `PROXMOX_URL` or `SANDBOX_ENDPOINT`.
	ProxmoxURL string `mapstructure:"proxmox_url" required:"true"`
	// `user@realm` for a login, `user@realm!name` for an API token. Else `PROXMOX_USERNAME` or `SANDBOX_USERNAME`; with
	// `SANDBOX_API_TOKEN` (`user@realm!name=uuid`) both `username` and `token` are set.
	Username string `mapstructure:"username" required:"true"`
	// The API token's secret (a UUID), or the whole token `user@realm!name=uuid`. Else `PROXMOX_TOKEN` or `SANDBOX_API_TOKEN`.
	Token string `mapstructure:"token"`
	// The login's password. Only a login as `root@pam` may set features other than nesting. Else `PROXMOX_PASSWORD` or
	// `SANDBOX_PASSWORD`.
	Password string `mapstructure:"password"`
	// The SHA-256 fingerprint of the server's certificate, which is then trusted and no other (Node, Certificates in the
	// web interface). Else `SANDBOX_FINGERPRINT`.
	Fingerprint string `mapstructure:"fingerprint"`
	// A PEM file with the certificate authority of the server's certificate (`/etc/pve/pve-root-ca.pem`). Else
	// `SANDBOX_CA_FILE`.
	CAFile string `mapstructure:"ca_file"`
	// Trust any certificate. Whoever sits on the way then gets the token. Else `SANDBOX_INSECURE`. Default: `false`.
	InsecureSkipTLSVerify bool `mapstructure:"insecure_skip_tls_verify"`
	// How long one task of the server may take (a download, a clone, a start). Default: `10m`.
	TaskTimeout time.Duration `mapstructure:"task_timeout"`
	// The namespace of the ownership marker in the template's description: only what carries it is ever replaced or
	// removed. Use the Terraform provider's. Else `SANDBOX_OWNER`. Default: `packer`.
	Owner string `mapstructure:"owner"`
}

// DefaultTaskTimeout is how long one task may take.
const DefaultTaskTimeout = 10 * time.Minute

// DefaultOwner marks templates where nobody says otherwise.
const DefaultOwner = "packer"

// getenv is the environment, first name first.
func getenv(names ...string) string {
	for _, name := range names {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// Prepare fills in what the environment says, hides the secrets in Packer's logs, and returns everything that is wrong.
// It sends no request.
func (c *Config) Prepare() (warnings []string, errs []error) {
	fill := func(field *string, names ...string) {
		if *field == "" {
			*field = getenv(names...)
		}
	}
	fill(&c.ProxmoxURL, "PROXMOX_URL", "SANDBOX_ENDPOINT", "PROXMOX_VE_ENDPOINT")
	fill(&c.Fingerprint, "SANDBOX_FINGERPRINT")
	fill(&c.CAFile, "SANDBOX_CA_FILE")
	fill(&c.Owner, "SANDBOX_OWNER")
	if c.Owner == "" {
		c.Owner = DefaultOwner
	}
	c.fillCredentials(fill)
	if !c.InsecureSkipTLSVerify {
		if v := getenv("SANDBOX_INSECURE", "PROXMOX_VE_INSECURE"); v != "" {
			insecure, err := strconv.ParseBool(v)
			if err != nil {
				errs = append(errs, fmt.Errorf("insecure_skip_tls_verify: SANDBOX_INSECURE is %q; it may be true or false", v))
			}
			c.InsecureSkipTLSVerify = insecure
		}
	}
	if c.TaskTimeout == 0 {
		c.TaskTimeout = DefaultTaskTimeout
	}
	for _, secret := range []string{c.Token, c.Password} {
		if secret != "" {
			packersdk.LogSecretFilter.Set(secret)
		}
	}
	errs = append(errs, c.check()...)
	if c.InsecureSkipTLSVerify {
		warnings = append(warnings, "insecure_skip_tls_verify: the server's certificate is not checked, so whoever sits on the way gets the credentials. Pin it by fingerprint instead.")
	}
	return warnings, errs
}

// fillCredentials takes who we are from the environment, where the configuration says nothing of it: half of one and
// half of the other would be nobody.
func (c *Config) fillCredentials(fill func(field *string, names ...string)) {
	if c.Token == "" && c.Password == "" {
		fill(&c.Username, "PROXMOX_USERNAME")
		switch {
		case os.Getenv("PROXMOX_TOKEN") != "":
			c.Token = os.Getenv("PROXMOX_TOKEN")
		case getenv("SANDBOX_API_TOKEN", "PROXMOX_VE_API_TOKEN") != "" && os.Getenv("PROXMOX_PASSWORD") == "":
			c.Token = getenv("SANDBOX_API_TOKEN", "PROXMOX_VE_API_TOKEN")
		default:
			fill(&c.Password, "PROXMOX_PASSWORD", "SANDBOX_PASSWORD", "PROXMOX_VE_PASSWORD")
			fill(&c.Username, "SANDBOX_USERNAME", "PROXMOX_VE_USERNAME")
		}
	}
	// A whole token brings its user along.
	if id, secret, whole := strings.Cut(c.Token, "="); whole {
		if c.Username == "" || c.Username == id {
			c.Username, c.Token = id, secret
		}
	}
	if c.Username == "" {
		fill(&c.Username, "PROXMOX_USERNAME", "SANDBOX_USERNAME", "PROXMOX_VE_USERNAME")
	}
}

func (c *Config) check() (errs []error) {
	add := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if c.ProxmoxURL == "" {
		add("proxmox_url is missing: the API's address, https://host:8006 (or PROXMOX_URL, SANDBOX_ENDPOINT)")
	}
	if c.Username == "" {
		add("username is missing: user@realm for a login, user@realm!name for a token (or PROXMOX_USERNAME, SANDBOX_API_TOKEN)")
	}
	switch {
	case c.Token != "" && c.Password != "":
		add("token and password are set: give one of them")
	case c.Token == "" && c.Password == "":
		add("there are no credentials: set token (the secret of an API token) or password (or PROXMOX_TOKEN, SANDBOX_API_TOKEN, PROXMOX_PASSWORD)")
	case c.Token != "" && c.Username != "" && !strings.Contains(c.Username, "!"):
		add("username is %q, which names no token: with token it is user@realm!name", c.Username)
	case strings.Contains(c.Token, "="):
		add("token is a whole token of another user than username: give its secret alone, or leave username out")
	case c.Password != "" && strings.Contains(c.Username, "!"):
		add("username is %q, an API token, beside a password: give the token's secret as token", c.Username)
	}
	if c.Fingerprint != "" && c.InsecureSkipTLSVerify {
		add("fingerprint and insecure_skip_tls_verify contradict each other: leave insecure_skip_tls_verify out")
	}
	if c.TaskTimeout < 0 {
		add("task_timeout is negative")
	}
	if len(errs) > 0 {
		return errs
	}
	if _, err := c.Client(); err != nil {
		var wrong *pve.ConfigError
		if errors.As(err, &wrong) {
			add("%w", err)
		} else {
			errs = append(errs, err)
		}
	}
	return errs
}

// Client makes the client. It sends no request.
func (c *Config) Client() (*pve.Client, error) {
	cfg := pve.Config{
		Endpoint: c.ProxmoxURL, UserAgent: "packer-plugin-sandbox/" + version.PluginVersion.FormattedVersion(),
		TLS:    pve.TLSConfig{Fingerprint: c.Fingerprint, CAFile: c.CAFile, Insecure: c.InsecureSkipTLSVerify},
		Logger: logger(),
	}
	if c.Token != "" {
		cfg.Token = c.Username + "=" + c.Token
	} else {
		cfg.Username, cfg.Password = c.Username, c.Password
	}
	return pve.New(cfg)
}

// Manager makes the domain on a client.
func (c *Config) Manager(client *pve.Client, settings sandbox.Settings) (*sandbox.Manager, error) {
	settings.Owner = c.Owner
	// The lowest free id, as /cluster/nextid says it.
	settings.VMIDs = sandbox.VMIDRange{First: sandbox.MinVMID, Last: sandbox.MaxVMID}
	return sandbox.NewManager(client, settings, sandbox.Options{Logger: logger()})
}
