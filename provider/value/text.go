// Package value holds the attribute types whose text can differ from what the server stores while meaning the same:
// such a difference is no drift and plans nothing.
package value

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

var (
	_ basetypes.StringTypable                    = StringType{}
	_ basetypes.StringValuableWithSemanticEquals = String{}
)

// canonical brings a text into the form in which equal meanings are equal texts.
type canonical struct {
	name string
	form func(string) string
}

// The kinds of text. Pointers, so that types compare by identity.
var (
	// description: the server ends every description with a line feed and stores no carriage returns.
	description = &canonical{"Description", func(s string) string {
		return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	}}
	// address: IPv6 has many spellings of one address.
	address = &canonical{"Address", canonicalAddress}
	// mac: hexadecimal digits in either case.
	mac = &canonical{"MAC", strings.ToUpper}
	// duration: Go's form has many spellings of one duration.
	duration = &canonical{"Duration", canonicalDuration}
)

func canonicalDuration(s string) string {
	if d, err := time.ParseDuration(s); err == nil {
		return d.String()
	}
	return s
}

func canonicalAddress(s string) string {
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.String()
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.String()
	}
	return s
}

// StringType is the type of a String.
type StringType struct {
	basetypes.StringType
	kind *canonical
}

// The types to use in schemas.
var (
	DescriptionType = StringType{kind: description}
	AddressType     = StringType{kind: address}
	MACType         = StringType{kind: mac}
	DurationType    = StringType{kind: duration}
)

// Equal tells whether other is the same type.
func (t StringType) Equal(other attr.Type) bool {
	o, ok := other.(StringType)
	return ok && t.kind == o.kind
}

// String names the type in messages of the framework.
func (t StringType) String() string { return "value." + t.kind.name }

// ValueType returns the type's zero value.
func (t StringType) ValueType(context.Context) attr.Value { return String{kind: t.kind} }

// ValueFromString wraps a framework string.
func (t StringType) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return String{StringValue: in, kind: t.kind}, nil
}

// ValueFromTerraform reads the wire value.
func (t StringType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	v, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	s, ok := v.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("unexpected value type %T for %s", v, t)
	}
	return String{StringValue: s, kind: t.kind}, nil
}

// Known returns the value of text.
func (t StringType) Known(text string) String {
	return String{StringValue: basetypes.NewStringValue(text), kind: t.kind}
}

// Null returns the type's null.
func (t StringType) Null() String {
	return String{StringValue: basetypes.NewStringNull(), kind: t.kind}
}

// String is a text whose spelling may differ from the server's.
type String struct {
	basetypes.StringValue
	kind *canonical
}

// Type returns the value's type.
func (v String) Type(context.Context) attr.Type { return StringType{kind: v.kind} }

// Equal tells whether both are spelled the same.
func (v String) Equal(other attr.Value) bool {
	o, ok := other.(String)
	return ok && v.kind == o.kind && v.StringValue.Equal(o.StringValue)
}

// StringSemanticEquals tells whether both mean the same.
func (v String) StringSemanticEquals(_ context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, ok := other.(String)
	if !ok {
		return false, nil
	}
	return v.Same(o), nil
}

// Same tells whether two known values mean the same.
func (v String) Same(other String) bool {
	if v.IsNull() || v.IsUnknown() || other.IsNull() || other.IsUnknown() {
		return v.StringValue.Equal(other.StringValue)
	}
	return v.kind.form(v.ValueString()) == v.kind.form(other.ValueString())
}

// Unix returns a description with the line ends that the server keeps.
func Unix(text string) string { return description.form(text) }

// Unknown returns the type's unknown value.
func (t StringType) Unknown() String {
	return String{StringValue: basetypes.NewStringUnknown(), kind: t.kind}
}
