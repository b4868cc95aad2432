package leaseq

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// isServerAway reports whether the call may work later as it is: the server is away, is loading, has no memory, refuses writes, and the like.
func isServerAway(err error) bool {
	var found *Error
	if !errors.As(err, &found) {
		return false
	}
	switch found.Code {
	case ErrConnection.Code, ErrOutOfMemory.Code, ErrClock.Code:
		return true
	case ErrNoScripts.Code, ErrAborted.Code, ErrClosed.Code, ErrFull.Code:
		return false
	}
	return scriptErrors[found.Code] == nil
}

// isDamaged reports whether the queue cannot be read: it works again after a repair (page 07).
func isDamaged(err error) bool {
	return errors.Is(err, ErrFormat) || errors.Is(err, ErrWrongKeyType)
}

// isMisconfigured reports whether the server refuses because of the user, the password or the settings of the connection (LQ-WORK-14).
func isMisconfigured(err error) bool {
	var found *Error
	if !errors.As(err, &found) {
		return false
	}
	connecting := found.Code == ErrConnection.Code && found.Definite
	if connecting {
		var refusal *Error
		if !errors.As(found.cause, &refusal) {
			return false
		}
		found = refusal
	}
	switch found.Code {
	case ErrNoScripts.Code, "NOAUTH", "WRONGPASS", "NOPERM":
		return true
	case "ERR":
		return connecting
	}
	return false
}

// pauseAfter waits after that many failures in a row, at random so that workers do not come back together (LQ-WORK-7).
func pauseAfter(ctx context.Context, failures int) {
	full := min(float64(longestPause), float64(firstPause)*float64(uint64(1)<<min(failures-1, 20)))
	sleep(ctx, time.Duration(full*(0.75+rand.Float64()/4)))
}

// serverHealth knows whether the server is away, and since when.
type serverHealth struct {
	reporter *reporter
	mu       sync.Mutex
	since    time.Time
}

func (h *serverHealth) isAway() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.since.IsZero()
}

// failed: the first call of an outage that fails is reported.
func (h *serverHealth) failed(err error) {
	h.mu.Lock()
	first := h.since.IsZero()
	if first {
		h.since = time.Now()
	}
	h.mu.Unlock()
	if first {
		h.reporter.log.Warn("leaseq worker: the server is away or refuses, trying again", "error", err)
		h.reporter.serverAway(err)
	}
}

func (h *serverHealth) worked() {
	h.mu.Lock()
	since := h.since
	h.since = time.Time{}
	h.mu.Unlock()
	if !since.IsZero() {
		h.reporter.log.Info("leaseq worker: the server is back", "after", time.Since(since))
		h.reporter.serverBack(time.Since(since))
	}
}
