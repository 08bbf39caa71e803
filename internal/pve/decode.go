package pve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// The server sends one value as a number here and as a string there, 0 and 1
// for booleans, null for what it doesn't know, and new keys with every release
// (cpulimit "0.5", privsep "1", prefix "24", pos "0"). decodeObject fills a
// struct by the tags of its fields, and takes all of that:
//
//	VMID  int     `pve:"vmid,must"`   an error unless it is there and a number
//	CPUs  float64 `pve:"cpus"`        left zero when absent, null or not a number
//	Tags  *string `pve:"tags"`        nil when absent or null
//	Extra Extra                       every key that no other field took
//
// A value that its field can't hold goes to Extra as it is: one odd value must
// not make a whole list unreadable.

// Extra holds the keys of an answer that its type doesn't know.
type Extra map[string]json.RawMessage

// fieldPlan is how to fill one field.
type fieldPlan struct {
	index int
	key   string
	must  bool
}

type structPlan struct {
	fields []fieldPlan
	extra  int // index of the Extra field, or -1
}

var (
	plans     sync.Map // reflect.Type → structPlan
	extraType = reflect.TypeFor[Extra]()
)

func planOf(t reflect.Type) structPlan {
	if known, ok := plans.Load(t); ok {
		if p, ok := known.(structPlan); ok {
			return p
		}
	}
	p := structPlan{extra: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == extraType {
			p.extra = i
			continue
		}
		tag := f.Tag.Get("pve")
		if tag == "" || tag == "-" {
			continue
		}
		key, opts, _ := strings.Cut(tag, ",")
		p.fields = append(p.fields, fieldPlan{index: i, key: key, must: opts == "must"})
	}
	plans.Store(t, p)
	return p
}

// decodeObject fills the struct that dst points to from a JSON object.
func decodeObject(data []byte, dst any) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return err
	}
	v := reflect.ValueOf(dst).Elem()
	plan := planOf(v.Type())
	for _, f := range plan.fields {
		raw, present := keys[f.key]
		if !present || isNull(raw) {
			if f.must {
				return fmt.Errorf("%q is missing", f.key)
			}
			delete(keys, f.key)
			continue
		}
		if err := setValue(v.Field(f.index), raw); err != nil {
			if f.must {
				return fmt.Errorf("%q: %w", f.key, err)
			}
			continue // stays among the unknown keys
		}
		delete(keys, f.key)
	}
	if plan.extra >= 0 && len(keys) > 0 {
		v.Field(plan.extra).Set(reflect.ValueOf(Extra(keys)))
	}
	return nil
}

func isNull(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null"))
}

// setValue sets one field from one JSON value, by the field's kind.
func setValue(field reflect.Value, raw json.RawMessage) error {
	if field.Kind() == reflect.Pointer {
		target := reflect.New(field.Type().Elem())
		if err := setValue(target.Elem(), raw); err != nil {
			return err
		}
		field.Set(target)
		return nil
	}
	switch field.Kind() {
	case reflect.String:
		s, err := scalarText(raw)
		if err != nil {
			return err
		}
		field.SetString(s)
	case reflect.Bool:
		s, err := scalarText(raw)
		if err != nil {
			return err
		}
		b, err := parseFlag(s)
		if err != nil {
			return err
		}
		field.SetBool(b)
	case reflect.Int, reflect.Int64:
		s, err := scalarText(raw)
		if err != nil {
			return err
		}
		n, err := parseWhole(s)
		if err != nil {
			return err
		}
		field.SetInt(n)
	case reflect.Float64:
		s, err := scalarText(raw)
		if err != nil {
			return err
		}
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return err
		}
		field.SetFloat(n)
	default:
		return json.Unmarshal(raw, field.Addr().Interface())
	}
	return nil
}

// scalarText returns a JSON string, number or boolean as the text that the
// server's configuration has for it; objects and lists are an error.
func scalarText(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "", fmt.Errorf("no value")
	}
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case 't':
		return "1", nil
	case 'f':
		return "0", nil
	case 'n':
		return "", nil
	case '{', '[':
		return "", fmt.Errorf("a single value was expected, got %.40s", raw)
	}
	return string(raw), nil
}

// parseFlag reads a boolean of the API or of a configuration file. Any number
// but 0 is true: the datacenter's firewall is on since a time stamp.
func parseFlag(s string) (bool, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n != 0, nil
	}
	switch s {
	case "on", "yes", "true":
		return true, nil
	case "off", "no", "false", "":
		return false, nil
	}
	return false, fmt.Errorf("%q is not a boolean", s)
}

// parseWhole reads an integer, also one written as 1.0 or 1e3.
func parseWhole(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	if f != float64(int64(f)) {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return int64(f), nil
}
