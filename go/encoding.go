package leaseq

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// Forever is a wait without limit, until the context ends.
const Forever time.Duration = math.MaxInt64

// Header is a name and a value that travel with an item beside its data.
type Header struct {
	Name  string
	Value []byte
}

// Added says what became of an item to add: its creation in microseconds since 1970 on the server's clock, 0 if the id existed, or -1 if
// there was no room or, of a follow-up, if this call did not complete the item before it.
type Added int64

// OK reports whether this call added the item.
func (a Added) OK() bool { return a > 0 }

// Exists reports whether the id was there already, in whatever state.
func (a Added) Exists() bool { return a == 0 }

// NoRoom reports whether the queue was full or, of a follow-up, whether this call did not complete the item before it.
func (a Added) NoRoom() bool { return a < 0 }

// Time returns when the item was added, the zero time if it was not.
func (a Added) Time() time.Time { return microTime(max(int64(a), 0)) }

// script is a Lua script: its digest, keys and source are those of the manifest.
type script struct {
	name     string
	sha1     string
	keys     []string
	moreKeys map[string][]string
	source   string
}

func byName(all ...*script) map[string]*script {
	found := make(map[string]*script, len(all))
	for _, each := range all {
		found[each.name] = each
	}
	return found
}

// Scripts returns the SHA-1 digest of each script that this client sends, by name.
func Scripts() map[string]string {
	found := make(map[string]string, len(scripts))
	for name, each := range scripts {
		found[name] = each.sha1
	}
	return found
}

func itoa(number int) string { return strconv.Itoa(number) }

func digits(number int64) string { return strconv.FormatInt(number, 10) }

func flagDigit(set bool) string {
	if set {
		return "1"
	}
	return "0"
}

// encodeMs writes the nearest whole millisecond (LQ-CALL-12).
func encodeMs(d time.Duration) string { return digits(d.Round(time.Millisecond).Milliseconds()) }

// checkKept refuses a time above 0 that would become 0, where 0 has another meaning (LQ-CALL-12).
func checkKept(d *time.Duration, name string) error {
	if d != nil && *d != 0 && d.Round(time.Millisecond) == 0 {
		return refused("%s is shorter than a millisecond", name)
	}
	return nil
}

func joined(first []string, entries [][]string) []string {
	count := 0
	for _, each := range entries {
		count += len(each)
	}
	all := append(make([]string, 0, len(first)+count), first...)
	for _, each := range entries {
		all = append(all, each...)
	}
	return all
}

// microTime is the time of microseconds since 1970; 0 is the zero time.
func microTime(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}

// replyReader reads a flat reply, one element after the other. It keeps the first error.
type replyReader struct {
	all  []rueidis.RedisMessage
	next int
	err  error
}

// elements reads a reply that is an array.
func elements(reply rueidis.RedisMessage) *replyReader {
	all, err := reply.ToArray()
	if err != nil {
		err = badReply("no array")
	}
	return &replyReader{all: all, err: err}
}

// answers reads a reply that is bare for one entry, and an array for several (LQ-CALL-4).
func answers(reply rueidis.RedisMessage) *replyReader {
	if reply.IsArray() {
		return elements(reply)
	}
	return &replyReader{all: []rueidis.RedisMessage{reply}}
}

func (r *replyReader) remaining() int { return len(r.all) - r.next }

func (r *replyReader) value() rueidis.RedisMessage {
	if r.next >= len(r.all) {
		r.fail("it is too short")
		return rueidis.RedisMessage{}
	}
	r.next++
	return r.all[r.next-1]
}

func (r *replyReader) number() int64 {
	message := r.value()
	if r.err != nil {
		return 0
	}
	number, err := message.ToInt64()
	if err != nil {
		r.fail("no integer")
	}
	return number
}

func (r *replyReader) int() int { return int(r.number()) }

func (r *replyReader) text() string {
	message := r.value()
	if r.err != nil {
		return ""
	}
	text, err := message.ToString()
	if err != nil {
		r.fail("no string")
	}
	return text
}

func (r *replyReader) bytes() []byte { return []byte(r.text()) }

func (r *replyReader) ms() time.Duration { return time.Duration(r.number()) * time.Millisecond }

func (r *replyReader) time() time.Time { return microTime(r.number()) }

// wait reads how long until something is due; -1, nothing is, becomes Forever.
func (r *replyReader) wait() time.Duration {
	micros := r.number()
	if micros < 0 || micros > int64(Forever/time.Microsecond) {
		return Forever
	}
	return time.Duration(micros) * time.Microsecond
}

func (r *replyReader) named() map[string]int64 {
	found := make(map[string]int64, r.remaining()/2)
	for r.err == nil && r.remaining() >= 2 {
		name := r.text()
		value := r.value()
		// a later protocol may have values of another type (LQ-READ-7)
		if number, err := value.ToInt64(); err == nil {
			found[name] = number
		}
	}
	return found
}

func (r *replyReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = badReply(fmt.Sprintf(format, args...))
	}
}

func rows[T any](r *replyReader, count int, read func(*replyReader) T) []T {
	if r.err != nil || count < 0 || count > r.remaining() {
		r.fail("a count is wrong")
		return nil
	}
	found := make([]T, count)
	for i := range found {
		found[i] = read(r)
	}
	return found
}
