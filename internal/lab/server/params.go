package server

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	integerForm = regexp.MustCompile(`\A[+-]?\d+\z`)
	numberForm  = regexp.MustCompile(`\A[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\z`)
)

const notInSchema = "property is not defined in schema and the schema does not allow additional properties"

// checkParams checks all parameters of a method; the error is the server's 400 with one text for each parameter.
func checkParams(fact *methodFact, given params) error {
	errs := map[string]string{}
	for name, value := range given {
		f, ok := fact.fact(name)
		if !ok {
			if !fact.Open {
				errs[name] = notInSchema
			}
			continue
		}
		if text := checkValue(f, value, name); text != "" {
			errs[name] = text
		}
		if f.Requires != "" && !given.has(f.Requires) {
			errs[f.Requires] = fmt.Sprintf("missing property - '%s' requires this property", name)
		}
	}
	for name, f := range fact.Params {
		if !f.Optional && !given.has(name) && errs[name] == "" && !strings.HasSuffix(name, "[n]") {
			errs[name] = "property is missing and it is not optional"
		}
	}
	if len(errs) > 0 {
		return paramErrors(errs)
	}
	return nil
}

// checkValue checks one value in the server's order: type, longest length, format, pattern, shortest length, limits,
// enumeration. Empty is right.
func checkValue(f paramFact, value, name string) string {
	switch f.Type {
	case "integer":
		if !integerForm.MatchString(value) {
			return fmt.Sprintf("type check ('integer') failed - got '%s'", value)
		}
	case "number":
		if !numberForm.MatchString(value) {
			return fmt.Sprintf("type check ('number') failed - got '%s'", value)
		}
	case "boolean":
		if value != "0" && value != "1" {
			return fmt.Sprintf("type check ('boolean') failed - got '%s'", value)
		}
	}
	n := float64(len([]rune(value)))
	if f.MaxLen != nil && n > *f.MaxLen {
		return fmt.Sprintf("value may only be %.0f characters long", *f.MaxLen)
	}
	if f.Keys != nil {
		if err := checkPropertyString(f.Keys, value, name); err != nil {
			return "invalid format - " + err.Error() + "\n"
		}
	} else if f.Format != "" {
		if err := checkFormat(f.Format, value); err != nil {
			return "invalid format - " + err.Error() + "\n"
		}
	}
	if f.Pattern != "" && !matches(f.Pattern, value) {
		return "value does not match the regex pattern"
	}
	if f.MinLen != nil && n < *f.MinLen {
		return fmt.Sprintf("value must be at least %.0f characters long", *f.MinLen)
	}
	return checkLimits(f, value)
}

func checkLimits(f paramFact, value string) string {
	if f.Type == "integer" || f.Type == "number" {
		n, _ := strconv.ParseFloat(value, 64)
		if f.Min != nil && n < *f.Min {
			return fmt.Sprintf("value must have a minimum value of %s", trimFloat(*f.Min))
		}
		if f.Max != nil && n > *f.Max {
			return fmt.Sprintf("value must have a maximum value of %s", trimFloat(*f.Max))
		}
	}
	if len(f.Enum) > 0 {
		for _, allowed := range f.Enum {
			if allowed == value {
				return ""
			}
		}
		return fmt.Sprintf("value '%s' does not have a value in the enumeration '%s'", value, strings.Join(f.Enum, ", "))
	}
	return ""
}

func trimFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// parsePropertyString splits "name=eth0,bridge=vmbr0"; a part without a key belongs to the default key.
func parsePropertyString(keys map[string]paramFact, value string) (map[string]string, error) {
	out := map[string]string{}
	for _, part := range strings.Split(value, ",") {
		if part == "" {
			continue
		}
		key, val, hasKey := strings.Cut(part, "=")
		if !hasKey {
			defaultKey := ""
			for name, f := range keys {
				if f.DefaultKey {
					defaultKey = name
				}
			}
			if defaultKey == "" {
				return nil, fmt.Errorf("value without key, but schema does not define a default key")
			}
			key, val = defaultKey, part
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("duplicate key in comma-separated list property: %s", key)
		}
		out[key] = val
	}
	return out, nil
}

// checkPropertyString checks every key of a property string. Texts name the whole path: "net0.ip: …".
func checkPropertyString(keys map[string]paramFact, value, name string) error {
	parsed, err := parsePropertyString(keys, value)
	if err != nil {
		return err
	}
	var texts []string
	for key, val := range parsed {
		f, ok := keys[key]
		if !ok {
			texts = append(texts, fmt.Sprintf("%s.%s: %s\n", name, key, notInSchema))
		} else if text := checkValue(f, val, key); text != "" {
			texts = append(texts, fmt.Sprintf("%s.%s: %s\n", name, key, text))
		}
	}
	for key, f := range keys {
		if _, ok := parsed[key]; !ok && !f.Optional {
			texts = append(texts, fmt.Sprintf("%s.%s: property is missing and it is not optional\n", name, key))
		}
	}
	if len(texts) > 0 {
		return fmt.Errorf("format error\n%s", strings.TrimSuffix(strings.Join(texts, ""), "\n"))
	}
	return nil
}

// propertyKeys are the facts about the keys of a property-string parameter, "net[n]" of a method.
func propertyKeys(method, template, param string) map[string]paramFact {
	return loadFacts()[method+" "+template].Params[param].Keys
}
