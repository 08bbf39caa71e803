package guest

import "strings"

// Quote makes one word of a POSIX shell of any text without NUL. Single quotes
// go into double ones, not behind a backslash: mvdan.cc/sh, which simulated
// guests use, keeps that backslash in an assignment.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }
