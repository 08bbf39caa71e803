package access

import (
	"log"
	"log/slog"
	"strings"
)

// logger writes to Packer's log (PACKER_LOG=1), whose filter takes the secrets out.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(lines{}, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // Packer's log has it
			}
			return a
		},
	}))
}

type lines struct{}

func (lines) Write(p []byte) (int, error) {
	log.Printf("[DEBUG] %s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
