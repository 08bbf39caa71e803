package container

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// claimAttributes say that a container is a pool's member, claimed.
func claimAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"claim_from_pool_id": schema.StringAttribute{
			MarkdownDescription: "Pool, by the `id` of its `sandbox_pool`, to claim a member of instead of making a container. The member runs already; hostname, tags, keys, network mode, size and lease are set in place, and what isn't configured stays as the pool has it. " +
				"It stays in the pool's Proxmox pool (`pool_id`), keeps the template generation that it was made from (`template_current` shows whether that is still the present one; no plan replaces it for that), and is destroyed when it is released, never used again. " +
				"A change to another pool replaces the container; taking it out, or adding it to a container that exists, claims nothing.",
			Optional: true,
			Validators: []validator.String{
				stringvalidator.LengthAtLeast(1),
				stringvalidator.ConflictsWith(path.MatchRoot("template_file_id"), path.MatchRoot("restore_from"), path.MatchRoot("full_clone"), path.MatchRoot("storage"), path.MatchRoot("vmid"), path.MatchRoot("pool_id")),
			},
		},
		"on_empty": schema.StringAttribute{
			MarkdownDescription: "What to do when no member of `claim_from_pool_id` is ready: `error` (default), or `clone`, which makes a container in the pool's Proxmox pool from `template_id` (or the provider's), at the speed of a clone." + local,
			Optional:            true,
			Validators: []validator.String{
				stringvalidator.OneOf(string(sandbox.OnEmptyError), string(sandbox.OnEmptyClone)),
				stringvalidator.AlsoRequires(path.MatchRoot("claim_from_pool_id")),
			},
		},
	}
}

// claims tells whether the container is, or is to be, a claimed member. While the pool's id is unknown it is.
func (m *Model) claims() bool { return !m.ClaimFromPoolID.IsNull() }

func (m *Model) claimSpec() sandbox.Claim {
	return sandbox.Claim{Pool: m.ClaimFromPoolID.ValueString(), OnEmpty: sandbox.OnEmpty(m.OnEmpty.ValueString())}
}

// planClaimed plans what a claim decides: the Proxmox pool, and at the creation the source, which is the member's own.
func (m *Model) planClaimed(config, state *Model) {
	if !m.claims() {
		return
	}
	m.PoolID = m.ClaimFromPoolID
	switch {
	case !config.TemplateID.IsNull(): // as configured: for on_empty
	case state != nil:
		m.TemplateID = state.TemplateID
	default:
		m.TemplateID = types.Int64Unknown()
	}
}

// make makes the container, or claims it.
func (m *Model) make(ctx context.Context, manager *sandbox.Manager, spec sandbox.Spec, accepted sandbox.Accepted) (sandbox.Outcome, error) {
	if !m.claims() {
		return manager.Create(ctx, spec, accepted)
	}
	return manager.ClaimMember(ctx, m.claimSpec(), spec, accepted)
}
