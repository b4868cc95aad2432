package leaseq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Error is an error of a call. Compare it with errors.Is and the Err variables of this package, never by its text (LQ-ERROR-2). It holds no
// data, header or result of an item and no password (LQ-SAFE-3).
type Error struct {
	// Code is the code of the protocol (LEASEQ_...), the first word of an error of the server, or one of CONNECTION, ABORTED, CLOSED and NO_SCRIPTS.
	Code string
	// Definite is true if the effect of the call is known: there is none, but for the answers of a PartialError or FullError. If it is
	// false, the call may have taken effect.
	Definite bool

	message string
	cause   error
	invalid bool
}

// Error returns the text.
func (e *Error) Error() string {
	if e.message == "" {
		return e.Code
	}
	return e.message
}

// Unwrap returns what the error came from, if it is known.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error of the same code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Invalid reports whether the same call can never work, since an argument of it is refused.
func (e *Error) Invalid() bool { return e.invalid }

var (
	// ErrFull: the queue has no room for some of the items: see FullError.
	ErrFull = sentinel("LEASEQ_FULL", false)
	// ErrConnection: the server was not reached, or its reply did not come: see Error.Definite.
	ErrConnection = sentinel("CONNECTION", false)
	// ErrAborted: the context ended while a call waited. Its cause is that of the context. Items that had been leased are given back.
	ErrAborted = sentinel("ABORTED", false)
	// ErrClosed: the client is closed.
	ErrClosed = sentinel("CLOSED", false)
	// ErrNoScripts: the server runs no Lua scripts (LQ-ERROR-6).
	ErrNoScripts = sentinel("NO_SCRIPTS", false)
	// ErrNoItem: a lease found no item in its time.
	ErrNoItem = errors.New("leaseq: no item")
)

// IsDefinite reports whether the effect of the call that failed is known: see Error.Definite. That of ErrNoItem is: nothing was leased. An error of
// another package is not.
func IsDefinite(err error) bool {
	var found *Error
	return errors.Is(err, ErrNoItem) || errors.As(err, &found) && found.Definite
}

// Code returns the code of an Error, empty for an error of another kind.
func Code(err error) string {
	if err == nil { // most calls ask; what errors.As takes is on the heap
		return ""
	}
	var found *Error
	if errors.As(err, &found) {
		return found.Code
	}
	return ""
}

// FullError says that the queue had no room for some of the items (LQ-CLIENT-6). errors.Is(err, ErrFull) is true for it.
type FullError struct {
	// Answers are in the order of the items. Items behind the first call in which one found no room were not sent and have no answer.
	Answers []Added
	cause   error
}

// Error returns the text.
func (e *FullError) Error() string {
	missing := 0
	for _, each := range e.Answers {
		if each.NoRoom() {
			missing++
		}
	}
	return fmt.Sprintf("leaseq: no room for %d of %d items", missing, len(e.Answers))
}

// Unwrap returns the error of the protocol, and what ended the wait for room early.
func (e *FullError) Unwrap() []error {
	found := []error{&Error{Code: ErrFull.Code, Definite: true}}
	if e.cause != nil {
		found = append(found, e.cause)
	}
	return found
}

// PartialError says that one of the calls that a long list was split into has failed; those behind it were not sent (LQ-CLIENT-2).
type PartialError[T any] struct {
	// Answers are those of the first entries.
	Answers []T
	// InDoubt is how many entries, behind those of Answers, may have taken effect or not.
	InDoubt int
	cause   error
}

// Error returns the text.
func (e *PartialError[T]) Error() string {
	return fmt.Sprintf("after %d entries: %v", len(e.Answers), e.cause)
}

// Unwrap returns the error of the call that failed.
func (e *PartialError[T]) Unwrap() error { return e.cause }

func partial[T any](answers []T, failed int, cause error) error {
	if IsDefinite(cause) {
		failed = 0
	}
	return &PartialError[T]{Answers: answers, InDoubt: failed, cause: cause}
}

func sentinel(code string, invalid bool) *Error {
	return &Error{Code: code, Definite: true, message: "leaseq: " + code, invalid: invalid}
}

func index(all ...*Error) map[string]*Error {
	found := make(map[string]*Error, len(all))
	for _, each := range all {
		found[each.Code] = each
	}
	return found
}

func setOf(all ...string) map[string]bool {
	found := make(map[string]bool, len(all))
	for _, each := range all {
		found[each] = true
	}
	return found
}

// refused is the error of what cannot be sent.
func refused(format string, args ...any) error {
	return &Error{Code: ErrBadArgument.Code, Definite: true, invalid: true, message: "leaseq: " + fmt.Sprintf(format, args...)}
}

func unavailable(cause error, format string, args ...any) error {
	return &Error{Code: ErrConnection.Code, Definite: true, cause: cause, message: "leaseq: " + fmt.Sprintf(format, args...)}
}

func replyLost(format string, args ...any) error {
	return &Error{Code: ErrConnection.Code, message: "leaseq: " + fmt.Sprintf(format, args...)}
}

func badReply(why string) error { return replyLost("the reply cannot be read: %s", why) }

func aborted(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrClosed) {
		return cause
	}
	return &Error{Code: ErrAborted.Code, Definite: true, cause: cause, message: "leaseq: aborted: " + cause.Error()}
}

// abortedUnderWay is the error of a call that may have taken effect.
func abortedUnderWay(ctx context.Context) error {
	return &Error{Code: ErrAborted.Code, cause: context.Cause(ctx), message: "leaseq: aborted before the reply"}
}

// errorCode is the first word of an error reply. rueidis leaves the word ERR out.
var errorCode = regexp.MustCompile(`^[A-Z][A-Z0-9_]*( |$)`)

// erring are words in capitals with which replies of the code ERR start.
var erring = setOf("AUTH", "CLIENT", "DB", "HELLO", "SELECT")

// errorFromReply is the error of an error reply.
func errorFromReply(text string) *Error {
	code := strings.TrimSuffix(errorCode.FindString(text), " ")
	if code == "" || erring[code] {
		code = "ERR"
	}
	if known := scriptErrors[code]; known != nil {
		return &Error{Code: code, Definite: true, invalid: known.invalid, message: "leaseq: " + text}
	}
	whole := text
	if code == "ERR" {
		whole = "ERR " + strings.TrimPrefix(text, "ERR ")
	}
	starts := func(start string) bool { return strings.HasPrefix(whole, start) }
	definite := (notRun[code] || slices.ContainsFunc(turnedAway, starts)) && !slices.ContainsFunc(stoppedInside, starts)
	return &Error{Code: code, Definite: definite, message: "leaseq: the server replied " + text}
}
