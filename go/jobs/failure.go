package jobs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	leaseq "leaseq.dev/go"
)

const (
	maxErrorBytes   = 8192
	maxMessageBytes = 500
	rfc3339         = "2006-01-02T15:04:05.000-07:00"
)

var kindPattern = regexp.MustCompile(`^[\p{L}_$.][\p{L}\p{N}_$.]*$`)

// failure is the text of a failed attempt (LQ-JOB-9), in its parts.
type failure struct {
	kind, message, traceback, worker string
	started, refused                 time.Time
}

// failureOf is the failure of an error.
func failureOf(err error, worker string, started time.Time) failure {
	f := failure{kind: kindOf(err), message: err.Error(), worker: worker, started: started}
	var panicked *leaseq.PanicError
	if errors.As(err, &panicked) {
		f.traceback = panicked.Stack
	}
	return f
}

// kindOf is the name of the type of an error; errors of the packages errors and fmt are plain ones.
func kindOf(err error) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
	if at := strings.LastIndex(name, "."); at >= 0 {
		if name[:at] == "errors" || name[:at] == "fmt" {
			return "Error"
		}
		name = name[at+1:]
	}
	if !kindPattern.MatchString(name) {
		return "Error"
	}
	return name
}

// text writes it, cut at its end so that all of it is kept (LQ-JOB-23).
func (f failure) text() string {
	message := strings.Join(strings.Fields(strings.ToValidUTF8(f.message, "\uFFFD")), " ")
	if len(message) > maxMessageBytes {
		message = cut(message, maxMessageBytes-3) + "..."
	}
	lines := []string{f.kind + ": " + message, "worker: " + f.worker}
	if !f.started.IsZero() {
		lines = append(lines, "started: "+f.started.UTC().Format(rfc3339))
	}
	if !f.refused.IsZero() {
		lines = append(lines, "refused: "+f.refused.UTC().Format(rfc3339))
	}
	return cut(strings.Join(lines, "\n")+"\n\n"+strings.ToValidUTF8(f.traceback, "\uFFFD"), maxErrorBytes)
}

// readFailure reads a failure from its text; a text of another form is only a message.
func readFailure(text string) failure {
	head, rest, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	kind, message, found := strings.Cut(lines[0], ": ")
	if !found || !kindPattern.MatchString(kind) {
		return failure{message: text}
	}
	f := failure{kind: kind, message: message, traceback: rest}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "worker":
			f.worker = value
		case "started":
			f.started, _ = time.Parse(time.RFC3339, value)
		case "refused":
			f.refused, _ = time.Parse(time.RFC3339, value)
		}
	}
	return f
}

// cut is text of at most that many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
