package pve

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// LevelTrace is the level below debug at which parameters are logged, sensitive
// ones by their names only. Bodies of answers and headers are logged at none.
const LevelTrace = slog.LevelDebug - 4

func (t *transport) logAttempt(ctx context.Context, out outgoing, attempt int, took time.Duration, res *http.Response, err error) {
	log := loggerOf(ctx, t.cfg.Logger)
	if !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	secrets := t.secrets.forCall(ctx)
	attrs := []slog.Attr{
		slog.String("method", out.method),
		slog.String("path", secrets.clean(t.apiPath(out.url))),
		slog.Int("attempt", attempt),
		slog.Int64("ms", took.Milliseconds()),
	}
	if log.Enabled(ctx, LevelTrace) {
		if out.url.RawQuery != "" {
			attrs = append(attrs, slog.String("query", secrets.showForm(out.url.RawQuery)))
		}
		if out.body != nil {
			attrs = append(attrs, slog.String("form", secrets.showForm(string(out.body))))
		}
	}
	if res != nil {
		attrs = append(attrs, slog.String("status", secrets.clean(res.Status)))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", secrets.clean(err.Error())))
	}
	log.LogAttrs(ctx, slog.LevelDebug, "Proxmox VE request", attrs...)
}

func (t *transport) logRetry(ctx context.Context, out outgoing, attempt int, pause time.Duration) {
	loggerOf(ctx, t.cfg.Logger).LogAttrs(ctx, slog.LevelInfo, "Proxmox VE request is tried again",
		slog.String("method", out.method),
		slog.String("path", t.secrets.forCall(ctx).clean(t.apiPath(out.url))),
		slog.Int("attempt", attempt+1),
		slog.Duration("after", pause))
}
