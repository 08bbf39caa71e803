package audit

import (
	"fmt"
	"strings"
)

// Table is the documentation's list of checks, in Markdown.
func Table() string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "### %s\n\n| Id | Passes when | Weight | Verified by | If not |\n|---|---|---|---|---|\n", g.title)
		for _, c := range g.checks {
			severity := string(c.Severity)
			if c.Cap != "" {
				severity += ", at most " + string(c.Cap)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.ID, c.Title, severity, cell(c.How), cell(c.Remedy))
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`, "~", `\~`).Replace(s)
}

// ScoreRule is the documentation's account of the score, in Markdown.
func ScoreRule() string {
	var b strings.Builder
	b.WriteString("| Severity | Weight |\n|---|---|\n")
	for _, s := range []Severity{Critical, High, Medium, Low} {
		fmt.Fprintf(&b, "| %s | %d |\n", s, weights[s])
	}
	b.WriteString("\n| Grade | Points |\n|---|---|\n")
	for _, g := range bands {
		fmt.Fprintf(&b, "| %s | %d to %d |\n", g.grade, g.least, g.most)
	}
	return b.String()
}
