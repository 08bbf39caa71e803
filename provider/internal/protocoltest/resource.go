package protocoltest

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Resource is one resource instance as Terraform tracks it between commands.
type Resource struct {
	Type string
	// State is null when nothing is tracked.
	State    tftypes.Value
	Private  []byte
	Identity *tfprotov6.ResourceIdentityData
	// Tainted says that the next apply replaces it.
	Tainted bool
}

// NewResource is an instance that doesn't exist yet.
func (s *Server) NewResource(t testing.TB, typeName string) *Resource {
	t.Helper()
	return &Resource{Type: typeName, State: tftypes.NewValue(s.typeOf(t, typeName), nil)}
}

// Exists tells whether anything is tracked.
func (r *Resource) Exists() bool { return !r.State.IsNull() }

func (s *Server) schemaOf(t testing.TB, typeName string) *tfprotov6.Schema {
	t.Helper()
	schema := s.Schema.ResourceSchemas[typeName]
	if schema == nil {
		t.Fatalf("the provider serves no resource %s", typeName)
	}
	return schema
}

func (s *Server) typeOf(t testing.TB, typeName string) tftypes.Type {
	t.Helper()
	return s.schemaOf(t, typeName).ValueType()
}

// Plan is what the provider answered to a plan.
type Plan struct {
	Resource *Resource
	Config   tftypes.Value
	// Planned is the planned new state, null for a destroy.
	Planned tftypes.Value
	Private []byte
	// Replace lists the attributes that require a replacement, of those that differ.
	Replace  []string
	Diags    []*tfprotov6.Diagnostic
	Identity *tfprotov6.ResourceIdentityData
}

// Action is what Terraform would write before the resource: "create", "update", "replace", "no-op".
func (p *Plan) Action() string {
	switch {
	case !p.Resource.Exists():
		return "create"
	case p.Resource.Tainted || len(p.Replace) > 0:
		return "replace"
	case p.Planned.Equal(p.Resource.State):
		return "no-op"
	}
	return "update"
}

// Get returns a planned value by its path, such as "network.ipv4".
func (p *Plan) Get(t testing.TB, path string) any { t.Helper(); return Get(t, p.Planned, path) }

// Validate asks for the configuration alone.
func (s *Server) Validate(t testing.TB, typeName string, config Values) []*tfprotov6.Diagnostic {
	t.Helper()
	typ := s.typeOf(t, typeName)
	resp, err := s.ValidateResourceConfig(context.Background(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: typeName, Config: encode(t, typ, Value(t, typ, config)),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Diagnostics
}

// Plan plans the instance towards a configuration. Errors of the provider are in the plan's diagnostics; an answer
// that Terraform would refuse fails the test.
func (s *Server) Plan(t testing.TB, r *Resource, config Values) *Plan {
	t.Helper()
	schema := s.schemaOf(t, r.Type)
	typ := schema.ValueType()
	config, placed := s.placed(r.Type, config)
	configValue := Value(t, typ, config)
	plan := &Plan{Resource: r, Config: configValue}
	plan.Diags = s.Validate(t, r.Type, config)
	if placed {
		plan.Diags = withoutModeWarning(plan.Diags)
	}
	if HasErrors(plan.Diags) {
		return plan
	}
	prior, identity := r.State, r.Identity
	if r.Tainted {
		prior, identity = tftypes.NewValue(typ, nil), nil
	}
	s.plan(t, plan, schema, prior, r.Private, identity)
	if !HasErrors(plan.Diags) && len(plan.Replace) > 0 {
		// Terraform plans a replacement as a creation of its own.
		replace := plan.Replace
		s.plan(t, plan, schema, tftypes.NewValue(typ, nil), nil, nil)
		plan.Replace = replace
	}
	return plan
}

func (s *Server) plan(t testing.TB, plan *Plan, schema *tfprotov6.Schema, prior tftypes.Value, private []byte, identity *tfprotov6.ResourceIdentityData) {
	t.Helper()
	typ := schema.ValueType()
	proposed := proposedNew(t, schema.Block.Attributes, typ, prior, plan.Config)
	resp, err := s.PlanResourceChange(context.Background(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: plan.Resource.Type, PriorState: encode(t, typ, prior), ProposedNewState: encode(t, typ, proposed),
		Config: encode(t, typ, plan.Config), PriorPrivate: private, PriorIdentity: identity,
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		t.Fatal(err)
	}
	plan.Diags = append(plan.Diags, resp.Diagnostics...)
	if HasErrors(plan.Diags) {
		return
	}
	plan.Planned = decode(t, typ, resp.PlannedState)
	plan.Private = resp.PlannedPrivate
	plan.Identity = resp.PlannedIdentity
	plan.Replace = nil
	for _, at := range resp.RequiresReplace {
		was, _, errWas := tftypes.WalkAttributePath(prior, at)
		is, _, errIs := tftypes.WalkAttributePath(plan.Planned, at)
		if errWas != nil || errIs != nil {
			t.Fatalf("RequiresReplace names %s, which isn't there", at)
		}
		// Terraform counts only what differs.
		wasValue, okWas := was.(tftypes.Value)
		isValue, okIs := is.(tftypes.Value)
		if okWas && okIs && !wasValue.Equal(isValue) {
			plan.Replace = append(plan.Replace, at.String())
		}
	}
	for _, problem := range planProblems("", schema.Block.Attributes, prior, plan.Config, plan.Planned) {
		t.Errorf("Provider produced invalid plan: %s", problem)
	}
}

// Apply applies a plan and returns the provider's diagnostics. The instance is what Terraform would track then, also
// after an error. Replacing destroys first.
func (s *Server) Apply(t testing.TB, ctx context.Context, plan *Plan) []*tfprotov6.Diagnostic {
	t.Helper()
	NoErrors(t, plan.Diags)
	r := plan.Resource
	typ := s.typeOf(t, r.Type)
	var diags []*tfprotov6.Diagnostic
	switch plan.Action() {
	case "no-op":
		return nil
	case "replace":
		diags = s.Destroy(t, ctx, r)
		if HasErrors(diags) {
			return diags
		}
	}
	creating := !r.Exists()
	resp, err := s.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: r.Type, PriorState: encode(t, typ, r.State), PlannedState: encode(t, typ, plan.Planned),
		Config: encode(t, typ, plan.Config), PlannedPrivate: plan.Private, PlannedIdentity: plan.Identity,
	})
	if err != nil {
		t.Fatal(err)
	}
	diags = append(diags, resp.Diagnostics...)
	next := decode(t, typ, resp.NewState)
	failed := HasErrors(resp.Diagnostics)
	if !failed {
		s.checkApplied(t, r.Type, plan.Planned, next, resp.NewIdentity)
	}
	r.State, r.Private, r.Identity = next, resp.Private, resp.NewIdentity
	r.Tainted = failed && creating && r.Exists()
	return diags
}

// checkApplied fails where Terraform would say "Provider produced inconsistent result after apply".
func (s *Server) checkApplied(t testing.TB, typeName string, planned, next tftypes.Value, identity *tfprotov6.ResourceIdentityData) {
	t.Helper()
	if next.IsNull() != planned.IsNull() {
		t.Fatalf("inconsistent result after apply: null is %t, was planned as %t", next.IsNull(), planned.IsNull())
	}
	if !next.IsFullyKnown() {
		t.Errorf("the new state holds unknown values: %s", next)
	}
	diffs, err := planned.Diff(next)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diffs {
		if d.Value1 != nil && d.Value1.IsKnown() && d.Value1.IsFullyKnown() {
			t.Errorf("inconsistent result after apply: %s is %v, was planned as %v", d.Path, d.Value2, d.Value1)
		}
	}
	if !next.IsNull() && s.hasIdentity(t, typeName) && identity == nil {
		t.Errorf("no identity after apply of %s", typeName)
	}
}

func (s *Server) hasIdentity(t testing.TB, typeName string) bool {
	t.Helper()
	schemas, err := s.GetResourceIdentitySchemas(context.Background(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return schemas.IdentitySchemas[typeName] != nil
}

// Destroy destroys the instance.
func (s *Server) Destroy(t testing.TB, ctx context.Context, r *Resource) []*tfprotov6.Diagnostic {
	t.Helper()
	if !r.Exists() {
		return nil
	}
	typ := s.typeOf(t, r.Type)
	null := encode(t, typ, tftypes.NewValue(typ, nil))
	planned, err := s.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: r.Type, PriorState: encode(t, typ, r.State), ProposedNewState: null, Config: null,
		PriorPrivate: r.Private, PriorIdentity: r.Identity, ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		t.Fatal(err)
	}
	NoErrors(t, planned.Diagnostics)
	resp, err := s.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: r.Type, PriorState: encode(t, typ, r.State), PlannedState: planned.PlannedState, Config: null,
		PlannedPrivate: planned.PlannedPrivate, PlannedIdentity: r.Identity,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !HasErrors(resp.Diagnostics) {
		r.State, r.Private, r.Identity, r.Tainted = decode(t, typ, resp.NewState), nil, nil, false
	}
	return resp.Diagnostics
}

// Refresh reads the instance.
func (s *Server) Refresh(t testing.TB, r *Resource) []*tfprotov6.Diagnostic {
	t.Helper()
	if !r.Exists() {
		return nil
	}
	typ := s.typeOf(t, r.Type)
	resp, err := s.ReadResource(context.Background(), &tfprotov6.ReadResourceRequest{
		TypeName: r.Type, CurrentState: encode(t, typ, r.State), Private: r.Private, CurrentIdentity: r.Identity,
		ClientCapabilities: &tfprotov6.ReadResourceClientCapabilities{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !HasErrors(resp.Diagnostics) {
		r.State, r.Private, r.Identity = decode(t, typ, resp.NewState), resp.Private, resp.NewIdentity
	}
	return resp.Diagnostics
}

// Import imports an instance by its id and refreshes it, as Terraform does.
func (s *Server) Import(t testing.TB, typeName, id string) (*Resource, []*tfprotov6.Diagnostic) {
	t.Helper()
	return s.importWith(t, &tfprotov6.ImportResourceStateRequest{TypeName: typeName, ID: id})
}

// ImportByIdentity imports an instance by its identity and refreshes it.
func (s *Server) ImportByIdentity(t testing.TB, typeName string, identity Values) (*Resource, []*tfprotov6.Diagnostic) {
	t.Helper()
	schemas, err := s.GetResourceIdentitySchemas(context.Background(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ := schemas.IdentitySchemas[typeName].ValueType()
	return s.importWith(t, &tfprotov6.ImportResourceStateRequest{TypeName: typeName,
		Identity: &tfprotov6.ResourceIdentityData{IdentityData: encode(t, typ, Value(t, typ, identity))}})
}

func (s *Server) importWith(t testing.TB, req *tfprotov6.ImportResourceStateRequest) (*Resource, []*tfprotov6.Diagnostic) {
	t.Helper()
	r := s.NewResource(t, req.TypeName)
	req.ClientCapabilities = &tfprotov6.ImportResourceStateClientCapabilities{}
	resp, err := s.ImportResourceState(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if HasErrors(resp.Diagnostics) {
		return r, resp.Diagnostics
	}
	if len(resp.ImportedResources) != 1 {
		t.Fatalf("want one imported resource, got %d", len(resp.ImportedResources))
	}
	imported := resp.ImportedResources[0]
	r.State = decode(t, s.typeOf(t, req.TypeName), imported.State)
	r.Private, r.Identity = imported.Private, imported.Identity
	return r, append(resp.Diagnostics, s.Refresh(t, r)...)
}

// Get returns a value of the instance by its path, such as "network.ipv4" or "posture.mounts.0": a string, float64,
// bool, []any, map[string]any, nil or Unknown.
func (r *Resource) Get(t testing.TB, path string) any { t.Helper(); return Get(t, r.State, path) }

// Text is Get for a string.
func (r *Resource) Text(t testing.TB, path string) string {
	t.Helper()
	v, ok := r.Get(t, path).(string)
	if !ok {
		t.Fatalf("%s is %v, not a text", path, r.Get(t, path))
	}
	return v
}

// VMID is the attribute vmid.
func (r *Resource) VMID(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(fmt.Sprint(r.Get(t, "vmid")))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
