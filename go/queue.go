package leaseq

import (
	"context"
	"errors"
	"time"
)

// Queue is one queue: [Client.Queue] opens it. It is created on the server when the first item is added. The methods on several entries take lists
// of any length, which are sent in calls of 256 (LQ-CALL-8); when one of several calls fails, the error is a [PartialError].
type Queue struct {
	client *Client
	pool   *pool
	keys   queueKeys
	// durability is what calls that add or complete wait for; nil is nothing.
	durability *Durability
	// adds are of items that are added one by one, and completions of items whose handlers end one by one.
	adds        *gatherer[[]string, addAnswer]
	completions *gatherer[Completion, bool]
}

// newQueue returns a queue whose calls that add or complete wait for this.
func newQueue(client *Client, keys queueKeys, d *Durability) *Queue {
	q := &Queue{client: client, pool: client.pool, keys: keys, durability: d}
	q.adds = &gatherer[[]string, addAnswer]{atOnce: addsAtOnce, limit: q.pool.limit, size: bytesOf, call: q.addEntries}
	q.completions = &gatherer[Completion, bool]{atOnce: 1, size: resultBytesOf, call: q.completeEntries}
	return q
}

// addsAtOnce is how many calls that add single items are under way at a time. That many callers never wait for each other.
const addsAtOnce = 4

// addAnswer is what became of an item, and the NotDurableError of the wait behind it.
type addAnswer struct {
	added     Added
	shortfall error
}

// Name returns the name of the queue.
func (q *Queue) Name() string { return q.keys.name }

// Group returns the group of the queue. Queues of one group share a hash slot, so that one call can use several.
func (q *Queue) Group() string { return q.keys.group }

// Add adds an item: see [Added]. With [Wait] it waits for room; without room the error is [ErrFull].
func (q *Queue) Add(ctx context.Context, id string, data []byte, options ...AddOption) (Added, error) {
	settings := addSettingsOf(options)
	return first(q.addAll(ctx, []NewItem{{id, data, settings.AddOptions}}, settings.timeout))
}

// addOne adds an item without a wait for room, in one call with those that others add meanwhile.
func (q *Queue) addOne(ctx context.Context, args []string) ([]Added, error) {
	found, err := q.adds.do(ctx, args)
	switch {
	case err != nil:
		return nil, err
	case found.added.NoRoom():
		return []Added{found.added}, &FullError{Answers: []Added{found.added}}
	}
	return []Added{found.added}, found.shortfall
}

// addEntries adds items in one call.
func (q *Queue) addEntries(entries [][]string) ([]addAnswer, error) {
	found, err := q.call(context.Background(), queueCall(addScript, q.keys, encodeAddArguments(entries)), q.durability)
	if err != nil {
		return nil, err
	}
	added, err := readAddReply(found.reply)
	if err == nil && len(added) != len(entries) {
		err = badReply("it has another number of answers")
	}
	if err != nil {
		return nil, err
	}
	q.pool.register(q.keys)
	answers := make([]addAnswer, len(added))
	for i, each := range added {
		answers[i] = addAnswer{each, found.shortfall}
	}
	return answers, nil
}

func bytesOf(words []string) int {
	total := 0
	for _, each := range words {
		total += len(each)
	}
	return total
}

// completeOne completes an item whose handler has ended, in one call with those that end meanwhile, and returns as LeasedItem.Complete does. It
// waits for no durability.
func (q *Queue) completeOne(entry Completion) (bool, error) {
	if len(entry.FollowUps) > 0 { // an entry with follow-ups is rare, and goes in a separate call
		answer, err := first(q.handOffAll(context.Background(), []Completion{entry}, nil))
		return answer.Completed, err
	}
	return q.completions.do(context.Background(), entry)
}

func (q *Queue) completeEntries(entries []Completion) ([]bool, error) {
	return q.completeAll(context.Background(), entries, nil)
}

func resultBytesOf(entry Completion) int { return len(entry.Result) }

// AddAll adds items, and returns what became of each. Without room for all the error is a [FullError]. A cancel takes nothing back.
func (q *Queue) AddAll(ctx context.Context, items []NewItem, options ...WaitOption) ([]Added, error) {
	return q.addAll(ctx, items, timeoutOf(options, 0))
}

func timeoutOf(options []WaitOption, timeout time.Duration) time.Duration {
	for _, each := range options {
		each.applyWait(&timeout)
	}
	return timeout
}

func (q *Queue) addAll(ctx context.Context, items []NewItem, timeout time.Duration) ([]Added, error) {
	timeoutAt := after(time.Now(), timeout)
	entries, err := allItemArgs(items)
	if err != nil {
		return nil, err
	}
	if len(entries) == 1 && timeout <= 0 {
		return q.addOne(ctx, entries[0])
	}
	parts := chunks(entries)
	var before []Added
	for _, part := range parts {
		var answers []Added
		var shortfall error
		err := q.addPart(ctx, adding(q.pool, q.keys, part, &answers, q.durability, &shortfall), timeout > 0, time.Until(timeoutAt))
		if answers != nil {
			q.pool.register(q.keys)
		}
		if err != nil {
			return before, addError(before, answers, len(part), len(parts) > 1, err)
		}
		before = append(before, answers...)
		if shortfall != nil {
			return before, shortfall
		}
		if len(missingOf(len(answers), answers)) > 0 {
			return before, &FullError{Answers: before}
		}
	}
	return before, nil
}

func (q *Queue) addPart(ctx context.Context, add func(*router) checked[[]Added], waits bool, timeout time.Duration) error {
	if waits {
		_, _, err := waitFor(ctx, q.pool, roomTarget(q.keys, add), timeout, nil)
		return err
	}
	_, err := during(ctx, func() ([]Added, error) {
		look := add(q.pool.shared)
		return look.found, look.err
	})
	return err
}

// addError is the error of an add with the answers so far: those of earlier calls, and those of the call that failed, which may have waited for
// room.
func addError(before, answers []Added, count int, split bool, err error) error {
	all := append(append([]Added{}, before...), answers...)
	added := false
	for _, each := range all {
		added = added || !each.NoRoom()
	}
	isAbort := (errors.Is(err, ErrAborted) || errors.Is(err, ErrClosed)) && IsDefinite(err)
	switch {
	case !added && (isAbort || !split):
		return err
	case isAbort:
		return &FullError{Answers: all, cause: err}
	case IsDefinite(err) || len(answers) == 0:
		if len(answers) > 0 {
			count = 0
		}
		return partial(all, count, err)
	}
	// Items without room were sent again, and it is unknown whether these were added.
	missing := missingOf(len(answers), answers)
	known := append(append([]Added{}, before...), answers[:missing[0]]...)
	return partial(known, missing[len(missing)-1]+1-missing[0], err)
}

// Lease leases one item for a duration. With [Wait] it waits, without polling. The error is [ErrNoItem] if none came, and [ErrAborted] if the
// context ended: what was leased by then is given back.
func (q *Queue) Lease(ctx context.Context, duration time.Duration, options ...LeaseOption) (*LeasedItem, error) {
	items, err := q.LeaseAll(ctx, duration, append(options, Count(1))...)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, ErrNoItem
	}
	return items[0], nil
}

// LeaseAll leases up to [Count] items with one deadline, and none when the time is up. Otherwise as Lease.
func (q *Queue) LeaseAll(ctx context.Context, duration time.Duration, options ...LeaseOption) ([]*LeasedItem, error) {
	settings := leaseSettingsOf(options)
	items, _, err := waitFor(ctx, q.pool, leaseTarget(q.pool, []*Queue{q}, settings, duration), settings.timeout, nil)
	return items, err
}

func leaseSettingsOf(options []LeaseOption) leaseSettings {
	settings := leaseSettings{count: 1}
	for _, each := range options {
		each.applyLease(&settings)
	}
	return settings
}

// CompleteAll completes items and returns of each whether this call did: of all calls for an item, only the first does. Follow-ups are for
// HandOffAll.
func (q *Queue) CompleteAll(ctx context.Context, entries []Completion) ([]bool, error) {
	return q.completeAll(ctx, entries, q.durability)
}

func (q *Queue) completeAll(ctx context.Context, entries []Completion, d *Durability) ([]bool, error) {
	return runParts(chunks(entries), func(part []Completion) (func() ([]bool, error), error) {
		simple := true
		own := make([]Completion, len(part))
		for i, each := range part {
			own[i] = each
			own[i].FollowUps = nil
			simple = simple && own[i].isSimple()
		}
		if !simple {
			handOff, err := q.handOff(ctx, own, d)
			return func() ([]bool, error) {
				found, err := handOff()
				return completedOf(found), err
			}, err
		}
		call, err := completeCall(q.keys, own)
		return func() ([]bool, error) {
			var shortfall error
			completed, err := whileEnding(q.pool.beats, q.keys, endedBy(own), func() ([]bool, error) {
				found, err := q.call(ctx, call, d)
				if err != nil {
					return nil, err
				}
				shortfall = found.shortfall
				return readCompleteReply(found.reply)
			})
			return completed, orElse(err, shortfall)
		}, err
	})
}

// orElse is the error of a call, or that of the wait behind it.
func orElse(err, shortfall error) error {
	if err != nil {
		return err
	}
	return shortfall
}

func completedOf(all []Completed) []bool {
	found := make([]bool, len(all))
	for i, each := range all {
		found[i] = each.Completed
	}
	return found
}

func endedBy(entries []Completion) []leaseRef {
	refs := make([]leaseRef, len(entries))
	for i, each := range entries {
		refs[i] = leaseRef{each.Token, each.item}
	}
	return refs
}

// HandOffAll completes items, keeps their results and adds their follow-ups, in one step each. A follow-up for a queue of another group or client
// is refused before anything is sent.
func (q *Queue) HandOffAll(ctx context.Context, entries []Completion) ([]Completed, error) {
	return q.handOffAll(ctx, entries, q.durability)
}

func (q *Queue) handOffAll(ctx context.Context, entries []Completion, d *Durability) ([]Completed, error) {
	for _, entry := range entries {
		for _, each := range entry.FollowUps {
			if each.Queue.client != q.client {
				return nil, refused("a follow-up goes to a queue of the same client")
			}
			if each.Queue.Group() != q.Group() {
				text := "leaseq: queue " + each.Queue.Name() + " is of group " + each.Queue.Group() + " and not of " + q.Group()
				return nil, &Error{Code: ErrCrossGroup.Code, Definite: true, invalid: true, message: text}
			}
		}
	}
	return runParts(chunksOfHandOffs(entries), func(part []Completion) (func() ([]Completed, error), error) {
		return q.handOff(ctx, part, d)
	})
}

func (q *Queue) handOff(ctx context.Context, part []Completion, d *Durability) (func() ([]Completed, error), error) {
	call, err := completeWithCall(q.keys, part)
	followUps := make([]int, len(part))
	for i, each := range part {
		followUps[i] = len(each.FollowUps)
	}
	refs := endedBy(part)
	return func() ([]Completed, error) {
		var shortfall error
		completed, err := whileEnding(q.pool.beats, q.keys, refs, func() ([]Completed, error) {
			found, err := q.call(ctx, call, d)
			if err != nil {
				return nil, err
			}
			shortfall = found.shortfall
			return readCompleteWithReply(found.reply, followUps)
		})
		return completed, orElse(err, shortfall)
	}, err
}

// CompleteAndLease completes items and leases others in one round trip, without waiting. It takes two round trips if an outcome is kept or there
// are more than 256 entries; if the second one fails, the error is a [PartialError] with the answers of the first.
func (q *Queue) CompleteAndLease(ctx context.Context, entries []Completion, duration time.Duration, options ...LeaseOption) ([]bool, []*LeasedItem, error) {
	settings := leaseSettingsOf(options)
	fused := len(entries) > 0 && len(entries) <= maxEntries && q.durability == nil
	for _, each := range entries {
		fused = fused && each.isSimple()
	}
	if !fused {
		completed, err := q.CompleteAll(ctx, entries)
		if err != nil {
			return completed, nil, err
		}
		return q.thenLease(ctx, completed, duration, settings)
	}
	call, err := completeAndLeaseCall(q.keys, entries, settings.count, duration)
	if err != nil {
		return nil, nil, err
	}
	sent := time.Now()
	found, err := whileEnding(q.pool.beats, q.keys, endedBy(entries), func() (completeAndLeaseFields, error) {
		reply, err := q.pool.call(ctx, call)
		if err != nil {
			return completeAndLeaseFields{}, err
		}
		return readCompleteAndLeaseReply(reply, len(entries))
	})
	if err != nil {
		return nil, nil, err
	}
	reply := leased{leaseFields{found.Wait, found.Deadline, found.Items, found.Extras}, 0}
	items := reply.items(q.pool, []*Queue{q}, duration, sent)
	if len(items) == 0 && found.Wait == 0 {
		return q.thenLease(ctx, found.Entries, duration, settings) // more was due than one call takes (LQ-BLOCK-14)
	}
	return found.Entries, items, nil
}

func (q *Queue) thenLease(ctx context.Context, completed []bool, duration time.Duration, settings leaseSettings) ([]bool, []*LeasedItem, error) {
	items, _, err := waitFor(ctx, q.pool, leaseTarget(q.pool, []*Queue{q}, settings, duration), 0, nil)
	if err != nil {
		err = partial(completed, 0, err)
	}
	return completed, items, err
}

// Extension is a lease to extend to a duration from now.
type Extension struct {
	ID       string
	Token    int64
	Duration time.Duration
}

// ExtendAll extends leases and returns the new deadlines, the zero time for a lease that is lost. [LeasedItem.Extend] also tells the item.
func (q *Queue) ExtendAll(ctx context.Context, entries []Extension) ([]time.Time, error) {
	return q.extendAll(ctx, entries)
}

func (q *Queue) extendAll(ctx context.Context, entries []Extension) ([]time.Time, error) {
	return runParts(chunks(entries), func(part []Extension) (func() ([]time.Time, error), error) {
		call := extendCall(q.keys, part)
		return func() ([]time.Time, error) {
			reply, err := q.pool.call(ctx, call)
			if err != nil {
				return nil, err
			}
			return readExtendReply(reply)
		}, nil
	})
}

func extendCall(keys queueKeys, entries []Extension) *call {
	args := make([][]string, len(entries))
	for i, each := range entries {
		args[i] = encodeExtendEntry(each.ID, each.Token, each.Duration)
	}
	return queueCall(extendScript, keys, encodeExtendArguments(args))
}

// extendWithin extends one lease on the connection of heartbeats, with a limit for the reply.
func (q *Queue) extendWithin(item *LeasedItem, duration, limit time.Duration) (time.Time, error) {
	reply, err := q.pool.heartbeats.run(extendCall(q.keys, []Extension{{item.ID, item.Token, duration}}), limit)
	if err != nil {
		return time.Time{}, err
	}
	return first(readExtendReply(reply))
}

// ReleaseAll releases items and returns the state of each.
func (q *Queue) ReleaseAll(ctx context.Context, entries []Release) ([]Released, error) {
	return runParts(chunks(entries), func(part []Release) (func() ([]Released, error), error) {
		call, err := releaseCall(q.keys, part)
		refs := make([]leaseRef, len(part))
		for i, each := range part {
			refs[i] = leaseRef{each.Token, each.item}
		}
		return func() ([]Released, error) {
			return whileEnding(q.pool.beats, q.keys, refs, func() ([]Released, error) {
				reply, err := q.pool.call(ctx, call)
				if err != nil {
					return nil, err
				}
				return readReleaseReply(reply)
			})
		}, err
	})
}
