package functions_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/functions"
)

func TestRepoSlugNamesARepositoryWhateverItsURL(t *testing.T) {
	t.Parallel()
	const want = "acme-web-app-de5c45c1"
	for _, url := range []string{"https://github.com/Acme/web-app.git", "git@github.com:acme/web-app"} {
		got, problem := run(t, functions.NewRepoSlug(), url, types.StringUnknown())
		if problem != "" || !got.Equal(types.StringValue(want)) {
			t.Errorf("repo_slug(%q) = %v %s, want %q", url, got, problem, want)
		}
	}
	if _, problem := run(t, functions.NewRepoSlug(), "", types.StringUnknown()); problem == "" {
		t.Error("an empty text was accepted")
	}
}
