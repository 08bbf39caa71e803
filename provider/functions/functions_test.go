package functions_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/functions"
)

func run(t *testing.T, f function.Function, argument string, empty attr.Value) (attr.Value, string) {
	t.Helper()
	resp := function.RunResponse{Result: function.NewResultData(empty)}
	f.Run(context.Background(), function.RunRequest{Arguments: function.NewArgumentsData([]attr.Value{types.StringValue(argument)})}, &resp)
	if resp.Error != nil {
		return nil, resp.Error.Error()
	}
	return resp.Result.Value(), ""
}

func TestSnapshotNameMakesNamesThatTheServerTakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"before-upgrade":  "before-upgrade",
		"v1.2.3":          "v1-2-3",
		"2026-12-01":      "s-2026-12-01",
		"before: upgrade": "before-upgrade",
	} {
		got, problem := run(t, functions.NewSnapshotName(), text, types.StringUnknown())
		if problem != "" || !got.Equal(types.StringValue(want)) {
			t.Errorf("snapshot_name(%q) = %v %s, want %q", text, got, problem, want)
		}
	}
	if _, problem := run(t, functions.NewSnapshotName(), "", types.StringUnknown()); problem == "" {
		t.Error("an empty text was accepted")
	}
}

func TestSizeMiBCountsInPowersOf1024(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"8G": 8192, "512MiB": 512, "1.5G": 1536, "1T": 1 << 20, "2048K": 2, "300": 300} {
		got, problem := run(t, functions.NewSizeMiB(), text, types.Int64Unknown())
		if problem != "" || !got.Equal(types.Int64Value(want)) {
			t.Errorf("size_mib(%q) = %v %s, want %d", text, got, problem, want)
		}
	}
	for _, text := range []string{"", "G", "8X", "-1G", "1000K"} {
		if got, problem := run(t, functions.NewSizeMiB(), text, types.Int64Unknown()); problem == "" {
			t.Errorf("size_mib(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseContainerIDReadsBothFormsOfAnImportID(t *testing.T) {
	t.Parallel()
	shape := map[string]attr.Type{"vmid": types.Int64Type, "node_name": types.StringType}
	for text, want := range map[string]map[string]attr.Value{
		"100012":      {"vmid": types.Int64Value(100012), "node_name": types.StringNull()},
		"pve1/100012": {"vmid": types.Int64Value(100012), "node_name": types.StringValue("pve1")},
	} {
		got, problem := run(t, functions.NewParseContainerID(), text, types.ObjectUnknown(shape))
		if problem != "" || !got.Equal(types.ObjectValueMust(shape, want)) {
			t.Errorf("parse_container_id(%q) = %v %s", text, got, problem)
		}
	}
	for _, text := range []string{"", "99", "pve1/", "/100012", "a b/100012", "100012/pve1", "0100012"} {
		if _, problem := run(t, functions.NewParseContainerID(), text, types.ObjectUnknown(shape)); !strings.Contains(problem, "vmid") && !strings.Contains(problem, "100") {
			t.Errorf("parse_container_id(%q): want an error that says what is meant, got %q", text, problem)
		}
	}
}
