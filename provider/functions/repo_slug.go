package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

var _ function.Function = repoSlug{}

type repoSlug struct{}

// NewRepoSlug returns the function repo_slug.
func NewRepoSlug() function.Function { return repoSlug{} }

func (repoSlug) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "repo_slug"
}

func (repoSlug) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Name a repository's own workspace",
		MarkdownDescription: "Returns a DNS label of at most 48 characters for a repository: its path in lower case, other characters as `-`, and 8 hexadecimal digits of a SHA-256 of host and path. " +
			"All URLs of a repository (https, ssh, `git@host:owner/repo.git`, with or without user, port, `.git` or a slash at the end, in any case) give the same name, and those of different repositories different ones, " +
			"so it can name a `sandbox_workspace` or a hostname. A long path is cut at its beginning. Credentials in the URL have no influence and don't show.",
		Parameters: []function.Parameter{
			function.StringParameter{
				Name:                "repository",
				MarkdownDescription: "URL of a repository, git's short form, or a path such as `owner/repo`.",
			},
		},
		Return: function.StringReturn{},
	}
}

func (repoSlug) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var repo string
	resp.Error = req.Arguments.Get(ctx, &repo)
	if resp.Error != nil {
		return
	}
	name, err := sandbox.RepoSlug(repo)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, name)
}
