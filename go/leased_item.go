package leaseq

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// LeasedItem is an item, and the right to work on it until a deadline. Complete or release it; what is neither comes back at the deadline.
type LeasedItem struct {
	// ID is the id that the item was added with.
	ID string
	// Data are the bytes that it was added with.
	Data []byte
	// Token is the number of this lease, greater than that of every earlier lease of the queue: a fencing token.
	Token int64
	// Attempt is how often it has been leased since it was added or revived, this lease included.
	Attempt int
	// Keep is how long its outcome is kept; 0 if it is not.
	Keep time.Duration
	// ContentType is nil if it was added without.
	ContentType []byte
	// Headers are in the order of the server.
	Headers []Header

	queue    *Queue
	leasedAt time.Time
	keeps    bool
	// completion is how a worker completes it.
	completion []CompleteOption
	ended      atomic.Bool
	lost       chan struct{}

	mu        sync.Mutex
	duration  time.Duration
	deadline  time.Time
	heldUntil time.Time
	// askedAt is when the extension that set duration was sent.
	askedAt time.Time
	// underWay are extensions without a reply yet.
	underWay map[*extension]bool
	// inDoubt: extensions overlapped, so the lease must be extended again at once (LQ-CLIENT-28).
	inDoubt bool
	beat    *heartbeat
	lostFor error
}

// extension is one that is under way. It was overtaken if another one ended meanwhile, so that it is unknown which the server took last.
type extension struct{ overtaken bool }

// LostError is the cause of a context that ended since the lease was lost.
type LostError struct{ cause error }

// Error returns the text.
func (e *LostError) Error() string { return "leaseq: the lease is lost" }

// Unwrap returns why the lease could not be extended, if it is known.
func (e *LostError) Unwrap() error { return e.cause }

func newLeasedItem(queue *Queue, item leaseItem, deadline time.Time, duration time.Duration, sent time.Time) *LeasedItem {
	return &LeasedItem{
		ID: item.ID, Data: item.Data, Token: item.Token, Attempt: item.Attempt,
		queue: queue, leasedAt: deadline.Add(-duration.Round(time.Millisecond)), lost: make(chan struct{}), duration: duration, deadline: deadline, heldUntil: sent.Add(duration),
	}
}

// Queue returns the queue that it was leased from.
func (i *LeasedItem) Queue() *Queue { return i.queue }

// Header returns the value of a header, nil without one.
func (i *LeasedItem) Header(name string) []byte {
	for _, each := range i.Headers {
		if each.Name == name {
			return each.Value
		}
	}
	return nil
}

// Deadline returns the end of the lease, by the server's clock.
func (i *LeasedItem) Deadline() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.deadline
}

// Held reports whether the lease is still held: no call ended it, it was not found lost, and its time, counted from before the call that leased
// or extended it, is not over (LQ-CLIENT-3).
func (i *LeasedItem) Held() bool {
	if i.ended.Load() {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.lostFor == nil && time.Now().Before(i.heldUntil)
}

// Lost returns a channel that is closed when the lease is found to be lost: stop working on the item. Work that was finished then can still be
// completed.
func (i *LeasedItem) Lost() <-chan struct{} { return i.lost }

// WithContext returns a context that ends with the given one, and when the lease is found to be lost; its cause is then a [LostError].
func (i *LeasedItem) WithContext(ctx context.Context) (context.Context, context.CancelFunc) {
	merged, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-i.lost:
			cancel(i.lostFor)
		case <-merged.Done():
		}
	}()
	return merged, func() { cancel(context.Canceled) }
}

// Completion returns the entry of this item for [Queue.CompleteAll] and others: its outcome is kept as it was added (LQ-CLIENT-7).
func (i *LeasedItem) Completion(options ...CompleteOption) Completion {
	entry := Completion{ID: i.ID, Token: i.Token, item: i}
	if i.keeps {
		entry.Keep = new(time.Duration)
	}
	for _, each := range options {
		each.applyComplete(&entry)
	}
	return entry
}

// Complete completes the item. It returns true if this call did, or, if its outcome is kept, an earlier call with this lease. That works behind
// the end of the lease too, and when another worker has leased the item meanwhile: of all calls for an item the first completes it. It returns
// false if another call did, or the item was removed or is dead and purged: then what depends on it must not happen again. With [OnlyCurrent] it
// completes only while this lease is the item's latest.
func (i *LeasedItem) Complete(ctx context.Context, options ...CompleteOption) (bool, error) {
	answer, err := i.HandOff(ctx, options...)
	return answer.Completed, err
}

// CompleteWith says how the worker is to complete the item when its handler has returned: with a [Result], or with follow-ups ([Then]).
func (i *LeasedItem) CompleteWith(options ...CompleteOption) {
	i.completion = append(i.completion, options...)
}

// HandOff completes the item as Complete does, and returns what became of its follow-ups: see [Then].
func (i *LeasedItem) HandOff(ctx context.Context, options ...CompleteOption) (Completed, error) {
	entry := i.Completion(options...)
	if len(entry.FollowUps) > 0 {
		return first(i.queue.HandOffAll(ctx, []Completion{entry}))
	}
	completed, err := first(i.queue.CompleteAll(ctx, []Completion{entry}))
	return Completed{Completed: completed}, err
}

// Releasing returns the entry of this item for [Queue.ReleaseAll].
func (i *LeasedItem) Releasing(options ...ReleaseOption) Release {
	entry := Release{ID: i.ID, Token: i.Token, item: i}
	if i.keeps {
		entry.Keep = new(time.Duration)
	}
	for _, each := range options {
		each.applyRelease(&entry.ReleaseOptions)
	}
	return entry
}

// Release gives the item back and returns its state.
func (i *LeasedItem) Release(ctx context.Context, options ...ReleaseOption) (Released, error) {
	return first(i.queue.ReleaseAll(ctx, []Release{i.Releasing(options...)}))
}

// DeadLetter makes the item a dead letter with a last error, for a person to look at. It returns false if the lease is lost.
func (i *LeasedItem) DeadLetter(ctx context.Context, reason string) (bool, error) {
	options := []ReleaseOption{Dead()}
	if reason != "" {
		options = append(options, LastError(reason))
	}
	state, err := i.Release(ctx, options...)
	return state == ReleasedDead, err
}

// Extend extends the lease to a duration from now, and returns the new deadline: the zero time if the lease is lost, which closes Lost too. A
// heartbeat goes on with that duration.
func (i *LeasedItem) Extend(ctx context.Context, duration time.Duration) (time.Time, error) {
	sent := time.Now()
	deadline, err := i.extendFor(duration, func() (time.Time, error) {
		return first(i.queue.extendAll(ctx, []Extension{{i.ID, i.Token, duration}}))
	})
	i.mu.Lock()
	if err == nil && !deadline.IsZero() && !sent.Before(i.askedAt) {
		// of two overlapping calls, the last sent counts (LQ-CLIENT-13)
		i.duration, i.askedAt = duration.Round(time.Millisecond), sent
	}
	beat := i.beat
	i.mu.Unlock()
	if err == nil && deadline.IsZero() && (beat == nil || !beat.isEnding()) {
		i.markLost(&LostError{})
	}
	if beat != nil {
		beat.reschedule()
	}
	return deadline, err
}

// Heartbeat extends the lease in the background, every third of its duration, until the item is completed or released, the lease is lost (see
// Lost), or the returned function is called.
func (i *LeasedItem) Heartbeat() (stop func()) {
	beat := i.queue.pool.beats.start(i)
	i.mu.Lock()
	i.beat = beat
	i.mu.Unlock()
	return beat.stop
}

// lease is the duration, until when the lease is held for certain, and whether it must be extended at once.
func (i *LeasedItem) lease() (time.Duration, time.Time, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.duration, i.heldUntil, i.inDoubt
}

// extendFor runs an extension and notes the new deadline, if the lease was not lost. It settles what is in doubt, unless another overlaps it too.
func (i *LeasedItem) extendFor(duration time.Duration, extend func() (time.Time, error)) (time.Time, error) {
	this := &extension{}
	heldUntil := time.Now().Add(duration.Round(time.Millisecond))
	i.mu.Lock()
	if i.underWay == nil {
		i.underWay = map[*extension]bool{}
	}
	i.underWay[this] = true
	i.inDoubt = false
	i.mu.Unlock()
	deadline, err := extend()
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil && !deadline.IsZero() {
		// overtaken: the server may have taken either last
		if !this.overtaken || deadline.Before(i.deadline) {
			i.deadline = deadline
		}
		if !this.overtaken || heldUntil.Before(i.heldUntil) {
			i.heldUntil = heldUntil
		}
	}
	delete(i.underWay, this)
	for other := range i.underWay {
		other.overtaken = true
	}
	i.inDoubt = i.inDoubt || this.overtaken
	return deadline, err
}

// markLost closes Lost, with the reason for contexts.
func (i *LeasedItem) markLost(reason error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lostFor == nil {
		i.lostFor = reason
		close(i.lost)
	}
}

// giveBackAll releases items as if they had not been leased. If that fails, they come back at their deadline.
func giveBackAll(items []*LeasedItem) {
	if len(items) == 0 {
		return
	}
	entries := make([]Release, len(items))
	for i, each := range items {
		entries[i] = each.Releasing(Uncounted())
	}
	_, _ = items[0].queue.ReleaseAll(context.Background(), entries)
}
