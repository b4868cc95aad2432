package leaseq

import (
	"context"
	"log/slog"
)

// defaultLog writes to slog.Default() as it is by then: a program may set it behind Open.
func defaultLog() *slog.Logger { return slog.New(&defaultHandler{}) }

// defaultHandler hands on to the handler of slog.Default(), with the attributes and groups that it was given.
type defaultHandler struct {
	with func(slog.Handler) slog.Handler
}

func (h *defaultHandler) handler() slog.Handler {
	if h.with == nil {
		return slog.Default().Handler()
	}
	return h.with(slog.Default().Handler())
}

// Enabled implements slog.Handler.
func (h *defaultHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.handler().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *defaultHandler) Handle(ctx context.Context, record slog.Record) error {
	return h.handler().Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h *defaultHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.then(func(found slog.Handler) slog.Handler { return found.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (h *defaultHandler) WithGroup(name string) slog.Handler {
	return h.then(func(found slog.Handler) slog.Handler { return found.WithGroup(name) })
}

func (h *defaultHandler) then(next func(slog.Handler) slog.Handler) slog.Handler {
	before := h.with
	return &defaultHandler{func(found slog.Handler) slog.Handler {
		if before != nil {
			found = before(found)
		}
		return next(found)
	}}
}
