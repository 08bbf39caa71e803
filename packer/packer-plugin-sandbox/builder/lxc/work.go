package lxc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/packer-plugin-sdk/multistep"
	packersdk "github.com/hashicorp/packer-plugin-sdk/packer"
	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/access"
)

// work is one build on its way, shared by the steps.
type work struct {
	config   *Config
	client   *pve.Client
	manager  *sandbox.Manager
	node     *node
	build    *sandbox.TemplateBuild
	before   sandbox.Identity // of the container while it is built
	sealed   sealed
	listener net.Listener // of a forwarding to the container
	finished bool

	mu      sync.Mutex
	hostKey ssh.PublicKey // pinned at the first contact
}

const workKey = "sandbox_work"

func workOf(state multistep.StateBag) (*work, packersdk.Ui) {
	w, _ := state.Get(workKey).(*work)
	ui, _ := state.Get("ui").(packersdk.Ui)
	return w, ui
}

// halt ends the build with an error.
func halt(state multistep.StateBag, ui packersdk.Ui, err error) multistep.StepAction {
	if code := sandbox.CodeOf(err); code != sandbox.CodeUnclassified && !strings.Contains(err.Error(), string(code)) {
		err = fmt.Errorf("%w [%s]", err, code)
	}
	state.Put("error", err)
	ui.Error(err.Error())
	return multistep.ActionHalt
}

// tell passes on what the user should hear.
func (w *work) tell(ui packersdk.Ui) {
	if w.build == nil {
		return
	}
	for _, warning := range w.build.Warnings() {
		ui.Say(fmt.Sprintf("Warning: %s. %s", warning.Summary, warning.Detail))
	}
}

// login is how clones are reached.
func (c *Config) login() access.Login {
	l := access.Login{PrivateKeyFile: c.ProviderPrivateKeyFile}
	if c.Comm.SSHBastionHost != "" {
		l.JumpHost, l.JumpPort, l.JumpUsername, l.JumpKeyFile = c.Comm.SSHBastionHost, c.Comm.SSHBastionPort, c.Comm.SSHBastionUsername, c.Comm.SSHBastionPrivateKeyFile
	}
	return l
}

// host is where Packer's communicator connects to. Behind a jump host of the provider's variables that is a forwarding
// of our own: the SDK's bastion takes no key but a file's, and pins nothing.
func (w *work) host(state multistep.StateBag) (string, error) {
	c := w.config
	switch {
	case c.Comm.Type == pct:
		return fmt.Sprintf("container %d on node %s", w.build.Ref().VMID, w.build.Node()), nil
	case c.Comm.SSHHost != "":
		return c.Comm.SSHHost, nil
	case w.listener != nil:
		return "127.0.0.1", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Comm.SSHTimeout)
	defer cancel()
	address, err := w.build.Address(ctx)
	if err != nil {
		return "", err
	}
	login, err := c.login().Guest()
	if err != nil {
		return "", err
	}
	if c.Comm.SSHBastionHost == "" && login.ProxyJump != nil {
		if _, err := w.forward(context.Background(), net.JoinHostPort(address.String(), strconv.Itoa(c.Comm.SSHPort))); err != nil {
			return "", err
		}
		return "127.0.0.1", nil
	}
	return address.String(), nil
}

func (w *work) sshPort(multistep.StateBag) (int, error) {
	if w.listener != nil {
		if at, ok := w.listener.Addr().(*net.TCPAddr); ok {
			return at.Port, nil
		}
	}
	return w.config.Comm.SSHPort, nil
}

// sshConfig is the SDK's, with the container's host key pinned: it may not change while it is built.
func (w *work) sshConfig(state multistep.StateBag) (*ssh.ClientConfig, error) {
	cfg, err := w.config.Comm.SSHConfigFunc()(state)
	if err != nil {
		return nil, err
	}
	cfg.HostKeyCallback = func(_ string, _ net.Addr, key ssh.PublicKey) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.hostKey == nil {
			w.hostKey = key
		}
		if !bytes.Equal(w.hostKey.Marshal(), key.Marshal()) {
			return fmt.Errorf("the container shows another host key (%s) than at the first contact (%s)", ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(w.hostKey))
		}
		return nil
	}
	return cfg, nil
}

// close ends what the build has open.
func (w *work) close() {
	if w.listener != nil {
		_ = w.listener.Close()
	}
}

// join copies both ways until both have ended.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	half := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // the end of either is the end of the connection, for whatever reason
		if c, ok := to.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
			return
		}
		_ = to.Close()
	}
	both.Go(func() { half(a, b) })
	both.Go(func() { half(b, a) })
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}
