package leaseq

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// maxDelay is the longest delay of an item: 10 years.
const maxDelay = 315_360_000_000 * time.Millisecond

// DeadLetterError is returned by a handler: never again. The item becomes a dead letter for a person to look at.
type DeadLetterError struct{ Reason string }

// Error returns the reason.
func (e *DeadLetterError) Error() string { return e.Reason }

// DeadLetter is the error by which a handler makes its item a dead letter.
func DeadLetter(reason string) error { return &DeadLetterError{reason} }

// GiveBackError is returned by a handler: give the item back. [GiveBack] makes one.
type GiveBackError struct {
	Reason  string
	options ReleaseOptions
}

// Error returns the reason.
func (e *GiveBackError) Error() string { return e.Reason }

// Asked returns the delay that was asked for, nil if none was, and whether the attempt is not to count.
func (e *GiveBackError) Asked() (delay *time.Duration, uncounted bool) {
	return e.options.Delay, e.options.Uncounted
}

// GiveBack is the error by which a handler gives its item back, with [Delay] (default: by the backoff of the worker) or [Uncounted].
func GiveBack(reason string, options ...ReleaseOption) error {
	given := &GiveBackError{Reason: reason}
	for _, each := range options {
		each.applyRelease(&given.options)
	}
	return given
}

// verdict is how an item goes back: after a delay, or dead; with the text that is kept as its last error.
type verdict struct {
	delay     time.Duration
	dead      bool
	uncounted bool
	reason    string
}

func (v *verdict) options() []ReleaseOption {
	var found []ReleaseOption
	if v.delay > 0 {
		found = append(found, Delay(v.delay))
	}
	if v.dead {
		found = append(found, Dead())
	}
	if v.uncounted {
		found = append(found, Uncounted())
	}
	if v.reason != "" {
		found = append(found, LastError(v.reason))
	}
	return found
}

// VerdictError is an error of a handler that says itself what becomes of the item. Its text is kept as the last error.
type VerdictError struct {
	Delay     time.Duration
	Dead      bool
	Uncounted bool
	// Text is kept as the last error.
	Text string
	// Cause is what the worker logs.
	Cause error
}

// Error returns the text of the cause.
func (e *VerdictError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *VerdictError) Unwrap() error { return e.Cause }

// ExponentialBackoff is a delay that starts with the first, doubles with each attempt up to the last, less up to half at random.
func ExponentialBackoff(first, last time.Duration) func(attempt int) time.Duration {
	return func(attempt int) time.Duration {
		full := float64(first) * float64(uint64(1)<<min(max(attempt-1, 0), 30))
		return time.Duration(min(full, float64(last)) * (0.5 + rand.Float64()/2))
	}
}

// retryPolicy says which failures end an item and which bring it back.
type retryPolicy struct {
	attempts int
	backoff  func(attempt int) time.Duration
}

// judge says what becomes of an item whose handler failed.
func (p retryPolicy) judge(attempt int, err error) *verdict {
	var said *VerdictError
	if errors.As(err, &said) {
		return &verdict{said.Delay, said.Dead, said.Uncounted, said.Text}
	}
	v := &verdict{reason: textOf(err)}
	var dead *DeadLetterError
	var asked *GiveBackError
	isDead, isAsked := errors.As(err, &dead), errors.As(err, &asked)
	if isAsked && asked.options.Uncounted {
		v.uncounted = true
		v.delay = usable(asked.options.Delay, 0)
		return v
	}
	if isDead || p.attempts > 0 && attempt >= p.attempts {
		v.dead = true
		return v
	}
	if isAsked && asked.options.Delay != nil {
		v.delay = usable(asked.options.Delay, 0)
		return v
	}
	delay := p.backoff(attempt)
	v.delay = usable(&delay, ExponentialBackoff(time.Second, 5*time.Minute)(attempt))
	return v
}

// usable is a delay, or another if no item can have it.
func usable(delay *time.Duration, otherwise time.Duration) time.Duration {
	if delay == nil || *delay < 0 || *delay > maxDelay {
		return otherwise
	}
	return *delay
}

// exhausted says what becomes of an item that has had all its attempts: its workers did not live to report a failure.
func (p retryPolicy) exhausted(attempt int) *verdict {
	if p.attempts == 0 || attempt <= p.attempts {
		return nil
	}
	reason := fmt.Sprintf("leased %d times, which is more than the %d attempts of this worker", attempt, p.attempts)
	return &verdict{dead: true, reason: reason}
}

// textOf is the text of an error for the last error of an item: neither empty nor longer than is kept.
func textOf(err error) string {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if text == "" {
		return fmt.Sprintf("the handler returned a %T without a text", err)
	}
	if len(text) > maxErrorBytes {
		text = strings.ToValidUTF8(text[:maxErrorBytes], "")
	}
	return text
}
