package leaseq

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// maxGatheredBytes is how many bytes one call for several callers has at most, unless one entry alone is longer.
const maxGatheredBytes = 4 << 20

// gatherer makes calls of one kind, on one queue, for all its callers. An entry that comes while as many calls are under way as it makes at a time
// waits, and goes along with the others in the next one: many callers at once cost few calls, and a single one does not wait.
type gatherer[E, A any] struct {
	// atOnce is how many calls it makes at a time.
	atOnce int
	// limit is how long an entry waits at most; 0 is without limit. Behind a server that does not answer, it is not sent.
	limit time.Duration
	// size is how many bytes an entry has.
	size func(E) int
	// call makes one call, and returns an answer for each entry.
	call func([]E) ([]A, error)

	mu      sync.Mutex
	waiting []*gathered[E, A]
	calls   int
}

// gathered is an entry of one caller.
type gathered[E, A any] struct {
	entry  E
	answer A
	err    error
	since  time.Time
	done   chan struct{}
}

// do makes a call with the entry and returns its answer. When the context ends the caller waits no longer; what was sent may have taken effect.
func (g *gatherer[E, A]) do(ctx context.Context, entry E) (A, error) {
	var none A
	if ctx.Err() != nil {
		return none, aborted(ctx)
	}
	one := &gathered[E, A]{entry: entry}
	g.mu.Lock()
	if g.calls < g.atOnce {
		g.calls++
		g.mu.Unlock()
		return attend(ctx, func() (A, error) {
			g.send([]*gathered[E, A]{one})
			g.proceed()
			return one.answer, one.err
		})
	}
	one.since, one.done = time.Now(), make(chan struct{})
	g.waiting = append(g.waiting, one)
	g.mu.Unlock()
	select {
	case <-one.done:
		return one.answer, one.err
	case <-ctx.Done():
		return none, g.leave(ctx, one)
	}
}

// leave takes an entry back that was not sent yet.
func (g *gatherer[E, A]) leave(ctx context.Context, one *gathered[E, A]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for at, each := range g.waiting {
		if each == one {
			g.waiting = append(g.waiting[:at:at], g.waiting[at+1:]...)
			return aborted(ctx)
		}
	}
	return abortedUnderWay(ctx)
}

// proceed makes the next call in the place of one that has ended.
func (g *gatherer[E, A]) proceed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.next()
	if len(group) == 0 {
		g.calls--
		g.waiting = nil // what was sent is not held on to
		return
	}
	go func() {
		g.send(group)
		runtime.Gosched() // callers that go on at once with the next entry go along
		g.proceed()
	}()
}

// next takes what one call takes.
func (g *gatherer[E, A]) next() []*gathered[E, A] {
	for len(g.waiting) > 0 && g.limit > 0 && time.Since(g.waiting[0].since) > g.limit {
		g.waiting[0].err = unavailable(nil, "the server did not answer earlier calls in time, and this one was not sent")
		close(g.waiting[0].done)
		g.waiting = g.waiting[1:]
	}
	count, total := 0, 0
	for count < min(len(g.waiting), maxEntries) {
		total += g.size(g.waiting[count].entry)
		if count > 0 && total > maxGatheredBytes {
			break
		}
		count++
	}
	group := g.waiting[:count:count]
	g.waiting = g.waiting[count:]
	return group
}

// send makes a call for a group. If it is refused, each half goes alone, until the error reaches the entry that caused it. If the server is away,
// all get the error.
func (g *gatherer[E, A]) send(group []*gathered[E, A]) {
	entries := make([]E, len(group))
	for i, one := range group {
		entries[i] = one.entry
	}
	answers, err := g.call(entries)
	if err != nil && len(group) > 1 && !isServerAway(err) {
		half := len(group) / 2
		g.send(group[:half])
		g.send(group[half:])
		return
	}
	for i, one := range group {
		if one.err = err; err == nil {
			one.answer = answers[i]
		}
		if one.done != nil {
			close(one.done)
		}
	}
}
