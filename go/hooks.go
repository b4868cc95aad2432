package leaseq

import (
	"fmt"
	"log/slog"
	"time"
)

// Hooks are functions that a worker calls as the work goes on, for metrics, traces and logs. All are optional. A hook for an
// item is called on the goroutine of that item, which waits for it, so that several may run at once: keep them short. If one panics, that is
// logged and changes nothing.
type Hooks struct {
	// Leased is called when one call has leased these items.
	Leased func(items []*LeasedItem)
	// Started is called when the handler of an item starts.
	Started func(item *LeasedItem)
	// Ended is called when the handler has ended. err says why it failed or was cut off: its time limit, a lost lease, the end of the grace. Behind the end of the grace that may be after Run has returned.
	Ended func(item *LeasedItem, took time.Duration, err error)
	// Completed is called when the item is completed.
	Completed func(item *LeasedItem)
	// Released is called when the item was given back. reason is empty if its handler did not fail.
	Released func(item *LeasedItem, delay time.Duration, reason string)
	// DeadLettered is called when the item became a dead letter.
	DeadLettered func(item *LeasedItem, reason string)
	// Lost is called when the lease is lost: another worker has the item, it was finished or removed, or the server was away for as long as the
	// lease. It is not called if a call of this worker may have ended the item and its reply was lost.
	Lost func(item *LeasedItem)
	// ServerAway is called when calls to the server start to fail. The worker goes on trying.
	ServerAway func(err error)
	// ServerBack is called when calls work again.
	ServerBack func(after time.Duration)
}

// reporter has hooks and a log whose failures do not reach the worker.
type reporter struct {
	hooks Hooks
	log   *slog.Logger
}

func (r *reporter) safely(hook string, call func()) {
	defer func() {
		if problem := recover(); problem != nil {
			r.log.Error("leaseq worker: a hook failed", "hook", hook, "error", fmt.Sprint(problem))
		}
	}()
	call()
}

func (r *reporter) leased(items []*LeasedItem) {
	if r.hooks.Leased != nil {
		r.safely("Leased", func() { r.hooks.Leased(items) })
	}
}

func (r *reporter) started(item *LeasedItem) {
	if r.hooks.Started != nil {
		r.safely("Started", func() { r.hooks.Started(item) })
	}
}

func (r *reporter) ended(item *LeasedItem, took time.Duration, err error) {
	if r.hooks.Ended != nil {
		r.safely("Ended", func() { r.hooks.Ended(item, took, err) })
	}
}

func (r *reporter) completed(item *LeasedItem) {
	if r.hooks.Completed != nil {
		r.safely("Completed", func() { r.hooks.Completed(item) })
	}
}

func (r *reporter) released(item *LeasedItem, delay time.Duration, reason string) {
	if r.hooks.Released != nil {
		r.safely("Released", func() { r.hooks.Released(item, delay, reason) })
	}
}

func (r *reporter) deadLettered(item *LeasedItem, reason string) {
	if r.hooks.DeadLettered != nil {
		r.safely("DeadLettered", func() { r.hooks.DeadLettered(item, reason) })
	}
}

func (r *reporter) lost(item *LeasedItem) {
	if r.hooks.Lost != nil {
		r.safely("Lost", func() { r.hooks.Lost(item) })
	}
}

func (r *reporter) serverAway(err error) {
	if r.hooks.ServerAway != nil {
		r.safely("ServerAway", func() { r.hooks.ServerAway(err) })
	}
}

func (r *reporter) serverBack(after time.Duration) {
	if r.hooks.ServerBack != nil {
		r.safely("ServerBack", func() { r.hooks.ServerBack(after) })
	}
}

// of is the log with the attributes of an item.
func (r *reporter) of(item *LeasedItem) *slog.Logger {
	return r.log.With("queue", item.queue.Name(), "id", item.ID, "attempt", item.Attempt)
}
