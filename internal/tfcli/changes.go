package tfcli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"
)

// Change is what a plan would do to one object.
type Change struct {
	Address    string // "output.<name>" for an output
	Action     string // "create", "update", "delete", or "delete,create" for a replacement
	Attributes []Attribute
}

// Attribute is a top-level attribute that a change would give another value, both as JSON. What isn't known before the
// apply is left out, and what is sensitive is not shown.
type Attribute struct{ Name, Before, After string }

// Changes are all of a plan's, in the order of their addresses.
type Changes []Change

// Changes plans, and returns what would be done. None means that the configuration is what is.
func (w *Workspace) Changes(ctx context.Context, options ...tfexec.PlanOption) (Changes, error) {
	file := filepath.Join(w.Dir, "..", "changes.plan")
	if _, err := w.Plan(ctx, append(options, tfexec.Out(file))...); err != nil {
		return nil, err
	}
	plan, err := w.ShowPlanFile(ctx, file)
	if err != nil {
		return nil, err
	}
	var changes Changes
	for _, c := range plan.ResourceChanges {
		if !c.Change.Actions.NoOp() && !c.Change.Actions.Read() {
			changes = append(changes, Change{Address: c.Address, Action: join(c.Change.Actions), Attributes: attributes(c.Change)})
		}
	}
	for name, c := range plan.OutputChanges {
		if !c.Actions.NoOp() {
			changes = append(changes, Change{Address: "output." + name, Action: join(c.Actions)})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Address, b.Address) })
	return changes, nil
}

// Actions is each address with its action.
func (c Changes) Actions() map[string]string {
	actions := make(map[string]string, len(c))
	for _, change := range c {
		actions[change.Address] = change.Action
	}
	return actions
}

// String puts changes into one line; "no changes" for none.
func (c Changes) String() string {
	if len(c) == 0 {
		return "no changes"
	}
	lines := make([]string, len(c))
	for i, change := range c {
		lines[i] = change.String()
	}
	return strings.Join(lines, "; ")
}

// String is the address, the action, and each attribute with what it would become.
func (c Change) String() string {
	s := c.Address + ": " + c.Action
	for i, a := range c.Attributes {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf(" %s %s -> %s", a.Name, a.Before, a.After)
	}
	return s
}

func attributes(c *tfjson.Change) []Attribute {
	before, _ := c.Before.(map[string]any) // nil for a creation
	after, _ := c.After.(map[string]any)   // nil for a destruction
	if before == nil || after == nil {
		return nil
	}
	var changed []Attribute
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if marked(c.AfterUnknown, name) {
			continue
		}
		a := Attribute{Name: name, Before: asJSON(before[name]), After: asJSON(after[name])}
		if a.Before == a.After {
			continue
		}
		if marked(c.AfterSensitive, name) || marked(c.BeforeSensitive, name) {
			a.Before, a.After = "(sensitive)", "(sensitive)"
		}
		changed = append(changed, a)
	}
	return changed
}

// marked says whether a plan's tree of marks has one at or below an attribute.
func marked(marks any, attribute string) bool {
	tree, _ := marks.(map[string]any)
	return anyTrue(tree[attribute])
}

func anyTrue(mark any) bool {
	switch m := mark.(type) {
	case bool:
		return m
	case map[string]any:
		for _, below := range m {
			if anyTrue(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(m, anyTrue)
	}
	return false
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

func join(actions tfjson.Actions) string {
	words := make([]string, len(actions))
	for i, a := range actions {
		words[i] = string(a)
	}
	return strings.Join(words, ",")
}
