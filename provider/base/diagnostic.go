package base

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// ProviderPrefix begins the attribute of a problem that lies in the provider block.
const ProviderPrefix = "provider."

// AddError is the one way from an error of the layers below to a diagnostic: the summary says what was tried
// ("Unable to create container web-1"), the detail the cause and what to do next. Problems with a specification become
// one diagnostic each, at the attribute that they name. The detail ends with the failure's code, and where a privilege
// is missing it points to sandbox_preflight.
func AddError(diags *diag.Diagnostics, verb, thing string, err error) {
	var problems *sandbox.ProblemsError
	if errors.As(err, &problems) {
		AddProblems(diags, problems.Problems)
		return
	}
	diags.AddError(fmt.Sprintf("Unable to %s %s", verb, thing), detail(err))
}

// AddProblems adds a diagnostic for each problem, at its attribute.
func AddProblems(diags *diag.Diagnostics, problems []sandbox.Problem) {
	for _, p := range problems {
		text := p.Detail
		if !p.Warning {
			text = withCode(text, sandbox.CodeConfiguration)
		}
		at := AttributePath(p.Attribute)
		if name, ok := strings.CutPrefix(p.Attribute, ProviderPrefix); ok {
			text = sentence(fmt.Sprintf("attribute %s of the provider block", name)) + " " + text
			at = path.Empty()
		}
		switch {
		case at.Equal(path.Empty()) && p.Warning:
			diags.AddWarning(p.Summary, text)
		case at.Equal(path.Empty()):
			diags.AddError(p.Summary, text)
		case p.Warning:
			diags.AddAttributeWarning(at, p.Summary, text)
		default:
			diags.AddAttributeError(at, p.Summary, text)
		}
	}
}

// AddWarnings adds what an operation that went through wants the user to know.
func AddWarnings(diags *diag.Diagnostics, warnings []sandbox.Warning) {
	for _, w := range warnings {
		diags.AddWarning(w.Summary, w.Detail)
	}
}

// AttributePath turns "network.ipv4" or "authorized_keys[0]" into a path.
func AttributePath(dotted string) path.Path {
	at := path.Empty()
	if dotted == "" {
		return at
	}
	for _, step := range strings.Split(dotted, ".") {
		name, index, indexed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		at = at.AtName(name)
		if n, err := strconv.Atoi(index); indexed && err == nil {
			at = at.AtListIndex(n)
		}
	}
	return at
}

// detail writes cause and remedy as paragraphs.
func detail(err error) string {
	var b strings.Builder
	var failure *sandbox.Error
	if errors.As(err, &failure) {
		withoutRemedy := *failure
		withoutRemedy.Remedy = ""
		b.WriteString(sentence(withoutRemedy.Error()))
		if failure.Remedy != "" {
			b.WriteString("\n\n" + sentence(failure.Remedy))
		}
	} else {
		b.WriteString(sentence(err.Error()))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		b.WriteString("\n\nTime ran out: the limits are those of the attribute timeouts.")
	case errors.Is(err, context.Canceled):
		b.WriteString("\n\nThe operation was interrupted. The next apply goes on from what the server holds then.")
	case errors.Is(err, sandbox.ErrNoOwner) && (failure == nil || failure.Remedy == ""):
		b.WriteString("\n\nSet owner in the provider block, or SANDBOX_OWNER.")
	}
	code := sandbox.CodeOf(err)
	if code == sandbox.CodeForbidden {
		b.WriteString("\n\nThe data source sandbox_preflight lists every privilege that is missing, and the commands that grant them.")
	}
	return withCode(b.String(), code)
}

// AddCoded adds an error that no error value stands for, with its code.
func AddCoded(diags *diag.Diagnostics, summary, text string, code sandbox.Code) {
	diags.AddError(summary, withCode(text, code))
}

// withCode puts the code where it stands in every error: a last line of its own, which the guide "Errors" lists.
func withCode(text string, code sandbox.Code) string {
	return fmt.Sprintf("%s\n\nError code %s.", text, code)
}

// sentence begins with a capital and ends in a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	first, size := utf8.DecodeRuneInString(s)
	// A method, a quoted name or an attribute at the beginning stays as it is.
	word, _, _ := strings.Cut(s, " ")
	if unicode.IsLower(first) && !strings.Contains(word, "_") {
		s = string(unicode.ToUpper(first)) + s[size:]
	}
	if s != "" && !strings.ContainsRune(".!?:)\"", rune(s[len(s)-1])) {
		s += "."
	}
	return s
}
