// Command factsgen condenses a Proxmox VE API schema into the table of parameter facts that the lab checks requests
// against. The schema comes from a server (`pvesh usage` or the API viewer's data, as {path: {METHOD: info}}); what is
// kept are facts only: names, types, formats, patterns, limits and the permission expression.
//
//	go run ./internal/lab/server/factsgen -schema api-schema.json > internal/lab/server/facts.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
)

// unserved are parts of the API that the lab doesn't serve. Their read-only lists stay: clients look at them.
var unserved = []string{"/qemu/{vmid}/", "/openid", "/cluster/sdn/", "/access/tfa/{userid}/", "/spiceproxy", "websocket", "/mtunnel", "/file-restore"}

var keptLists = map[string]bool{"/cluster/sdn/zones": true, "/cluster/sdn/vnets": true}

type method struct {
	Parameters  struct{ Properties map[string]map[string]any }
	Permissions map[string]any
	Protected   any
	Proxyto     any
	AllowToken  any
}

func main() {
	schema := flag.String("schema", "", "API schema, JSON of the form {path: {METHOD: info}}")
	flag.Parse()
	if err := run(*schema); err != nil {
		fmt.Fprintln(os.Stderr, "factsgen:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	table, err := generate(path)
	if err != nil {
		return err
	}
	_, err = fmt.Print(table)
	return err
}

// generate makes the table of a schema's file.
func generate(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var all map[string]map[string]method
	if err := json.Unmarshal(raw, &all); err != nil {
		return "", err
	}
	var lines []string
	for p, methods := range all {
		for m, info := range methods {
			if !served(p, m) {
				continue
			}
			line, err := json.Marshal(condense(info))
			if err != nil {
				return "", err
			}
			lines = append(lines, fmt.Sprintf("%q:%s", m+" "+p, line))
		}
	}
	sort.Strings(lines)
	return fmt.Sprintf("{\n%s\n}\n", strings.Join(lines, ",\n")), nil
}

func served(path, verb string) bool {
	if keptLists[path] {
		return verb == "GET"
	}
	for _, part := range unserved {
		if strings.Contains(path, part) {
			return false
		}
	}
	return !strings.HasSuffix(path, "/qemu") || verb == "GET"
}

func condense(info method) map[string]any {
	out := map[string]any{}
	if params := condenseParams(info.Parameters.Properties); len(params) > 0 {
		out["params"] = params
	}
	if check, ok := info.Permissions["check"]; ok {
		out["check"] = check
	}
	if user, ok := info.Permissions["user"]; ok {
		out["user"] = user
	}
	if truthy(info.Protected) {
		out["protected"] = true
	}
	if info.Proxyto == "node" {
		out["node"] = true
	}
	return out
}

var short = map[string]string{
	"type": "type", "pattern": "pattern", "enum": "enum", "requires": "requires",
	"minimum": "min", "maximum": "max", "minLength": "minlen", "maxLength": "maxlen",
}

func condenseParams(properties map[string]map[string]any) map[string]any {
	out := map[string]any{}
	for name, property := range properties {
		fact := map[string]any{}
		for from, to := range short {
			if value, ok := property[from]; ok {
				fact[to] = number(to, value)
			}
		}
		if truthy(property["optional"]) {
			fact["optional"] = true
		}
		if truthy(property["default_key"]) {
			fact["defaultkey"] = true
		}
		switch format := property["format"].(type) {
		case string:
			fact["format"] = format
		case map[string]any:
			nested := map[string]map[string]any{}
			for key, value := range format {
				if m, ok := value.(map[string]any); ok {
					nested[key] = m
				}
			}
			fact["keys"] = condenseParams(nested)
		}
		out[name] = fact
	}
	return out
}

// number makes limits numbers: the schema has some as strings.
func number(key string, value any) any {
	if s, ok := value.(string); ok && (strings.HasPrefix(key, "m")) {
		if f, err := json.Number(s).Float64(); err == nil {
			return f
		}
	}
	return value
}

func truthy(v any) bool {
	switch x := v.(type) {
	case bool:
		return x
	case float64:
		return x != 0
	case string:
		return x != "" && x != "0"
	}
	return false
}
