package base_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

func one(t *testing.T, diags diag.Diagnostics) diag.Diagnostic {
	t.Helper()
	if len(diags) != 1 {
		t.Fatalf("want one diagnostic, got %v", diags)
	}
	return diags[0]
}

func TestAnErrorSaysWhatWasTriedWhyItFailedAndWhatToDo(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	base.AddError(&diags, "create", "container web-1", fmt.Errorf("outer: %w", &sandbox.Error{
		Op: "create", Ref: sandbox.Ref{VMID: 100001}, What: "clone template 9000",
		Err:    &pve.Error{Method: "POST", Path: "/nodes/pve1/lxc/9000/clone", Status: 403, Message: "Permission check failed", Meaning: pve.Forbidden, Privilege: "VM.Clone", PrivilegePath: "/vms/9000"},
		Remedy: "give the token the role",
	}))
	d := one(t, diags)
	if d.Summary() != "Unable to create container web-1" {
		t.Errorf("summary %q", d.Summary())
	}
	for _, want := range []string{
		"Container 100001: clone template 9000", "Permission check failed", "VM.Clone", "/vms/9000", "\n\nGive the token the role.",
		"sandbox_preflight", "\n\nError code SBX204.",
	} {
		if !strings.Contains(d.Detail(), want) {
			t.Errorf("the detail lacks %q:\n%s", want, d.Detail())
		}
	}
}

// Whoever gets an error can look it up, whatever it is; warnings are no errors.
func TestEveryErrorEndsWithItsCode(t *testing.T) {
	t.Parallel()
	last := regexp.MustCompile(`\n\nError code (SBX[1-9][0-9]{2})\.$`)
	var diags diag.Diagnostics
	base.AddError(&diags, "read", "x", errors.New("something new"))
	base.AddError(&diags, "read", "x", context.DeadlineExceeded)
	base.AddError(&diags, "read", "x", &pve.Error{Status: 403, Meaning: pve.Forbidden})
	base.AddError(&diags, "read", "x", &sandbox.Error{Op: "read", Kind: sandbox.ErrForeign})
	base.AddProblems(&diags, []sandbox.Problem{{Attribute: "cores", Summary: "too many", Detail: "Why."}, {Summary: "hm", Detail: "Why.", Warning: true}})
	var got []string
	for _, d := range diags {
		m := last.FindStringSubmatch(d.Detail())
		if m == nil {
			m = []string{"", "none"}
		}
		got = append(got, m[1])
		if points := strings.Contains(d.Detail(), "sandbox_preflight"); points != (m[1] == "SBX204") {
			t.Errorf("%s: points to the preflight: %v", m[1], points)
		}
	}
	if want := []string{"SBX900", "SBX801", "SBX204", "SBX302", "SBX100", "none"}; !slices.Equal(got, want) {
		t.Errorf("the codes are %v, want %v", got, want)
	}
}

func TestProblemsBecomeDiagnosticsAtTheirAttributes(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	base.AddError(&diags, "create", "container web-1", fmt.Errorf("check: %w", &sandbox.ProblemsError{Problems: []sandbox.Problem{
		{Attribute: "network.ipv4", Summary: "no address", Detail: "Why."},
		{Attribute: "authorized_keys[1]", Summary: "no key", Detail: "Why.", Warning: true},
		{Attribute: "provider.owner", Summary: "no owner", Detail: "Why."},
	}}))
	if len(diags) != 3 {
		t.Fatalf("want three diagnostics, got %v", diags)
	}
	for i, want := range []path.Path{path.Root("network").AtName("ipv4"), path.Root("authorized_keys").AtListIndex(1)} {
		at, ok := diags[i].(diag.DiagnosticWithPath)
		if !ok || !at.Path().Equal(want) {
			t.Errorf("diagnostic %d is not at %s: %v", i, want, diags[i])
		}
	}
	if diags[1].Severity() != diag.SeverityWarning {
		t.Error("a warning became an error")
	}
	if !strings.Contains(diags[2].Detail(), "owner of the provider block") {
		t.Errorf("a problem of the provider block doesn't say so: %s", diags[2].Detail())
	}
}

func TestEndsOfAContextSayWhatToDo(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{context.DeadlineExceeded: "timeouts", context.Canceled: "next apply"} {
		var diags diag.Diagnostics
		base.AddError(&diags, "start", "container 100001", fmt.Errorf("waiting: %w", err))
		if d := one(t, diags); !strings.Contains(d.Detail(), want) {
			t.Errorf("%v: %s", err, d.Detail())
		}
	}
}

func TestDetailsAreSentences(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	base.AddError(&diags, "read", "x", errors.New("something broke"))
	if got, _, _ := strings.Cut(one(t, diags).Detail(), "\n"); got != "Something broke." {
		t.Errorf("got %q", got)
	}
}

func TestProviderDataOfAnotherTypeIsAnError(t *testing.T) {
	t.Parallel()
	var b base.ResourceBase
	var resp resource.ConfigureResponse
	b.Configure(context.Background(), resource.ConfigureRequest{ProviderData: "nonsense"}, &resp)
	if !resp.Diagnostics.HasError() {
		t.Error("it was accepted")
	}
	var none resource.ConfigureResponse
	b.Configure(context.Background(), resource.ConfigureRequest{}, &none)
	if len(none.Diagnostics) > 0 {
		t.Errorf("no data is normal while validating, and gave %v", none.Diagnostics)
	}
	if b.Data.Known() {
		t.Error("a provider without data is taken for configured")
	}
}

type token string

func (t token) LogValue() slog.Value { return slog.StringValue("token " + string(t)) }

func TestLogsCarryNoSecret(t *testing.T) {
	t.Parallel()
	const uuid, password = "8f1c4f7e-1111-2222-3333-444455556666", "correct horse"
	key := "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nc2Vjb25kbGluZW9mdGhla2V5\n-----END OPENSSH PRIVATE KEY-----\n"
	var out bytes.Buffer
	ctx := tflogtest.RootLogger(context.Background(), &out)

	log := base.NewLogger("u@pve!t="+uuid, uuid, password, key)
	log = log.With("with", "PVEAPIToken=u@pve!t="+uuid).WithGroup("request")
	log.ErrorContext(ctx, "message "+password, "key", key, "bytes", []string{uuid}, "err", fmt.Errorf("wrapped %s", uuid))
	log.DebugContext(ctx, "debug", slog.Group("inner", "value", token(uuid)))
	log.Log(ctx, slog.LevelDebug-4, "trace", "line", "c2Vjb25kbGluZW9mdGhla2V5")
	log.WarnContext(ctx, "warn", uuid, "as a key")
	log.InfoContext(ctx, "info", "harmless", "value")

	text := out.String()
	for _, secret := range []string{uuid, password, "b3BlbnNzaC1rZXktdjEAAAAA", "c2Vjb25kbGluZW9mdGhla2V5"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q:\n%s", secret, text)
		}
	}
	for _, want := range []string{`"request.harmless":"value"`, `"request.inner.value":"token ***"`, `"@level":"error"`, `"@level":"trace"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s:\n%s", want, text)
		}
	}
}

func TestALogWithoutAContextGoesNowhere(t *testing.T) {
	t.Parallel()
	base.NewLogger("secret-secret").Info("nobody listens") // must not panic
}
