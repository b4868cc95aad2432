package jobs

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"
)

const (
	version          = 1
	maxFunctionChars = 200
	// maxCopyBytes is the longest envelope that a result or a note about a cancellation repeats.
	maxCopyBytes = 4096
	maxDelay     = 315_360_000_000 * time.Millisecond
)

// BadEnvelopeError: an item or an outcome is not a job or a result that this version can read.
type BadEnvelopeError struct{ reason string }

// Error returns the text, which is fit for a dead letter.
func (e *BadEnvelopeError) Error() string { return e.reason }

func badEnvelope(format string, args ...any) error {
	return &BadEnvelopeError{fmt.Sprintf(format, args...)}
}

// envelope is a job as it was read: the map, and its format.
type envelope struct {
	format Format
	all    map[string]any
}

func (e envelope) text(name string) string {
	found, _ := e.all[name].(string)
	return found
}

// ms is a member of milliseconds, or another value if it is missing.
func (e envelope) ms(name string, otherwise time.Duration) time.Duration {
	if number, ok := integer(e.all[name]); ok {
		return time.Duration(min(number, int64(maxDelay/time.Millisecond))) * time.Millisecond
	}
	return otherwise
}

func (e envelope) number(name string, otherwise int64) int64 {
	if number, ok := integer(e.all[name]); ok {
		return number
	}
	return otherwise
}

func (e envelope) stages() []any {
	found, _ := e.all["then"].([]any)
	return found
}

// arguments are those by position and by name. A serializer of another program wrote them if there is a codec.
func (e envelope) arguments() ([]any, map[string]any, error) {
	if codec, there := e.all["codec"]; there {
		return nil, nil, badEnvelope("the arguments were written by serializer %q, which this client does not have", codec)
	}
	args, _ := e.all["args"].([]any)
	kwargs, _ := e.all["kwargs"].(map[string]any)
	return args, kwargs, nil
}

// readEnvelope reads a job (LQ-JOB-19).
func readEnvelope(data []byte) (envelope, error) {
	all, err := readMap(data, "job")
	if err == nil {
		if wrong := problemOf(all); wrong != "" {
			err = badEnvelope("this is no job that can be read: %s", wrong)
		}
	}
	return envelope{formatOf(data), all}, err
}

// readResult reads a result.
func readResult(content []byte) (envelope, error) {
	all, err := readMap(content, "result")
	if err == nil {
		for name, isRight := range map[string]func(any) bool{"started": isInteger, "ended": isInteger, "worker": isText} {
			if value := all[name]; value != nil && !isRight(value) {
				return envelope{}, badEnvelope("this is no result that can be read: %s has another type", name)
			}
		}
		if codec, there := all["codec"]; there {
			err = badEnvelope("the result was written by serializer %q, which this client does not have", codec)
		}
	}
	return envelope{formatOf(content), all}, err
}

func readMap(data []byte, what string) (map[string]any, error) {
	if len(data) == 0 || !utf8.Valid(data) && formatOf(data) == JSON {
		return nil, badEnvelope("this is no %s: it cannot be read", what)
	}
	var value any
	if err := formatOf(data).read(data, &value); err != nil {
		return nil, badEnvelope("this is no %s: it cannot be read: %v", what, err)
	}
	all, ok := value.(map[string]any)
	if !ok {
		return nil, badEnvelope("this is no %s: it is no map", what)
	}
	if number, ok := integer(all["v"]); !ok || number != version {
		return nil, badEnvelope("this %s is of version %v, and this program knows %d", what, all["v"], version)
	}
	return all, nil
}

func isInteger(value any) bool {
	_, ok := integer(value)
	return ok
}

func isText(value any) bool {
	_, ok := value.(string)
	return ok
}

func isNatural(value any) bool {
	number, ok := integer(value)
	return ok && number >= 0
}

func isDelay(value any) bool {
	number, ok := integer(value)
	return ok && number >= 0 && number <= int64(maxDelay/time.Millisecond)
}

func isList(value any) bool {
	_, ok := value.([]any)
	return ok
}

func isMap(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// each makes a check of the elements of a list of at least so many.
func each(least, most int, isRight func(any) bool) func(any) bool {
	return func(value any) bool {
		all, ok := value.([]any)
		for _, one := range all {
			ok = ok && isRight(one)
		}
		return ok && len(all) >= least && len(all) <= most
	}
}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/]*={0,2}$`)

func isBody(value any) bool {
	if _, ok := value.([]byte); ok {
		return true
	}
	text, ok := value.(string)
	_, err := base64.StdEncoding.DecodeString(text)
	return ok && base64Text.MatchString(text) && err == nil
}

const unlimited = 1 << 30

// members are the types of the members that may be missing.
var members = map[string]func(any) bool{
	"args": isList, "kwargs": isMap, "enqueued": isInteger, "due": isInteger, "attempt": isInteger, "timeout": isNatural,
	"backoff": each(2, 2, isDelay), "delays": each(1, unlimited, isDelay), "description": isText, "codec": isText, "body": isBody,
}

// A stage holds a job itself.
func init() { members["then"] = each(0, unlimited, isStage) }

// problemOf says what breaks the table of the specification.
func problemOf(job map[string]any) string {
	name, _ := job["function"].(string)
	if name == "" || utf8.RuneCountInString(name) > maxFunctionChars {
		return fmt.Sprintf("function is text of 1 to %d characters", maxFunctionChars)
	}
	return wrongMember(job, members)
}

func wrongMember(all map[string]any, members map[string]func(any) bool) string {
	for name, value := range all {
		if isRight := members[name]; isRight != nil && !isRight(value) {
			return name + " has another type or range"
		}
	}
	return ""
}

func isStage(value any) bool {
	stage, _ := value.(map[string]any)
	job, _ := stage["job"].(map[string]any)
	number, _ := integer(job["v"])
	if !isText(stage["queue"]) || number != version || problemOf(job) != "" {
		return false
	}
	return wrongMember(stage, map[string]func(any) bool{
		"id": isText,
		"add": func(value any) bool {
			all, ok := value.(map[string]any)
			for _, one := range all {
				ok = ok && (isText(one) || isInteger(one))
			}
			return ok
		},
		"headers": func(value any) bool {
			all, ok := value.(map[string]any)
			for _, one := range all {
				ok = ok && isText(one)
			}
			return ok
		},
	}) == ""
}
