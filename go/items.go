package leaseq

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Items leases items one after the other until none came for the time of [Wait] (by default without limit), or the context ends, which ends the
// loop without an error. Complete or release each item in the loop. With [Count], several are leased at a time; those that the loop did not reach
// are given back when it ends.
//
//	for item, err := range queue.Items(ctx, time.Minute) {
func (q *Queue) Items(ctx context.Context, duration time.Duration, options ...LeaseOption) iter.Seq2[*LeasedItem, error] {
	options = append([]LeaseOption{Wait(Forever)}, options...)
	return func(yield func(*LeasedItem, error) bool) {
		for {
			items, err := q.LeaseAll(ctx, duration, options...)
			if errors.Is(err, ErrAborted) && ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(items) == 0 || !yieldAll(ctx, items, yield) {
				return
			}
		}
	}
}

// yieldAll hands items out. One whose lease is over goes back, as do the others when the loop ends.
func yieldAll(ctx context.Context, items []*LeasedItem, yield func(*LeasedItem, error) bool) bool {
	for i, each := range items {
		if ctx.Err() != nil {
			giveBackAll(items[i:])
			return false
		}
		if !each.Held() {
			giveBackAll(items[i : i+1])
			continue
		}
		if !yield(each, nil) {
			giveBackAll(items[i+1:])
			return false
		}
	}
	return true
}
