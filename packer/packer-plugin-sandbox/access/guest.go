package access

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Login is how a clone of the template is reached to prove it: as the Terraform provider will. The variables are the
// provider's.
type Login struct {
	// PrivateKeyFile is the private half of one of provider_public_keys.
	PrivateKeyFile string
	Agent          bool
	JumpHost       string
	JumpPort       int
	JumpUsername   string
	JumpHostKey    string
	JumpKeyFile    string
}

// Guest is the configuration of the guest layer, the environment's variables filled in.
func (l Login) Guest() (guest.Config, error) {
	g := guest.Config{
		Username: getenv("SANDBOX_GUEST_SSH_USERNAME"),
		Auth:     guest.Auth{PrivateKeyFile: l.PrivateKeyFile, Agent: l.Agent},
	}
	if g.Auth == (guest.Auth{}) {
		switch {
		case os.Getenv("SANDBOX_GUEST_SSH_PRIVATE_KEY") != "":
			g.Auth.PrivateKey = strings.TrimRight(os.Getenv("SANDBOX_GUEST_SSH_PRIVATE_KEY"), "\n") + "\n"
		case os.Getenv("SANDBOX_GUEST_SSH_PRIVATE_KEY_FILE") != "":
			g.Auth.PrivateKeyFile = os.Getenv("SANDBOX_GUEST_SSH_PRIVATE_KEY_FILE")
		case getenv("SANDBOX_GUEST_SSH_AGENT") == "true":
			g.Auth.Agent = true
		}
	}
	if v := os.Getenv("SANDBOX_GUEST_SSH_TIMEOUT"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			return g, fmt.Errorf("SANDBOX_GUEST_SSH_TIMEOUT is %q, which is no duration like 90s", v)
		}
		g.Timeout = d
	}
	jump := guest.ProxyJump{Host: l.JumpHost, Port: l.JumpPort, Username: l.JumpUsername, HostKey: l.JumpHostKey, Auth: guest.Auth{PrivateKeyFile: l.JumpKeyFile}}
	if jump.Host == "" {
		const prefix = "SANDBOX_GUEST_SSH_PROXY_JUMP_"
		jump.Host, jump.Username, jump.HostKey = os.Getenv(prefix+"HOST"), os.Getenv(prefix+"USERNAME"), os.Getenv(prefix+"HOST_KEY")
		jump.Auth = guest.Auth{PrivateKey: os.Getenv(prefix + "PRIVATE_KEY"), PrivateKeyFile: os.Getenv(prefix + "PRIVATE_KEY_FILE")}
		if v := os.Getenv(prefix + "PORT"); v != "" {
			port, err := strconv.Atoi(v)
			if err != nil {
				return g, fmt.Errorf("%sPORT is %q, which is no number", prefix, v)
			}
			jump.Port = port
		}
	}
	if jump.Host != "" {
		g.ProxyJump = &jump
	}
	return g, nil
}
