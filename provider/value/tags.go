package value

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

var (
	_ basetypes.SetTypable                    = TagsType{}
	_ basetypes.SetValuableWithSemanticEquals = Tags{}
)

// TagsType is a set of strings that the server stores in lower case, sorted and without duplicates.
type TagsType struct{ basetypes.SetType }

// NewTagsType returns the type to use in schemas.
func NewTagsType() TagsType { return TagsType{basetypes.SetType{ElemType: types.StringType}} }

// Equal tells whether other is the same type.
func (t TagsType) Equal(other attr.Type) bool {
	o, ok := other.(TagsType)
	return ok && t.SetType.Equal(o.SetType)
}

// String names the type in messages of the framework.
func (t TagsType) String() string { return "value.Tags" }

// ValueType returns the type's zero value.
func (t TagsType) ValueType(context.Context) attr.Value {
	return Tags{basetypes.NewSetNull(types.StringType)}
}

// ValueFromSet wraps a framework set.
func (t TagsType) ValueFromSet(_ context.Context, in basetypes.SetValue) (basetypes.SetValuable, diag.Diagnostics) {
	return Tags{in}, nil
}

// ValueFromTerraform reads the wire value.
func (t TagsType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	v, err := t.SetType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	set, ok := v.(basetypes.SetValue)
	if !ok {
		return nil, fmt.Errorf("unexpected value type %T for %s", v, t)
	}
	return Tags{set}, nil
}

// Tags is a set of tags.
type Tags struct{ basetypes.SetValue }

// NullTags returns "no tags said".
func NullTags() Tags { return Tags{basetypes.NewSetNull(types.StringType)} }

// NewTags returns a known set.
func NewTags(tags []string) Tags {
	elements := make([]attr.Value, 0, len(tags))
	for _, tag := range tags {
		elements = append(elements, types.StringValue(tag))
	}
	return Tags{basetypes.NewSetValueMust(types.StringType, elements)}
}

// Type returns the value's type.
func (v Tags) Type(context.Context) attr.Type { return NewTagsType() }

// Equal tells whether both hold the same spellings.
func (v Tags) Equal(other attr.Value) bool {
	o, ok := other.(Tags)
	return ok && v.SetValue.Equal(o.SetValue)
}

// SetSemanticEquals tells whether the server would store both alike.
func (v Tags) SetSemanticEquals(_ context.Context, other basetypes.SetValuable) (bool, diag.Diagnostics) {
	o, ok := other.(Tags)
	if !ok {
		return false, nil
	}
	return v.Same(o), nil
}

// Same tells whether the server would store both alike. A set with an unknown element equals only itself.
func (v Tags) Same(other Tags) bool {
	a, aKnown := v.Normalised()
	b, bKnown := other.Normalised()
	if !aKnown || !bKnown {
		return v.SetValue.Equal(other.SetValue)
	}
	return slices.Equal(a, b)
}

// Normalised returns the tags as the server stores them: lower case, sorted, each once. It is false while any is unknown;
// a null set has none.
func (v Tags) Normalised() ([]string, bool) {
	if v.IsUnknown() {
		return nil, false
	}
	var tags []string
	for _, element := range v.Elements() {
		tag, ok := element.(types.String)
		if !ok || tag.IsUnknown() {
			return nil, false
		}
		tags = append(tags, strings.ToLower(tag.ValueString()))
	}
	slices.Sort(tags)
	return slices.Compact(tags), true
}
