package leaseq

import (
	"strings"
	"testing"
)

// TestReportsWithNumbersThatAreNone are ignored (LQ-WORKER-5). JSON has numbers that no clock and no count reaches.
func TestReportsWithNumbersThatAreNone(t *testing.T) {
	const right = `{"version":1,"host":"h","pid":1,"client":"c","started":2,"stopping":false,"concurrency":3,"completed":4,"queues":["g:n"],"held":5,` +
		`"items":[{"queue":"g:n","id":"a","attempt":6,"ms":7}]}`
	if info, ok := readReport("w", right, 1000); !ok || info.Items[0].Ms != 7 {
		t.Fatal(info, ok)
	}
	for _, member := range []string{`"pid":1`, `"started":2`, `"concurrency":3`, `"completed":4`, `"held":5`, `"attempt":6`, `"ms":7`} {
		name, _, _ := strings.Cut(member, ":")
		for _, number := range []string{"1e999", strings.Repeat("9", 400), "-1", "9007199254740992", "9223372036854775807", "true", `"1"`} {
			if info, ok := readReport("w", strings.Replace(right, member, name+":"+number, 1), 1000); ok {
				t.Error(name, number, info)
			}
		}
	}
}
