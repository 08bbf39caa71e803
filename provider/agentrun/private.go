package agentrun

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

// keyRun is the key of the private state, which Terraform keeps beside the state and shows to nobody.
const keyRun = "run"

// kept is by what a run is found again: the claim tells its container from a later one with the same id.
type kept struct {
	Claim   string `json:"claim"`
	Node    string `json:"node"`
	HostKey string `json:"host_key"`
	ID      string `json:"id"`
	// Collected says that the container knows that the state has the result.
	Collected bool `json:"collected"`
}

func (k kept) run(m *model) *agentrun.Run {
	_, vmid, err := sandbox.ParseContainerID(m.ContainerID.ValueString())
	if err != nil {
		vmid = 0 // validated long ago
	}
	return &agentrun.Run{Ref: sandbox.Ref{VMID: vmid, Node: k.Node, Claim: k.Claim}, HostKey: k.HostKey, ID: k.ID}
}

type writer interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

type reader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

func remember(ctx context.Context, p writer, diags *diag.Diagnostics, k kept) {
	text, err := json.Marshal(k)
	if err != nil {
		diags.AddError("Unable to write the private state", err.Error())
		return
	}
	diags.Append(p.SetKey(ctx, keyRun, text)...)
}

func recall(ctx context.Context, p reader, diags *diag.Diagnostics) (k kept) {
	text, d := p.GetKey(ctx, keyRun)
	diags.Append(d...)
	if len(text) > 0 {
		if err := json.Unmarshal(text, &k); err != nil {
			diags.AddError("Unable to read the private state", err.Error())
		}
	}
	return k
}
