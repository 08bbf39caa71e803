package value

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Known tells whether a value says something.
func Known(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

// TextOrNull reads an empty text as "not set".
func TextOrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// TextList makes a list; nil becomes an empty one.
func TextList(items []string) types.List {
	elements := make([]attr.Value, len(items))
	for i, item := range items {
		elements[i] = types.StringValue(item)
	}
	return types.ListValueMust(types.StringType, elements)
}

// Texts reads a list of strings; nil for one that is null or unknown.
func Texts(list types.List) []string {
	var out []string
	for _, element := range list.Elements() {
		if s, ok := element.(types.String); ok {
			out = append(out, s.ValueString())
		}
	}
	return out
}
