package sandbox_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func TestRepoSlugIsTheSameForAllURLsOfARepository(t *testing.T) {
	t.Parallel()
	want, err := sandbox.RepoSlug("https://github.com/Acme/web.app.git")
	if err != nil || !strings.HasPrefix(want, "acme-web-app-") {
		t.Fatalf("%q %v", want, err)
	}
	for _, url := range []string{
		"https://github.com/acme/web.app", "https://github.com/acme/web.app/", "ssh://git@github.com/acme/web.app.git", "ssh://git@github.com:22/acme/web.app.git",
		"git@github.com:acme/web.app.git", "github.com:Acme/web.app", "https://user:secret@GitHub.com/acme/web.app.git", "  https://github.com//acme/web.app.git ",
	} {
		if got, err := sandbox.RepoSlug(url); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", url, got, err, want)
		}
	}
	seen := map[string]string{}
	for _, url := range []string{
		"https://github.com/acme/web.app", "https://gitlab.com/acme/web.app", "https://github.com/acme/web-app", "https://github.com/acme-web/app", "acme/web.app",
		"https://github.com/" + strings.Repeat("a", 80) + "/x", "https://github.com/" + strings.Repeat("a", 81) + "/x", "https://github.com/ä/ö",
	} {
		got, err := sandbox.RepoSlug(url)
		if err != nil || len(got) > 48 || strings.Trim(got, "-") != got || strings.ContainsAny(got, "._/ABC") {
			t.Errorf("%s: %q %v", url, got, err)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s have the same name", other, url)
		}
		seen[got] = url
	}
	for _, bad := range []string{"", "  ", "https://github.com/", "https:///acme/web", "https://github.com/../x", "https://%zz:pw@x/y"} {
		if got, err := sandbox.RepoSlug(bad); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %q %v", bad, got, err)
		}
	}
}
