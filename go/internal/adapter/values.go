package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	leaseq "leaseq.dev/go"
)

type moment = time.Time

// arguments are those of a method, as a message has them.
type arguments map[string]any

func decodeArguments(text []byte) (arguments, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	found, err := decodeValue(decoder)
	args, _ := found.(map[string]any)
	return args, err
}

// decodeValue decodes a value and leaves headers as they are written, since a map has no order.
func decodeValue(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		all := []any{}
		for decoder.More() {
			value, err := decodeValue(decoder)
			if err != nil {
				return nil, err
			}
			all = append(all, value)
		}
		_, err = decoder.Token()
		return all, err
	case json.Delim('{'):
		found := map[string]any{}
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			if name == "headers" || name == "$text" {
				var raw json.RawMessage
				err = decoder.Decode(&raw)
				found[name.(string)] = raw
			} else {
				found[name.(string)], err = decodeValue(decoder)
			}
			if err != nil {
				return nil, err
			}
		}
		_, err = decoder.Token()
		return found, err
	}
	return token, nil
}

func (a arguments) has(name string) bool {
	_, found := a[name]
	return found
}

func (a arguments) list(name string) []arguments {
	given, _ := a[name].([]any)
	found := make([]arguments, len(given))
	for i, each := range given {
		found[i], _ = each.(map[string]any)
	}
	return found
}

func (a arguments) handles(name string) []string {
	given, _ := a[name].([]any)
	found := make([]string, len(given))
	for i, each := range given {
		found[i], _ = each.(string)
	}
	return found
}

func (a arguments) object(name string) arguments {
	found, _ := a[name].(map[string]any)
	return found
}

func (a arguments) text(name string) string {
	found, _ := a[name].(string)
	return found
}

func (a arguments) flag(name string) bool { return a[name] == true }

// number is an integer; beyond 2^53 - 1 it comes as text.
func (a arguments) number(name string) int {
	found, err := strconv.Atoi(digitsOf(a[name]))
	if err != nil {
		panic(harnessError(name + " is no number"))
	}
	return found
}

func digitsOf(value any) string {
	switch given := value.(type) {
	case json.Number:
		return given.String()
	case string:
		return given
	}
	return ""
}

// duration is milliseconds, perhaps with a fraction. One that Go cannot hold becomes the longest.
func (a arguments) duration(name string) time.Duration {
	ms, err := strconv.ParseFloat(digitsOf(a[name]), 64)
	if err != nil {
		panic(harnessError(name + " is no duration"))
	}
	if ms > float64(math.MaxInt64/int64(time.Millisecond)) {
		return math.MaxInt64
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func (a arguments) time(name string) time.Time { return timeOfMs(digitsOf(a[name])) }

func timeOfMs(digits string) time.Time {
	ms, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		panic(harnessError("no time: " + digits))
	}
	whole, part := math.Modf(ms)
	return time.UnixMilli(int64(whole)).Add(time.Duration(part * float64(time.Millisecond)))
}

func (a arguments) bytes(name string) []byte { return bytesOf(a[name]) }

func bytesOf(value any) []byte {
	given, _ := value.(map[string]any)
	text, ok := given["$b64"].(string)
	if !ok {
		panic(harnessError("no bytes"))
	}
	found, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(harnessError(err.Error()))
	}
	return found
}

func (a arguments) id(name string) string { return idOf(a[name]) }

func idOf(value any) string {
	if given, _ := value.(map[string]any); given != nil {
		if text, ok := given["$text"].(json.RawMessage); ok {
			return textOf(string(text))
		}
	}
	return string(bytesOf(value))
}

var escapes = regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..`)

// textOf is the text of a JSON string as a string of Go holds it: half of a surrogate pair, which encoding/json would replace, as its three bytes.
func textOf(raw string) string {
	var found strings.Builder
	rest := strings.Trim(raw, `"`)
	for rest != "" {
		at := escapes.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest), len(rest)}
		}
		escape := rest[at[0]:at[1]]
		if len(escape) != 6 {
			found.WriteString(unquoted(rest[:at[1]]))
		} else {
			half, _ := strconv.ParseUint(escape[2:], 16, 16)
			found.WriteString(unquoted(rest[:at[0]]))
			found.Write([]byte{0xe0 | byte(half>>12), 0x80 | byte(half>>6&0x3f), 0x80 | byte(half&0x3f)})
		}
		rest = rest[at[1]:]
	}
	return found.String()
}

func unquoted(part string) string {
	var text string
	if err := json.Unmarshal([]byte(`"`+part+`"`), &text); err != nil {
		panic(harnessError(err.Error()))
	}
	return text
}

func (a arguments) ids() []string {
	given, _ := a["ids"].([]any)
	found := make([]string, len(given))
	for i, each := range given {
		found[i] = idOf(each)
	}
	return found
}

func b64(value []byte) object { return object{"$b64": base64.StdEncoding.EncodeToString(value)} }

func decimal(number int64) string { return strconv.FormatInt(number, 10) }

func micros(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return decimal(t.UnixMicro())
}

func millis(d time.Duration) int64 { return d.Milliseconds() }

// newItem is an ITEM with its OPTIONS.
func newItem(item, options arguments) leaseq.NewItem {
	var given []leaseq.AddOption
	for name, option := range map[string]func(string) leaseq.AddOption{
		"delay_ms":      func(n string) leaseq.AddOption { return leaseq.Delay(options.duration(n)) },
		"not_before_ms": func(n string) leaseq.AddOption { return leaseq.NotBefore(options.time(n)) },
		"priority":      func(n string) leaseq.AddOption { return leaseq.Priority(options.number(n)) },
		"max_attempts":  func(n string) leaseq.AddOption { return leaseq.MaxAttempts(options.number(n)) },
		"expires_in_ms": func(n string) leaseq.AddOption { return leaseq.ExpiresIn(options.duration(n)) },
		"expires_to":    func(string) leaseq.AddOption { return leaseq.DeadOnExpiry() },
		"keep_ms":       func(n string) leaseq.AddOption { return leaseq.Keep(options.duration(n)) },
	} {
		if options.has(name) {
			given = append(given, option(name))
		}
	}
	if item.has("content_type") {
		given = append(given, leaseq.ContentType(string(item.bytes("content_type"))))
	}
	for _, each := range headersOf(item["headers"]) {
		given = append(given, leaseq.WithHeader(each.Name, each.Value))
	}
	return leaseq.Item(item.id("id"), item.bytes("data"), given...)
}

// outcomeForm and the others are what messages have.
func outcomeForm(id string, o leaseq.Outcome) object {
	return object{
		"id": b64([]byte(id)), "state": o.State, "created": micros(o.Created), "ended": micros(o.Ended),
		"attempt": o.Attempt, "keep_ms": millis(o.Keep), "content": b64(o.Content),
	}
}

func infoForm(id string, i leaseq.ItemInfo) object {
	return object{
		"id": b64([]byte(id)), "state": i.State, "time": micros(i.Time), "attempt": i.Attempt, "token": decimal(i.Token),
		"created": micros(i.Created), "size": i.Size, "priority": i.Priority, "max_attempts": i.MaxAttempts,
		"keep_ms": millis(i.Keep), "expires": micros(i.Expires), "error": string(i.Error),
	}
}

func leaseForm(i *leaseq.LeasedItem) object {
	headers := object{}
	for _, each := range i.Headers {
		headers[each.Name] = b64(each.Value)
	}
	var contentType any
	if i.ContentType != nil {
		contentType = b64(i.ContentType)
	}
	return object{
		"id": b64([]byte(i.ID)), "data": b64(i.Data), "token": decimal(i.Token), "attempt": i.Attempt,
		"deadline": micros(i.Deadline()), "keep_ms": millis(i.Keep), "content_type": contentType, "headers": headers,
	}
}

func addedForm(a leaseq.Added) any {
	switch {
	case a.OK():
		return "added"
	case a.Exists():
		return "exists"
	}
	return "full"
}

// each applies a form to each answer; no answers are an empty list.
func each[T any](all []T, form func(T) any) []any {
	found := make([]any, len(all))
	for i, one := range all {
		found[i] = form(one)
	}
	return found
}

func itself[T any](value T) any { return value }
