package leaseq

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// byIDs makes a call for each 256 ids.
func byIDs[T any](ctx context.Context, q *Queue, ids []string, s *script, args func([]string) []string, read func(rueidis.RedisMessage) ([]T, error)) ([]T, error) {
	return runParts(chunks(ids), func(part []string) (func() ([]T, error), error) {
		call := queueCall(s, q.keys, args(part))
		return func() ([]T, error) {
			reply, err := q.pool.call(ctx, call)
			if err != nil {
				return nil, err
			}
			return read(reply)
		}, nil
	})
}

// Revive makes dead items ready again, with all their attempts. It returns of each whether it was dead.
func (q *Queue) Revive(ctx context.Context, ids ...string) ([]bool, error) {
	return byIDs(ctx, q, ids, reviveScript, encodeReviveArguments, readReviveReply)
}

// Promote makes delayed items ready now. It returns of each whether it was delayed.
func (q *Queue) Promote(ctx context.Context, ids ...string) ([]bool, error) {
	return byIDs(ctx, q, ids, promoteScript, encodePromoteArguments, readPromoteReply)
}

// Purge deletes items that have been dead for at least that long. It returns of each whether it was deleted.
func (q *Queue) Purge(ctx context.Context, olderThan time.Duration, ids ...string) ([]bool, error) {
	args := func(part []string) []string { return encodePurgeArguments(olderThan, part) }
	return byIDs(ctx, q, ids, purgeScript, args, readPurgeReply)
}

// Remove removes items in any state, leased ones too, and returns the state that each was in.
func (q *Queue) Remove(ctx context.Context, ids ...string) ([]State, error) {
	return byIDs(ctx, q, ids, removeScript, encodeRemoveArguments, readRemoveReply)
}

// Inspect returns items as they are, without changing them.
func (q *Queue) Inspect(ctx context.Context, ids ...string) ([]ItemInfo, error) {
	return byIDs(ctx, q, ids, inspectScript, encodeInspectArguments, readInspectReply)
}

// Outcomes returns the outcome of each item, or its state if it has none.
func (q *Queue) Outcomes(ctx context.Context, ids ...string) ([]Outcome, error) {
	ids = append([]string{}, ids...)
	var outcomes []Outcome
	// A reply has fewer entries if contents are long (LQ-OUTCOME-9).
	for len(outcomes) < len(ids) {
		rest := ids[len(outcomes):min(len(ids), len(outcomes)+maxEntries)]
		reply, err := q.pool.call(ctx, outcomeCall(q.keys, rest))
		var found []Outcome
		if err == nil {
			found, err = readOutcomeReply(reply)
		}
		if err == nil && len(found) == 0 {
			err = badReply("it is empty")
		}
		if err != nil && len(rest) < len(ids) {
			return outcomes, partial(outcomes, len(rest), err)
		}
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, found...)
	}
	return outcomes, nil
}

// WaitOutcome waits until the item has an outcome or is gone, by default until the context ends, and then returns what is known. An item of the
// same id that was added later counts as absent. An item that is dead and keeps no outcome is waited for, since it may be revived.
func (q *Queue) WaitOutcome(ctx context.Context, id string, options ...WaitOption) (Outcome, error) {
	var latest Outcome
	_, _, err := waitFor(ctx, q.pool, outcomeTarget(q.pool, q.keys, id, &latest), timeoutOf(options, Forever), nil)
	if err != nil {
		return Outcome{}, err
	}
	return latest, nil
}

// publishLater publishes in the background.
func (q *Queue) publishLater(ids []string) {
	if len(ids) > 0 {
		q.pool.tasks.run(func() { q.publish(context.Background(), ids) })
	}
}

// publish reads the outcomes of items that died where no handler ran, which writes them (LQ-CLIENT-8), and logs them.
func (q *Queue) publish(ctx context.Context, ids []string) {
	outcomes, _ := q.Outcomes(ctx, ids...)
	logDeaths(ctx, q.pool.log, q.keys.name, ids, outcomes)
}

// Stats returns the counts of the queue by their names in the protocol; now and waited are microseconds.
func (q *Queue) Stats(ctx context.Context) (map[string]int64, error) {
	reply, err := q.pool.call(ctx, queueCall(statsScript, q.keys, nil))
	if err != nil {
		return nil, err
	}
	return readStatsReply(reply)
}

// List returns a page of the ids in a state, or of those that have an outcome, in an order.
func (q *Queue) List(ctx context.Context, state ListState, offset, limit int, order ListOrder) (Page, error) {
	reply, err := q.pool.call(ctx, queueCall(listScript, q.keys, encodeListArguments(state, offset, limit, order)))
	if err != nil {
		return Page{}, err
	}
	return readListReply(reply)
}

// Configure sets limits of the queue; what is nil stays.
func (q *Queue) Configure(ctx context.Context, changes ConfigureOptions) error {
	options, err := encodeConfigureOptions(changes)
	if err != nil {
		return err
	}
	_, err = q.pool.call(ctx, queueCall(configureScript, q.keys, encodeConfigureArguments(options)))
	return err
}

// Delete deletes the queue with its settings and counters, and takes it out of the registry. It reports whether there was a queue. It must hold
// no items, dead ones included, and no outcomes: else the error is ErrQueueInUse (LQ-DELETE-1).
func (q *Queue) Delete(ctx context.Context) (bool, error) {
	reply, err := q.pool.call(ctx, queueCall(deleteScript, q.keys, nil))
	if err != nil {
		return false, err
	}
	q.pool.unregister(q.keys)
	return readDeleteReply(reply)
}

// Pause lets nothing be leased until Resume.
func (q *Queue) Pause(ctx context.Context) error {
	return q.Configure(ctx, ConfigureOptions{Paused: pointer(true)})
}

// Resume ends a pause.
func (q *Queue) Resume(ctx context.Context) error {
	return q.Configure(ctx, ConfigureOptions{Paused: pointer(false)})
}

// Settle passes a wake-up on, and returns whether one was needed. It is for programs with a way of their own to wait.
func (q *Queue) Settle(ctx context.Context) (bool, error) {
	reply, err := q.pool.call(ctx, settleCall(q.keys))
	if err != nil {
		return false, err
	}
	return readSettleReply(reply)
}

// LightClean promotes due items, reclaims expired leases, and ends items and outcomes whose time is over, until nothing is left to do now. It
// returns the sums.
func (q *Queue) LightClean(ctx context.Context) (LightClean, error) {
	var sum LightClean
	for {
		reply, err := q.pool.call(ctx, queueCall(lightCleanScript, q.keys, encodeLightCleanArguments(maxEntries)))
		if err != nil {
			return sum, err
		}
		step, err := readLightCleanReply(reply)
		if err != nil {
			return sum, err
		}
		if len(step.DeadWithOutcome) > 0 {
			q.publish(ctx, step.DeadWithOutcome)
		}
		sum.Promoted += step.Promoted
		sum.Reclaimed += step.Reclaimed
		sum.Died += step.Died
		sum.Expired += step.Expired
		sum.Pruned += step.Pruned
		sum.DeadWithOutcome = append(sum.DeadWithOutcome, step.DeadWithOutcome...)
		if sum.Wait = step.Wait; step.Wait != 0 {
			return sum, nil
		}
	}
}

// DeepClean looks at the whole queue for damage, repairs it unless dryRun, and returns how often it found each kind. Others can use the queue
// meanwhile.
func (q *Queue) DeepClean(ctx context.Context, dryRun bool) (map[string]int64, error) {
	found := map[string]int64{}
	for cursor := "0"; ; {
		reply, err := q.pool.call(ctx, queueCall(deepCleanScript, q.keys, encodeDeepCleanArguments(cursor, maxEntries, dryRun)))
		if err != nil {
			return found, err
		}
		page, err := readDeepCleanReply(reply)
		if err != nil {
			return found, err
		}
		for kind, count := range page.Repairs {
			found[kind] += count
		}
		if cursor = page.Cursor; cursor == "0" {
			return found, nil
		}
	}
}
