package leaseq

import "time"

// AddOption is an option of an item to add: [Delay], [NotBefore], [Priority], [MaxAttempts], [ExpiresIn], [DeadOnExpiry], [Keep], [ContentType],
// [WithHeader].
type AddOption interface{ applyAdd(*addSettings) }

// CompleteOption is an option of completing an item: [Result], [Keep], [OnlyCurrent], [Then].
type CompleteOption interface{ applyComplete(*Completion) }

// ReleaseOption is an option of releasing an item: [Delay], [Dead], [Uncounted], [LastError], [Keep].
type ReleaseOption interface{ applyRelease(*ReleaseOptions) }

// LeaseOption is an option of leasing items: [Count] and [Wait].
type LeaseOption interface{ applyLease(*leaseSettings) }

// WaitOption is how long a call waits: [Wait].
type WaitOption interface{ applyWait(*time.Duration) }

type addSettings struct {
	AddOptions
	timeout time.Duration
}

type leaseSettings struct {
	count   int
	timeout time.Duration
}

// Wait lets a call wait: a lease for an item, an add for room, a read for an outcome. [Forever] waits until the context ends.
func Wait(d time.Duration) WaitFor { return WaitFor(d) }

// WaitFor is the option of [Wait].
type WaitFor time.Duration

func (w WaitFor) applyAdd(s *addSettings)     { s.timeout = time.Duration(w) }
func (w WaitFor) applyLease(s *leaseSettings) { s.timeout = time.Duration(w) }
func (w WaitFor) applyWait(d *time.Duration)  { *d = time.Duration(w) }

// Count is the most items to lease, 1 to 256. Default: 1.
type Count int

func (c Count) applyLease(s *leaseSettings) { s.count = int(c) }

// Delay is how long from now an item is delayed, when it is added or released.
type Delay time.Duration

func (d Delay) applyAdd(s *addSettings)        { s.Delay = pointer(time.Duration(d)) }
func (d Delay) applyRelease(o *ReleaseOptions) { o.Delay = pointer(time.Duration(d)) }

// Keep is how long the outcome of an item is kept, when it is added, completed or released. 0 keeps it as the item was added.
type Keep time.Duration

func (k Keep) applyAdd(s *addSettings)        { s.Keep = pointer(time.Duration(k)) }
func (k Keep) applyComplete(c *Completion)    { c.Keep = pointer(time.Duration(k)) }
func (k Keep) applyRelease(o *ReleaseOptions) { o.Keep = pointer(time.Duration(k)) }

type addFunc func(*addSettings)

func (f addFunc) applyAdd(s *addSettings) { f(s) }

// NotBefore delays an item until a time of the server's clock; not together with [Delay].
func NotBefore(t time.Time) AddOption { return addFunc(func(s *addSettings) { s.NotBefore = &t }) }

// Priority is -7 to 7, higher first.
func Priority(p int) AddOption { return addFunc(func(s *addSettings) { s.Priority = &p }) }

// MaxAttempts is how often an item may be leased before it is dead; 0 is unlimited. Default: as the queue is configured. A worker with fewer
// [Attempts] makes it dead after these.
func MaxAttempts(n int) AddOption { return addFunc(func(s *addSettings) { s.MaxAttempts = &n }) }

// ExpiresIn drops an item that was not leased by then.
func ExpiresIn(d time.Duration) AddOption { return addFunc(func(s *addSettings) { s.ExpiresIn = &d }) }

// DeadOnExpiry makes an item that expires dead in place of dropping it; with [ExpiresIn].
func DeadOnExpiry() AddOption { return addFunc(func(s *addSettings) { s.ExpiresTo = true }) }

// ContentType says what the data are.
func ContentType(t string) AddOption {
	return addFunc(func(s *addSettings) { s.ContentType = append([]byte{}, t...) })
}

// WithHeader adds a header, which travels beside the data.
func WithHeader(name string, value []byte) AddOption {
	return addFunc(func(s *addSettings) {
		s.Headers = append(s.Headers, Header{name, append([]byte{}, value...)})
	})
}

type completeFunc func(*Completion)

func (f completeFunc) applyComplete(c *Completion) { f(c) }

// Result keeps these bytes as the result of the item, as long as its outcome is kept.
func Result(content []byte) CompleteOption {
	return completeFunc(func(c *Completion) { c.Result = append([]byte{}, content...) })
}

// OnlyCurrent completes the item only while this lease is its current one.
func OnlyCurrent() CompleteOption { return completeFunc(func(c *Completion) { c.OnlyCurrent = true }) }

// Then adds an item, to a queue of the same group, in the step that completes this one, if and only if this call completes it.
func Then(queue *Queue, item NewItem) CompleteOption {
	return completeFunc(func(c *Completion) { c.FollowUps = append(c.FollowUps, FollowUp{queue, item}) })
}

type releaseFunc func(*ReleaseOptions)

func (f releaseFunc) applyRelease(o *ReleaseOptions) { f(o) }

// Uncounted releases an item as if it had never been leased: the attempt does not count, and it gets its place back.
func Uncounted() ReleaseOption { return releaseFunc(func(o *ReleaseOptions) { o.Uncounted = true }) }

// LastError is the last error of a released item from then on; an empty one clears it.
func LastError(text string) ReleaseOption {
	return releaseFunc(func(o *ReleaseOptions) { o.Error = append([]byte{}, text...) })
}

// Dead makes a released item dead, whatever its attempts.
func Dead() ReleaseOption { return releaseFunc(func(o *ReleaseOptions) { o.Dead = true }) }

func pointer[T any](value T) *T { return &value }

// Options joins several options of an item to add to one.
func Options(options ...AddOption) AddOption {
	return addFunc(func(s *addSettings) {
		for _, each := range options {
			each.applyAdd(s)
		}
	})
}
