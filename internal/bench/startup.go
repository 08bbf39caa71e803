package bench

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-exec/tfexec"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// maxSchemaBytes is what Terraform itself takes for an answer's largest size.
const maxSchemaBytes = 64 << 20

// handshake is what Terraform and its providers greet each other with.
var handshake = plugin.HandshakeConfig{
	ProtocolVersion:  6,
	MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
	MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
}

// process is the provider's binary, started the way Terraform starts it.
type process struct {
	client *plugin.Client
	cmd    *exec.Cmd
}

// startProvider starts the provider's binary, with further variables, and returns when it has answered with its schema.
func startProvider(ctx context.Context, dir string, variables map[string]string) (p *process, took time.Duration, err error) {
	name := "terraform-provider-sandbox"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, name))
	cmd.Env = os.Environ()
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	began := time.Now()
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  handshake,
		Plugins:          plugin.PluginSet{"provider": connection{}},
		Cmd:              cmd,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		GRPCDialOptions:  []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxSchemaBytes))},
	})
	p = &process{client: client, cmd: cmd}
	if err := p.askSchema(ctx); err != nil {
		client.Kill()
		return nil, 0, err
	}
	return p, time.Since(began), nil
}

// askSchema asks for the provider's schema and throws it away: the time counts, not the content.
func (p *process) askSchema(ctx context.Context) error {
	rpc, err := p.client.Client()
	if err != nil {
		return err
	}
	raw, err := rpc.Dispense("provider")
	if err != nil {
		return err
	}
	conn, ok := raw.(*grpc.ClientConn)
	if !ok {
		return errors.New("the provider doesn't speak gRPC")
	}
	// The request has no fields, and an empty message takes any answer.
	return conn.Invoke(ctx, "/tfplugin6.Provider/GetProviderSchema", &emptypb.Empty{}, &emptypb.Empty{})
}

// reattach is what makes the command line use this process as its provider.
func (p *process) reattach(cli *tfcli.CLI) tfexec.ReattachInfo {
	config := p.client.ReattachConfig()
	return tfexec.ReattachInfo{cli.RegistryHost() + "/" + tfcli.Source: tfexec.ReattachConfig{
		Protocol:        string(config.Protocol),
		ProtocolVersion: int(handshake.ProtocolVersion),
		Pid:             config.Pid,
		Test:            true, // the command line leaves it running
		Addr:            tfexec.ReattachConfigAddr{Network: config.Addr.Network(), String: config.Addr.String()},
	}}
}

// end stops the process and returns the most memory that it ever had resident, in bytes; 0 where the system doesn't tell.
func (p *process) end() int64 { return p.use().memory }

// usage is what a process has used: memory is the most that it ever had resident, in bytes, 0 where the system doesn't
// tell; cpu is its CPU time.
type usage struct {
	memory int64
	cpu    time.Duration
}

// use stops the process and returns what it has used.
func (p *process) use() usage {
	p.client.Kill()
	if p.cmd.ProcessState == nil {
		return usage{}
	}
	return usage{memory: peakMemory(p.cmd.ProcessState), cpu: p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()}
}

// connection is the plugin whose client is the bare connection.
type connection struct{ plugin.NetRPCUnsupportedPlugin }

func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("not a server")
}

func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
