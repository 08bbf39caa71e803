package main

import (
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// converter turns the protocol's schemas into those of terraform-json and collects what it can't express.
type converter struct{ problems []error }

func (c *converter) schemas(from map[string]*tfprotov6.Schema) map[string]*tfjson.Schema {
	to := make(map[string]*tfjson.Schema, len(from))
	for name, s := range from {
		to[name] = c.schema(name, s)
	}
	return to
}

func (c *converter) schema(name string, s *tfprotov6.Schema) *tfjson.Schema {
	if len(s.Block.BlockTypes) > 0 {
		c.problems = append(c.problems, fmt.Errorf("%s: this provider has nested attributes, never blocks", name))
	}
	return &tfjson.Schema{
		Version: uint64(s.Version),
		Block: &tfjson.SchemaBlock{
			Attributes:      c.attributes(name, s.Block.Attributes),
			Description:     s.Block.Description,
			DescriptionKind: kind(s.Block.DescriptionKind),
			Deprecated:      s.Block.Deprecated,
		},
	}
}

func (c *converter) attributes(owner string, from []*tfprotov6.SchemaAttribute) map[string]*tfjson.SchemaAttribute {
	to := make(map[string]*tfjson.SchemaAttribute, len(from))
	for _, a := range from {
		name := owner + "." + a.Name
		attribute := &tfjson.SchemaAttribute{
			Description:     a.Description,
			DescriptionKind: kind(a.DescriptionKind),
			Deprecated:      a.Deprecated,
			Required:        a.Required,
			Optional:        a.Optional,
			Computed:        a.Computed,
			Sensitive:       a.Sensitive,
			WriteOnly:       a.WriteOnly,
		}
		if a.Description == "" {
			c.problems = append(c.problems, fmt.Errorf("%s has no description", name))
		}
		if a.NestedType == nil {
			attribute.AttributeType = c.typeOf(name, a.Type)
		} else {
			attribute.AttributeNestedType = &tfjson.SchemaNestedAttributeType{
				Attributes:  c.attributes(name, a.NestedType.Attributes),
				NestingMode: nesting[a.NestedType.Nesting],
			}
		}
		to[a.Name] = attribute
	}
	return to
}

func (c *converter) function(name string, f *tfprotov6.Function) *tfjson.FunctionSignature {
	signature := &tfjson.FunctionSignature{
		Summary:            f.Summary,
		Description:        f.Description,
		DeprecationMessage: f.DeprecationMessage,
		ReturnType:         c.typeOf(name, f.Return.Type),
	}
	for _, p := range f.Parameters {
		signature.Parameters = append(signature.Parameters, c.parameter(name, p))
	}
	if f.VariadicParameter != nil {
		signature.VariadicParameter = c.parameter(name, f.VariadicParameter)
	}
	return signature
}

func (c *converter) parameter(function string, p *tfprotov6.FunctionParameter) *tfjson.FunctionParameter {
	return &tfjson.FunctionParameter{
		Name:        p.Name,
		Description: p.Description,
		IsNullable:  p.AllowNullValue,
		Type:        c.typeOf(function+"."+p.Name, p.Type),
	}
}

func (c *converter) identity(name string, s *tfprotov6.ResourceIdentitySchema) *tfjson.IdentitySchema {
	identity := &tfjson.IdentitySchema{Version: uint64(s.Version), Attributes: map[string]*tfjson.IdentityAttribute{}}
	for _, a := range s.IdentityAttributes {
		identity.Attributes[a.Name] = &tfjson.IdentityAttribute{
			IdentityType:      c.typeOf(name+"."+a.Name, a.Type),
			Description:       a.Description,
			RequiredForImport: a.RequiredForImport,
			OptionalForImport: a.OptionalForImport,
		}
	}
	return identity
}

// typeOf turns the protocol's type into cty's.
func (c *converter) typeOf(name string, t tftypes.Type) cty.Type {
	switch {
	case t.Is(tftypes.String):
		return cty.String
	case t.Is(tftypes.Number):
		return cty.Number
	case t.Is(tftypes.Bool):
		return cty.Bool
	case t.Is(tftypes.DynamicPseudoType):
		return cty.DynamicPseudoType
	}
	switch t := t.(type) {
	case tftypes.List:
		return cty.List(c.typeOf(name, t.ElementType))
	case tftypes.Set:
		return cty.Set(c.typeOf(name, t.ElementType))
	case tftypes.Map:
		return cty.Map(c.typeOf(name, t.ElementType))
	case tftypes.Object:
		attributes := make(map[string]cty.Type, len(t.AttributeTypes))
		for attribute, of := range t.AttributeTypes {
			attributes[attribute] = c.typeOf(name+"."+attribute, of)
		}
		return cty.Object(attributes)
	case tftypes.Tuple:
		elements := make([]cty.Type, len(t.ElementTypes))
		for i, of := range t.ElementTypes {
			elements[i] = c.typeOf(name, of)
		}
		return cty.Tuple(elements)
	default:
		c.problems = append(c.problems, fmt.Errorf("%s has a type without a JSON form: %s", name, t))
		return cty.DynamicPseudoType
	}
}

var nesting = map[tfprotov6.SchemaObjectNestingMode]tfjson.SchemaNestingMode{
	tfprotov6.SchemaObjectNestingModeSingle: tfjson.SchemaNestingModeSingle,
	tfprotov6.SchemaObjectNestingModeList:   tfjson.SchemaNestingModeList,
	tfprotov6.SchemaObjectNestingModeSet:    tfjson.SchemaNestingModeSet,
	tfprotov6.SchemaObjectNestingModeMap:    tfjson.SchemaNestingModeMap,
}

func kind(k tfprotov6.StringKind) tfjson.SchemaDescriptionKind {
	if k == tfprotov6.StringKindMarkdown {
		return tfjson.SchemaDescriptionKindMarkdown
	}
	return tfjson.SchemaDescriptionKindPlain
}
