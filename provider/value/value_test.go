package value_test

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

func TestTextsThatMeanTheSame(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of   value.StringType
		a, b string
		same bool
	}{
		"a line feed that the server adds":  {value.DescriptionType, "note", "note\n", true},
		"line ends of Windows":              {value.DescriptionType, "a\r\nb", "a\nb", true},
		"a description in other case":       {value.DescriptionType, "Note", "note", false},
		"a space at the end":                {value.DescriptionType, "note ", "note", false},
		"two spellings of an IPv6 address":  {value.AddressType, "2001:DB8::0:1/64", "2001:db8::1/64", true},
		"another prefix length":             {value.AddressType, "10.0.0.5/24", "10.0.0.5/16", false},
		"a word":                            {value.AddressType, "auto", "auto", true},
		"two words":                         {value.AddressType, "auto", "dhcp", false},
		"a MAC address in other case":       {value.MACType, "bc:24:11:00:00:0a", "BC:24:11:00:00:0A", true},
		"another MAC address":               {value.MACType, "bc:24:11:00:00:0a", "bc:24:11:00:00:0b", false},
		"a host address isn't its own net.": {value.AddressType, "10.0.0.5/24", "10.0.0.0/24", false},
	} {
		same, diags := test.of.Known(test.a).StringSemanticEquals(context.Background(), test.of.Known(test.b))
		if diags.HasError() || same != test.same {
			t.Errorf("%s: %q and %q: same = %t, want %t", name, test.a, test.b, same, test.same)
		}
	}
}

func TestTagsAreComparedAsTheServerStoresThem(t *testing.T) {
	t.Parallel()
	a := value.NewTags([]string{"Foo", "bar"})
	if same, _ := a.SetSemanticEquals(context.Background(), value.NewTags([]string{"bar", "foo"})); !same {
		t.Error("a difference in case counts")
	}
	if same, _ := a.SetSemanticEquals(context.Background(), value.NewTags([]string{"bar"})); same {
		t.Error("a missing tag doesn't count")
	}
	unknown := value.Tags{SetValue: types.SetValueMust(types.StringType, []attr.Value{types.StringUnknown()})}
	if _, known := unknown.Normalised(); known {
		t.Error("an unknown tag is taken for known")
	}
}

func TestKeepEqualKeepsOnlyWhatMeansTheSame(t *testing.T) {
	t.Parallel()
	plan := func(state, config string) string {
		resp := planmodifier.StringResponse{PlanValue: types.StringValue(config)}
		value.DescriptionType.KeepEqual().PlanModifyString(context.Background(),
			planmodifier.StringRequest{StateValue: types.StringValue(state), PlanValue: types.StringValue(config)}, &resp)
		return resp.PlanValue.ValueString()
	}
	if got := plan("note", "note\n"); got != "note" {
		t.Errorf("planned %q for the same note", got)
	}
	if got := plan("note", "NOTE"); got != "NOTE" {
		t.Errorf("planned %q for another note", got)
	}
}
