package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	leaseq "leaseq.dev/go"
)

// maxKeys are those of one command.
const maxKeys = 256

// digits are the hexadecimal ones of the SHA-256 that an id has.
const digits = 32

// once reports whether the id of the job is made of its arguments: it is unique or throttled.
func (o options) once() bool { return o.unique || o.throttle != 0 }

// identified returns the call with the id that it has at this time of the server, if that is made of its arguments.
func (c *Call) identified(now time.Time) (*Call, error) {
	if c.err != nil || c.derived != "" || !c.options.once() {
		return c, c.err
	}
	digest, err := digestOf(c.function, c.args, c.kwargs)
	if err != nil {
		return nil, err
	}
	own := *c
	own.derived = "unique-" + digest
	if length := millis(c.options.throttle); length > 0 {
		own.derived = fmt.Sprintf("throttle-%s-%d-%d", digest, length, now.UnixMilli()/length)
	}
	return &own, nil
}

// chosenID is the id of the job, empty for a random one.
func (c *Call) chosenID() string { return cmp.Or(c.derived, c.options.id) }

// digestOf is the digest of a call (spec/jobs.md, Ids made of arguments).
func digestOf(function string, args []any, kwargs map[string]any) (string, error) {
	if args == nil {
		args = []any{}
	}
	if kwargs == nil {
		kwargs = map[string]any{}
	}
	var value any
	data, err := JSON.write([]any{function, args, kwargs})
	if err == nil {
		err = JSON.read(data, &value)
	}
	var text strings.Builder
	if err == nil {
		err = canonical(&text, value)
	}
	if err != nil {
		return "", &SerializationError{fmt.Errorf(
			"the id of a job that is unique or throttled is made of its arguments as JSON, which has none for a call of %s: %w; choose an id"+
				" yourself, with ID", function, err)}
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])[:digits], nil
}

// canonical writes JSON as RFC 8785 does; whole numbers keep all their digits, as in Python. encoding/json has the numbers of the RFC, but other texts
// and another order of members.
func canonical(to *strings.Builder, value any) error {
	switch given := value.(type) {
	case map[string]any:
		names := slices.SortedFunc(maps.Keys(given), func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		for i, name := range names {
			to.WriteByte("{,"[min(i, 1)])
			to.WriteString(`"` + escapes.Replace(name) + `":`)
			if err := canonical(to, given[name]); err != nil {
				return err
			}
		}
		to.WriteString("{}"[min(len(given), 1):])
	case []any:
		for i, each := range given {
			to.WriteByte("[,"[min(i, 1)])
			if err := canonical(to, each); err != nil {
				return err
			}
		}
		to.WriteString("[]"[min(len(given), 1):])
	case string:
		to.WriteString(`"` + escapes.Replace(given) + `"`)
	case json.Number:
		text, err := canonicalNumber(string(given))
		to.WriteString(text)
		return err
	case bool:
		to.WriteString(strconv.FormatBool(given))
	default:
		to.WriteString("null")
	}
	return nil
}

func canonicalNumber(text string) (string, error) {
	if text == "-0" {
		return "0", nil
	}
	if !strings.ContainsAny(text, ".eE") {
		return text, nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || number == 0 {
		return "0", err
	}
	data, err := json.Marshal(number)
	return string(data), err
}

// escapes are those of the texts of RFC 8785: of two that fit, the first one counts.
var escapes = func() *strings.Replacer {
	pairs := []string{`"`, `\"`, `\`, `\\`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`}
	for code := range byte(' ') {
		pairs = append(pairs, string(rune(code)), fmt.Sprintf(`\u%04x`, code))
	}
	return strings.NewReplacer(pairs...)
}()

// draft is a call and its item.
type draft struct {
	place int
	call  *Call
	item  leaseq.NewItem
}

// add adds jobs to one queue, and returns for each whether it was added.
func (a *App) add(ctx context.Context, queue *leaseq.Queue, drafts []draft) ([]leaseq.Added, error) {
	held, err := a.held(ctx, queue, drafts)
	if err != nil {
		return nil, err
	}
	var sent []draft
	var items []leaseq.NewItem
	for i, each := range drafts {
		if !held[i] {
			sent, items = append(sent, each), append(items, each.item)
		}
	}
	if len(sent) == 0 {
		return make([]leaseq.Added, len(drafts)), nil
	}
	answers, err := queue.AddAll(ctx, items)
	if err != nil {
		inDoubt := len(items)
		if leaseq.IsDefinite(err) {
			inDoubt = 0
		}
		var full *leaseq.FullError
		var partial *leaseq.PartialError[leaseq.Added]
		switch {
		case errors.As(err, &partial):
			answers, inDoubt = partial.Answers, partial.InDoubt
			partial.Answers = aligned(answers, held)
		case errors.As(err, &full):
			answers = full.Answers
			full.Answers = aligned(answers, held)
		}
		a.freeUnused(ctx, queue, sent, answers, inDoubt)
		return nil, err
	}
	return aligned(answers, held), nil
}

// held reports of each job whether it must not be added, since its result is kept or its slot has its job (LQ-ADD-8). The slots of the others are
// taken.
func (a *App) held(ctx context.Context, queue *leaseq.Queue, drafts []draft) ([]bool, error) {
	held := make([]bool, len(drafts))
	unique := map[string]bool{}
	for _, each := range drafts {
		if each.call.options.unique {
			unique[each.item.ID] = false
		}
	}
	if len(unique) > 0 {
		ids := slices.Collect(maps.Keys(unique))
		outcomes, err := queue.Outcomes(ctx, ids...)
		if err != nil {
			return nil, err
		}
		for i, each := range outcomes {
			unique[ids[i]] = each.State == leaseq.OutcomeStateResult
		}
	}
	var throttled []int
	for i, each := range drafts {
		held[i] = unique[each.item.ID]
		if each.call.options.throttle != 0 {
			throttled = append(throttled, i)
		}
	}
	var taken []string
	for some := range slices.Chunk(throttled, maxKeys) {
		var commands [][]string
		for _, i := range some {
			length := strconv.FormatInt(millis(drafts[i].call.options.throttle), 10)
			commands = append(commands, []string{"SET", slotKey(queue, drafts[i].item.ID), "1", "NX", "PX", length})
		}
		replies, err := a.client.Transaction(ctx, commands[0][1], commands...)
		for at, reply := range replies {
			i := some[at]
			if held[i] = reply.IsNil(); held[i] {
				continue
			}
			if err = errors.Join(err, reply.Error()); reply.Error() == nil {
				taken = append(taken, drafts[i].item.ID)
			}
		}
		if err != nil {
			a.freeSlots(ctx, queue, taken)
			return nil, err
		}
	}
	return held, nil
}

// freeUnused frees the slots of throttled jobs that were certainly not added. The first jobs have answers, and the next inDoubt may be added or not.
func (a *App) freeUnused(ctx context.Context, queue *leaseq.Queue, sent []draft, answers []leaseq.Added, inDoubt int) {
	var unused []string
	for i, each := range sent {
		missing := i >= len(answers)+inDoubt
		if i < len(answers) {
			missing = answers[i].NoRoom()
		}
		if missing && each.call.options.throttle != 0 {
			unused = append(unused, each.item.ID)
		}
	}
	a.freeSlots(ctx, queue, unused)
}

// freeSlots frees slots that were taken, also if the context has ended. If that fails, they stay taken.
func (a *App) freeSlots(ctx context.Context, queue *leaseq.Queue, ids []string) {
	for some := range slices.Chunk(ids, maxKeys) {
		words := []string{"DEL"}
		for _, id := range some {
			words = append(words, slotKey(queue, id))
		}
		_, _ = a.client.Command(context.WithoutCancel(ctx), words[1], words...)
	}
}

// slotKey says that the slot of a throttled job is taken; the slot is a part of the id.
func slotKey(queue *leaseq.Queue, id string) string { return queue.Key("slot:" + id) }

// aligned are answers in the order of all jobs: of those that were held back, as of an id that existed. It ends at the first job without one.
func aligned(answers []leaseq.Added, held []bool) []leaseq.Added {
	var found []leaseq.Added
	for _, each := range held {
		if each {
			found = append(found, 0)
		} else if len(answers) > 0 {
			found, answers = append(found, answers[0]), answers[1:]
		} else {
			break
		}
	}
	return found
}
