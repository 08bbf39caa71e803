// Command sandbox-lab runs a Proxmox VE lab in the foreground: an API that behaves like the real one, its guests and
// the SSH node that leads to them. It prints what a configuration needs, and stops on Ctrl-C.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, problems io.Writer) (err error) {
	flags := flag.NewFlagSet("sandbox-lab", flag.ContinueOnError)
	flags.SetOutput(problems)
	dir := flags.String("dir", "", "keep the lab in this folder, so that it survives a restart")
	nodes := flags.Int("nodes", 1, "number of nodes")
	profile := flags.String("profile", "fast", `how long things take: "fast" or "real"`)
	engineName := flags.String("engine", lab.EngineSim, `what guests are: "sim", simulated, or "ns", real Linux containers`)
	image := flags.String("image", "", `base image of the template with real containers: "tiny" (the default) or "debian-12"`)
	listen := flags.String("listen", "127.0.0.1:0", "address of the API; a port of 0 takes a free one")
	env := flags.String("env", "", "write the provider's variables into this file, for a shell to source; it goes when the lab ends")
	asJSON := flags.Bool("json", false, "print one JSON object instead of text")
	if err := flags.Parse(args); err != nil {
		return err
	}
	delays, ok := map[string]lab.Delays{"fast": lab.Fast(), "real": lab.Real()}[*profile]
	if !ok {
		return fmt.Errorf(`-profile %q: choose "fast" or "real"`, *profile)
	}
	l, err := lab.Start(ctx, lab.Options{
		Nodes: *nodes, EngineName: *engineName, Image: *image, Dir: *dir, Delays: delays, Listen: *listen,
		Log: slog.New(slog.NewTextHandler(problems, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if *env != "" {
		if err := writeEnv(*env, l); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(*env)) }()
	}
	if *asJSON {
		err = printJSON(out, l)
	} else {
		err = printText(out, l, *dir, *env)
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	if !*asJSON {
		_, err = fmt.Fprintln(out, "\nStopping.")
	}
	return err
}

// description is what -json prints.
type description struct {
	Endpoint      string   `json:"endpoint"`
	Token         string   `json:"api_token"`
	Fingerprint   string   `json:"fingerprint"`
	CAPEM         string   `json:"ca_pem"`
	Username      string   `json:"username"`
	Password      string   `json:"password"`
	Nodes         []string `json:"nodes"`
	TemplateID    int      `json:"template_id"`
	TemplateFile  string   `json:"template_file"`
	Storage       string   `json:"storage"`
	Bridge        string   `json:"bridge"`
	Pool          string   `json:"pool"`
	PrivateKey    string   `json:"private_key"`
	SSHHost       string   `json:"ssh_host"`
	SSHPort       int      `json:"ssh_port"`
	SSHUser       string   `json:"ssh_user"`
	SSHHostKey    string   `json:"ssh_host_key"`
	VMIDFirst     int      `json:"vmid_first"`
	VMIDLast      int      `json:"vmid_last"`
	AddressCIDR   string   `json:"address_cidr"`
	AddressFirst  string   `json:"address_first"`
	Gateway       string   `json:"gateway"`
	ControlSecret string   `json:"control_secret"`
	Provider      string   `json:"provider_block"`
}

func printJSON(out io.Writer, l *lab.Lab) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(description{
		Endpoint: l.Endpoint(), Token: l.Token(), Fingerprint: l.Fingerprint(), CAPEM: l.CAPEM(), Username: l.Username(), Password: l.Password(),
		Nodes: l.Nodes(), TemplateID: lab.TemplateID, TemplateFile: lab.TemplateFile, Storage: lab.Storage, Bridge: lab.Bridge, Pool: lab.Pool,
		PrivateKey: l.PrivateKey(), SSHHost: l.SSHHost(), SSHPort: l.SSHPort(), SSHUser: lab.SSHUser, SSHHostKey: l.SSHHostKey(),
		VMIDFirst: lab.VMIDFirst, VMIDLast: lab.VMIDLast, AddressCIDR: lab.AddressCIDR.String(), AddressFirst: lab.AddressFirst.String(),
		Gateway: lab.AddressGateway.String(), ControlSecret: l.Secret(), Provider: l.ProviderBlock(),
	})
}

func printText(out io.Writer, l *lab.Lab, dir, env string) error {
	kept := "nowhere: it is gone when this command ends (-dir keeps it)"
	if dir != "" {
		kept = "in " + dir
	}
	source := ""
	if env != "" {
		source = fmt.Sprintf("\nThe same as variables, for a configuration with an empty provider block (as in examples/):\n\n  source %s\n", env)
	}
	_, err := fmt.Fprintf(out, `The lab runs. It listens on this machine only; everything in it is emulated. Kept %s.

  endpoint       %s
  API token      %s
  login          %s  password %s
  fingerprint    %s
  nodes          %v
  template       %d, trusts the key below; template file %s
  storage        %s   bridge %s   pool %s
  guests over    ssh -J %s@%s:%d root@ADDRESS, with the key below

The key that the template trusts (for this lab only):

%s
A provider block for it:

%s%s
Ctrl-C stops it.
`, kept, l.Endpoint(), l.Token(), l.Username(), l.Password(), l.Fingerprint(), l.Nodes(), lab.TemplateID, lab.TemplateFile,
		lab.Storage, lab.Bridge, lab.Pool, lab.SSHUser, l.SSHHost(), l.SSHPort(), l.PrivateKey(), l.ProviderBlock(), source)
	return err
}
