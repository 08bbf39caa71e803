package exec

import (
	"context"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

var (
	absolutePath    = regexp.MustCompile(`^/`)
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func variableName() validator.String {
	return stringvalidator.RegexMatches(variablePattern, `must be the name of an environment variable: letters, digits and "_", no digit first`)
}

// command is what the plan asks the domain to run.
func (m *model) command(ctx context.Context, diags *diag.Diagnostics) sandbox.Command {
	cmd := sandbox.Command{
		Script:      m.Script.ValueString(),
		Dir:         m.WorkingDir.ValueString(),
		StdoutLimit: outputLimit,
		StderrLimit: outputLimit,
		KeepTail:    true,
	}
	if !m.Command.IsNull() {
		var argv []string
		diags.Append(m.Command.ElementsAs(ctx, &argv, false)...)
		if len(argv) > 0 {
			cmd.Path, cmd.Args = argv[0], argv[1:]
		}
	}
	if !m.Environment.IsNull() {
		diags.Append(m.Environment.ElementsAs(ctx, &cmd.Env, false)...)
	}
	if !m.Stdin.IsNull() {
		cmd.Stdin = strings.NewReader(m.Stdin.ValueString())
	}
	return cmd
}
