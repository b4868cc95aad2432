package jobs

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestIDsOfTheSpecification(t *testing.T) {
	page, err := os.ReadFile("../../spec/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_764_327_725_000)
	for _, each := range []options{{unique: true}, {throttle: time.Minute}} {
		call := &Call{function: "shop.total", args: []any{[]float64{10, 20}}, kwargs: map[string]any{"tax": 0.1, "place": "Zürich"}, options: each}
		found, err := call.identified(now)
		if err != nil || !strings.Contains(string(page), "`"+found.chosenID()+"`") {
			t.Error(found, err)
		}
	}
}

func TestArgumentsAreWrittenInOneWay(t *testing.T) {
	for _, each := range []struct {
		value any
		text  string
	}{
		{1, "1"}, {1.0, "1"}, {math.Copysign(0, -1), "0"}, {0.1, "0.1"}, {1e16, "10000000000000000"}, {1.2345678901234567e20, "123456789012345670000"},
		{1e21, "1e+21"}, {-1.5e300, "-1.5e+300"}, {1e-6, "0.000001"}, {1e-7, "1e-7"}, {1.25e-9, "1.25e-9"}, {uint64(math.MaxUint64), "18446744073709551615"},
		{json.RawMessage("[-0, -0.0, 1.50, 2E1]"), "[0,0,1.5,20]"}, {true, "true"}, {nil, "null"},
		{"é\"\\\n\x01\u2028\u007f<&", `"é\"\\\n\u0001` + "\u2028\u007f" + `<&"`}, {`\u2028`, `"\\u2028"`},
		// U+FB33 is behind the first half of U+1F600 in UTF-16
		{map[string]int{"\ufb33": 1, "\U0001f600": 2}, "{\"\U0001f600\":2,\"\ufb33\":1}"},
		{map[string]any{"b": 1, "a": []any{map[string]any{"d": 2.5, "c": []any{}}}, "é": map[string]any{}}, `{"a":[{"c":[],"d":2.5}],"b":1,"é":{}}`},
	} {
		var value any
		data, err := JSON.write(each.value)
		if err == nil {
			err = JSON.read(data, &value)
		}
		var text strings.Builder
		if err == nil {
			err = canonical(&text, value)
		}
		if err != nil || text.String() != each.text {
			t.Errorf("%v: %s, not %s (%v)", each.value, text.String(), each.text, err)
		}
	}
}
