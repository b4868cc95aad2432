package leaseq

import (
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// What a caller can wait for: items, room, an outcome.

// leaseTarget waits for items of the first queue, of several of one group, that has any.
func leaseTarget(p *pool, queues []*Queue, settings leaseSettings, duration time.Duration) *target[[]*LeasedItem] {
	keys := make([]queueKeys, len(queues))
	block := []string{"BLPOP"}
	for i, each := range queues {
		keys[i] = each.keys
		block = append(block, each.keys.key("wake"))
	}
	settle := func() []*call {
		calls := make([]*call, len(keys))
		for i, each := range keys {
			calls[i] = settleCall(each)
		}
		return calls
	}
	call := leaseCall(keys, settings.count, duration)
	return &target[[]*LeasedItem]{
		check: func(on *router) checked[[]*LeasedItem] {
			sent := time.Now()
			reply, err := on.run(call, p.limit)
			if err != nil {
				return checked[[]*LeasedItem]{err: err}
			}
			leased, err := readLease(call.script, reply)
			if err != nil {
				return checked[[]*LeasedItem]{err: err}
			}
			items := leased.items(p, queues, duration, sent)
			return checked[[]*LeasedItem]{found: items, ok: len(items) > 0, due: leased.Wait, sent: sent}
		},
		block: block, settle: settle, detached: true, giveBack: giveBackAll,
	}
}

// leased is the reply of a lease, and which queue of the call it is of: -1 if there are no items.
type leased struct {
	leaseFields
	queue int
}

func readLease(s *script, reply rueidis.RedisMessage) (leased, error) {
	if s == leaseScript {
		fields, err := readLeaseReply(reply)
		return leased{fields, 0}, err
	}
	fields, err := readLeaseAnyReply(reply)
	return leased{leaseFields{fields.Wait, fields.Deadline, fields.Items, fields.Extras}, fields.Queue - 1}, err
}

// items makes the items of a reply, whose leases last at least from when the call was sent (LQ-CLIENT-3). The outcomes of items that died are
// read, which writes them: a script cannot write an outcome whose key it was not passed (LQ-CLIENT-8).
func (l leased) items(p *pool, queues []*Queue, duration time.Duration, sent time.Time) []*LeasedItem {
	var items []*LeasedItem
	if l.queue >= 0 && l.queue < len(queues) && len(l.Items) > 0 {
		queue := queues[l.queue]
		p.register(queue.keys)
		for _, each := range l.Items {
			items = append(items, newLeasedItem(queue, each, l.Deadline, duration, sent))
		}
	}
	died := make([][]string, len(queues))
	for _, extra := range l.Extras {
		name := string(extra.Name)
		if extra.Item > 0 && extra.Item <= len(items) {
			items[extra.Item-1].setExtra(name, extra.Value)
		} else if at := max(-extra.Item-1, 0); name == "died" && extra.Item <= 0 && at < len(queues) {
			if id, err := extra.Value.ToString(); err == nil {
				died[at] = append(died[at], id)
			}
		}
	}
	for i, ids := range died {
		queues[i].publishLater(ids)
	}
	return items
}

// setExtra takes a property of an item. Unknown names are skipped, whatever the type of their value (LQ-READ-7).
func (i *LeasedItem) setExtra(name string, value rueidis.RedisMessage) {
	if name == "keep" {
		if ms, err := value.ToInt64(); err == nil {
			i.Keep, i.keeps = time.Duration(ms)*time.Millisecond, true
		}
		return
	}
	text, err := value.ToString()
	if err != nil {
		return
	}
	if name == "content_type" {
		i.ContentType = append([]byte{}, text...)
	} else if header, found := strings.CutPrefix(name, "header:"); found {
		i.Headers = append(i.Headers, Header{header, append([]byte{}, text...)})
	}
}

// adding adds items. Answers are filled in as replies come. Items without room are sent again, and no others: an item that was added may be
// completed by now.
//
// With durability, the first error of a wait behind a call that added something goes to shortfall.
func adding(p *pool, keys queueKeys, entries [][]string, answers *[]Added, d *Durability, shortfall *error) func(*router) checked[[]Added] {
	return func(on *router) checked[[]Added] {
		sent := time.Now()
		missing := missingOf(len(entries), *answers)
		args := make([][]string, len(missing))
		for i, at := range missing {
			args[i] = entries[at]
		}
		call := queueCall(addScript, keys, encodeAddArguments(args))
		var found answer
		var err error
		if d == nil {
			found.reply, err = on.run(call, p.limit)
		} else {
			found, err = p.callDurably(call, d)
		}
		if err != nil {
			return checked[[]Added]{err: err}
		}
		latest, err := readAddReply(found.reply)
		if err == nil && len(latest) != len(missing) {
			err = badReply("it has another number of answers")
		}
		if err != nil {
			return checked[[]Added]{err: err}
		}
		if *answers == nil {
			*answers = make([]Added, len(entries))
		}
		full := false
		for i, at := range missing {
			(*answers)[at] = latest[i]
			full = full || latest[i].NoRoom()
			if !latest[i].NoRoom() && *shortfall == nil {
				*shortfall = found.shortfall
			}
		}
		return checked[[]Added]{found: *answers, ok: !full, due: waitCap, sent: sent}
	}
}

// roomTarget waits for room and adds items.
func roomTarget(keys queueKeys, add func(*router) checked[[]Added]) *target[[]Added] {
	// There may be more room than this producer took, and the wake-up was for one producer (LQ-ROOM-3).
	settle := func() []*call { return []*call{settleCall(keys)} }
	return &target[[]Added]{check: add, block: []string{"BLPOP", keys.key("room")}, settle: settle, alwaysSettle: true}
}

// missingOf are the places of entries that were not added yet.
func missingOf(count int, answers []Added) []int {
	var missing []int
	for at := range count {
		if answers == nil || answers[at].NoRoom() {
			missing = append(missing, at)
		}
	}
	return missing
}

// outcomeTarget waits for an outcome, and notes what the last look found.
func outcomeTarget(p *pool, keys queueKeys, id string, latest *Outcome) *target[Outcome] {
	call := outcomeCall(keys, []string{id})
	var created time.Time
	check := func(on *router) checked[Outcome] {
		sent := time.Now()
		reply, err := on.run(call, p.limit)
		if err != nil {
			return checked[Outcome]{err: err}
		}
		found, err := first(readOutcomeReply(reply))
		if err != nil {
			return checked[Outcome]{err: err}
		}
		if created.IsZero() {
			created = found.Created
		}
		// A later item has this id by now: nothing more is known of the one that was waited for (LQ-BLOCK-13).
		if !found.Created.IsZero() && !found.Created.Equal(created) {
			found = Outcome{State: OutcomeStateAbsent}
		}
		*latest = found
		ended := found.State == OutcomeStateResult || found.State == OutcomeStateFailure || found.State == OutcomeStateAbsent
		return checked[Outcome]{found: found, ok: ended, due: waitCap, sent: sent}
	}
	return &target[Outcome]{check: check, block: blockOn(keys.resultKey(id)), detached: true, giveBack: func(Outcome) {}}
}

// blockOn moves an element from a list to the list itself: it stays, and wakes every waiter (LQ-BLOCK-12).
func blockOn(list string) []string { return []string{"BLMOVE", list, list, "LEFT", "LEFT"} }

// wakeTarget waits until a list has an element, or for one block. The caller finds out what has changed. The check only makes a server
// notice that the time of the block is over.
func wakeTarget(p *pool, keys queueKeys, id, list string) *target[struct{}] {
	call := outcomeCall(keys, []string{id})
	check := func(on *router) checked[struct{}] {
		_, err := on.run(call, p.limit)
		return checked[struct{}]{ok: err == nil, err: err}
	}
	return &target[struct{}]{check: check, block: blockOn(list), giveBack: func(struct{}) {}}
}
