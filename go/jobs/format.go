package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// Format is how jobs and results are written.
type Format string

// The formats of jobs.
const (
	JSON        Format = "json"
	MessagePack Format = "msgpack"
)

// SerializationError: the format of jobs cannot hold an argument or a result. Nothing was sent.
type SerializationError struct{ cause error }

// Error returns the text.
func (e *SerializationError) Error() string { return "the format cannot hold it: " + e.cause.Error() }

// Unwrap returns the error of the format.
func (e *SerializationError) Unwrap() error { return e.cause }

// formatOf is the format of data (LQ-JOB-17).
func formatOf(data []byte) Format {
	if len(data) > 0 && data[0] == '{' {
		return JSON
	}
	return MessagePack
}

// write writes a value, or fails if the format would write another one (LQ-JOB-60, LQ-JOB-61).
func (f Format) write(value any) ([]byte, error) {
	var text bytes.Buffer
	var err error
	if f == JSON {
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err = encoder.Encode(value); err == nil && replacesBytes(text.Bytes()) {
			err = fmt.Errorf("a text is not valid UTF-8")
		}
	} else {
		encoder := msgpack.NewEncoder(&text)
		encoder.SetCustomStructTag("json")
		encoder.SetSortMapKeys(true)
		encoder.UseCompactInts(true)
		err = encoder.Encode(value)
	}
	if err != nil {
		return nil, &SerializationError{err}
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// replacesBytes reports whether encoding/json put U+FFFD in the place of bytes that are no text: it writes that one, and no other, as an escape.
func replacesBytes(text []byte) bool {
	for at := 0; ; at++ {
		found := bytes.Index(text[at:], []byte(`\ufffd`))
		if found < 0 {
			return false
		}
		at += found
		slashes := 0
		for at-slashes > 0 && text[at-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return true
		}
	}
}

// read reads a value into a target; numbers in an interface keep their digits.
func (f Format) read(data []byte, target any) error {
	if f == JSON {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if err := decoder.Decode(target); err != nil {
			return err
		}
		if decoder.More() {
			return fmt.Errorf("there is more behind the value")
		}
		return nil
	}
	rest := bytes.NewReader(data)
	decoder := msgpack.NewDecoder(rest)
	decoder.SetCustomStructTag("json")
	decoder.UseLooseInterfaceDecoding(true)
	if err := decoder.Decode(target); err != nil {
		return err
	}
	if rest.Len() > 0 {
		return fmt.Errorf("there is more behind the value")
	}
	return nil
}

// into converts what was read in this format to a type. A text is one already.
func (f Format) into(value, target any) error {
	if text, ok := value.(string); ok {
		if into, ok := target.(*string); ok {
			*into = text
			return nil
		}
	}
	data, err := f.write(value)
	if err != nil {
		return err
	}
	return f.read(data, target)
}

// integer is a whole number of a value that was read.
func integer(value any) (int64, bool) {
	switch given := value.(type) {
	case json.Number:
		if number, err := given.Int64(); err == nil {
			return number, true
		}
		number, err := given.Float64()
		return int64(number), err == nil && number == math.Trunc(number) && math.Abs(number) < 1<<53
	case int64:
		return given, true
	case uint64:
		return int64(given), given <= math.MaxInt64
	case float64:
		return int64(given), given == math.Trunc(given) && math.Abs(given) < 1<<53
	}
	return 0, false
}

// parameter is a field of a struct that a function takes as an argument.
type parameter struct {
	name     string
	optional bool
}

// parametersOf are the fields of a struct, by their names in JSON.
func parametersOf(of reflect.Type) []parameter {
	var found []parameter
	for i := range of.NumField() {
		field := of.Field(i)
		name, more, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		optional := strings.Contains(more, "omitempty") || strings.Contains(more, "omitzero") || field.Type.Kind() == reflect.Pointer
		found = append(found, parameter{name, optional})
	}
	return found
}
