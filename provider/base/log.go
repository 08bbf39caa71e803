package base

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
)

const maskedSecret = "***"

// NewLogger returns a logger that hands what the layers below log to Terraform's log, with every one of secrets
// replaced wherever it occurs, in whatever form: in messages, keys and values. It writes to the log of the request
// whose context the record carries, so a record without one goes nowhere.
func NewLogger(secrets ...string) *slog.Logger {
	return slog.New(&logHandler{secrets: redact.New(secrets...)})
}

type logHandler struct {
	secrets *redact.Redactor
	fields  []field
	prefix  string
}

type field struct {
	key   string
	value string
}

func (h *logHandler) mask(text string) string { return h.secrets.Replace(text, maskedSecret) }

// Enabled is always true: Terraform's own level decides, and only its sink knows it.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	fields := make(map[string]any, len(h.fields)+record.NumAttrs())
	for _, f := range h.fields {
		fields[f.key] = f.value
	}
	record.Attrs(func(a slog.Attr) bool {
		for _, f := range h.flatten(h.prefix, a) {
			fields[f.key] = f.value
		}
		return true
	})
	message := h.mask(record.Message)
	switch {
	case record.Level >= slog.LevelError:
		tflog.Error(ctx, message, fields)
	case record.Level >= slog.LevelWarn:
		tflog.Warn(ctx, message, fields)
	case record.Level >= slog.LevelInfo:
		tflog.Info(ctx, message, fields)
	case record.Level >= slog.LevelDebug:
		tflog.Debug(ctx, message, fields)
	default:
		tflog.Trace(ctx, message, fields)
	}
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.fields = slices.Clone(h.fields)
	for _, a := range attrs {
		next.fields = append(next.fields, h.flatten(h.prefix, a)...)
	}
	return &next
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	next := *h
	if name != "" {
		next.prefix = h.prefix + name + "."
	}
	return &next
}

// flatten writes groups as dotted keys and every value as masked text: a value that stays structured could hide a
// secret from the mask.
func (h *logHandler) flatten(prefix string, a slog.Attr) []field {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		var out []field
		for _, member := range value.Group() {
			out = append(out, h.flatten(prefix, member)...)
		}
		return out
	}
	if a.Equal(slog.Attr{}) {
		return nil
	}
	return []field{{key: h.mask(prefix + a.Key), value: h.mask(fmt.Sprint(value.Any()))}}
}
