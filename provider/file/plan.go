package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// ModifyPlan plans the content by its hash, so that a change of the source or of the file inside the container is seen
// although neither stands in the state.
func (r *fileResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // a destroy
	}
	var plan, config Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	var state *Model
	if !req.State.Raw.IsNull() {
		state = &Model{}
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if config.Mode.IsNull() {
		plan.Mode = types.StringValue(defaultMode)
		if !config.ContentWO.IsNull() {
			plan.Mode = types.StringValue(defaultSecretMode)
		}
	}
	if state != nil && sameMode(plan.Mode, state.Mode) {
		plan.Mode = state.Mode
	}
	plan.SHA256, plan.Size = contentOf(&config)
	if state != nil && config.ContentWO.IsNull() && plan.SHA256.Equal(state.SHA256) {
		plan.Size = state.Size
	}
	if state != nil && !config.ContentWO.IsNull() && plan.ContentWOVersion.Equal(state.ContentWOVersion) {
		plan.Size = state.Size
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

func sameMode(a, b types.String) bool {
	if !value.Known(a) || !value.Known(b) {
		return false
	}
	x, errX := parseMode(a.ValueString())
	y, errY := parseMode(b.ValueString())
	return errX == nil && errY == nil && x == y
}

// contentOf is the hash and the size that the configuration asks for. A source that isn't there yet may be made by
// the same apply: its hash is unknown then.
func contentOf(config *Model) (types.String, types.Int64) {
	unknown := func() (types.String, types.Int64) { return types.StringUnknown(), types.Int64Unknown() }
	switch {
	case !config.ContentWO.IsNull():
		return types.StringNull(), types.Int64Unknown()
	case value.Known(config.Content):
		sum := sha256.Sum256([]byte(config.Content.ValueString()))
		return types.StringValue(hex.EncodeToString(sum[:])), types.Int64Value(int64(len(config.Content.ValueString())))
	case value.Known(config.Source):
		f, err := os.Open(config.Source.ValueString())
		if err != nil {
			return unknown()
		}
		defer func() { _ = f.Close() }() // it was only read
		hash := sha256.New()
		n, err := io.Copy(hash, f)
		if err != nil {
			return unknown()
		}
		return types.StringValue(hex.EncodeToString(hash.Sum(nil))), types.Int64Value(n)
	}
	return unknown()
}

// openContent is what is to be written; done frees it.
func openContent(plan, config *Model) (content io.Reader, done func(), err error) {
	switch {
	case value.Known(config.ContentWO):
		return strings.NewReader(config.ContentWO.ValueString()), func() {}, nil
	case value.Known(plan.Content):
		return strings.NewReader(plan.Content.ValueString()), func() {}, nil
	}
	f, err := os.Open(plan.Source.ValueString())
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}

// private is the private state of a request or a response.
type private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// keyWritten holds when and how large a write-only content was written: nothing from which it could be guessed, as a
// hash would be.
const keyWritten = "written"

type written struct {
	Size int64     `json:"size"`
	Time time.Time `json:"time"`
}

func rememberWrite(ctx context.Context, p private, diags *diag.Diagnostics, m *Model, info sandbox.FileInfo) {
	if !m.secret() {
		diags.Append(p.SetKey(ctx, keyWritten, nil)...)
		return
	}
	text, err := json.Marshal(written{Size: info.Size, Time: info.ModTime.UTC()})
	if err != nil {
		base.AddError(diags, "write", "the private state", err)
		return
	}
	diags.Append(p.SetKey(ctx, keyWritten, text)...)
}

// wasRewritten tells whether somebody else has written a write-only content since.
func wasRewritten(ctx context.Context, p private, diags *diag.Diagnostics, m *Model, info sandbox.FileInfo) bool {
	if !m.secret() {
		return false
	}
	text, d := p.GetKey(ctx, keyWritten)
	diags.Append(d...)
	var was written
	if len(text) == 0 || json.Unmarshal(text, &was) != nil {
		return false
	}
	return was.Size != info.Size || !was.Time.Equal(info.ModTime)
}
