package leaseq

import (
	"sync"
	"time"
)

// maxBeatLimit is the longest time that an extension in the background waits for its reply.
const maxBeatLimit = 5 * time.Second

// heartbeats are those of a client, by queue and token, so that every call that ends an item finds its heartbeat.
type heartbeats struct {
	mu      sync.Mutex
	byLease map[string]*heartbeat
	closed  bool
}

// heartbeat extends one lease in the background until it is stopped, and reports the loss of the lease.
type heartbeat struct {
	item   *LeasedItem
	mu     sync.Mutex
	wake   chan struct{}
	ended  chan struct{}
	isOver bool
	// ending is how many calls of this client that end the item are under way.
	ending   int
	finished bool
}

func leaseName(keys queueKeys, token int64) string { return keys.registryEntry + " " + digits(token) }

// start starts the heartbeat of a lease, in place of an earlier one.
func (h *heartbeats) start(item *LeasedItem) *heartbeat {
	beat := &heartbeat{item: item, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	h.mu.Lock()
	name := leaseName(item.queue.keys, item.Token)
	before := h.byLease[name]
	closed := h.closed
	if !closed {
		h.byLease[name] = beat
	}
	h.mu.Unlock()
	if before != nil {
		before.stop()
	}
	if closed {
		beat.stop()
		return beat
	}
	go func() {
		beat.run()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.byLease[name] == beat {
			delete(h.byLease, name)
		}
	}()
	return beat
}

// close stops all heartbeats, and those that are started later: there is no connection to extend on.
func (h *heartbeats) close() {
	h.mu.Lock()
	h.closed = true
	var all []*heartbeat
	for _, each := range h.byLease {
		all = append(all, each)
	}
	h.mu.Unlock()
	for _, each := range all {
		each.stop()
	}
}

// whileEnding makes a call that ends items. Their leases are extended while it is under way, since it may be refused (LQ-CLIENT-16).
func whileEnding[T any](h *heartbeats, keys queueKeys, entries []leaseRef, call func() (T, error)) (T, error) {
	beats := h.of(keys, entries)
	for _, each := range beats {
		each.callBegun()
	}
	value, err := call()
	if err == nil {
		for _, each := range entries {
			if each.item != nil {
				each.item.ended.Store(true)
			}
		}
	}
	for _, each := range beats {
		each.callEnded(err == nil || !IsDefinite(err))
	}
	return value, err
}

func (h *heartbeats) of(keys queueKeys, entries []leaseRef) []*heartbeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.byLease) == 0 {
		return nil
	}
	var found []*heartbeat
	seen := map[string]bool{}
	for _, each := range entries {
		name := leaseName(keys, each.token)
		if beat := h.byLease[name]; beat != nil && !seen[name] {
			seen[name] = true
			found = append(found, beat)
		}
	}
	return found
}

// stop extends no more.
func (b *heartbeat) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isOver {
		b.isOver = true
		close(b.ended)
	}
}

func (b *heartbeat) stopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOver
}

// reschedule: the caller has extended the lease, or tried to; the next extension counts from then (LQ-CLIENT-13).
func (b *heartbeat) reschedule() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *heartbeat) callBegun() {
	b.mu.Lock()
	b.ending++
	b.mu.Unlock()
}

func (b *heartbeat) callEnded(finished bool) {
	b.mu.Lock()
	b.ending--
	b.finished = b.finished || finished
	b.mu.Unlock()
	if finished {
		b.stop()
	}
}

// isEnding reports whether a call of this client ended the item, or may have: an extension that finds no lease is then no loss (LQ-CLIENT-4).
func (b *heartbeat) isEnding() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finished || b.ending > 0
}

func (b *heartbeat) run() {
	pause := b.untilNext()
	for {
		timer := time.NewTimer(pause)
		select {
		case <-b.ended:
			timer.Stop()
			return
		case <-b.wake:
			timer.Stop()
			pause = b.untilNext()
			continue
		case <-timer.C:
		}
		select { // the extension settles what an earlier one asked for
		case <-b.wake:
			pause = b.untilNext()
			continue
		default:
		}
		var lost bool
		if pause, lost = b.beat(); lost {
			return
		}
	}
}

// untilNext is the time until a third of the lease has passed, counted from when it was sent for (LQ-CLIENT-13).
func (b *heartbeat) untilNext() time.Duration {
	duration, heldUntil, inDoubt := b.item.lease()
	if inDoubt {
		return 0
	}
	return max(0, time.Until(heldUntil.Add(-duration*2/3)))
}

// beat extends the lease, and returns the time until the next extension, or that the lease is lost. Whether or not an extension that failed has
// run, it is safe to repeat (LQ-CLIENT-14).
func (b *heartbeat) beat() (time.Duration, bool) {
	duration, _, _ := b.item.lease()
	deadline, err := b.item.extendFor(duration, func() (time.Time, error) {
		return b.item.queue.extendWithin(b.item, duration, min(duration/9, maxBeatLimit))
	})
	if b.stopped() {
		return 0, true
	}
	ending := b.isEnding()
	if err == nil {
		if deadline.IsZero() && !ending {
			return b.lost(nil)
		}
		if _, _, inDoubt := b.item.lease(); inDoubt {
			return 0, false
		}
		return duration / 3, false
	}
	_, heldUntil, _ := b.item.lease()
	left := time.Until(heldUntil)
	if left <= 0 && !ending {
		return b.lost(err)
	}
	if left <= 0 {
		return duration / 10, false
	}
	return min(duration/10, left), false
}

func (b *heartbeat) lost(cause error) (time.Duration, bool) {
	b.stop()
	b.item.markLost(&LostError{cause: cause})
	return 0, true
}
