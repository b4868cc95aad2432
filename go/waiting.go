package leaseq

import (
	"context"
	"strconv"
	"time"
)

const (
	minBlock = minBlockMs * time.Millisecond
	// blockGrace is how long after its timeout a block may have no reply (LQ-BLOCK-9).
	blockGrace = blockGraceMs * time.Millisecond
	// blockMargin: the next check is sent this long after the block should end, so that it does not queue behind a block still under way.
	blockMargin = 4 * time.Millisecond
	// abortGrace is how long an abort waits for a reply that is due, so that what was leased is given back by then.
	abortGrace = 250 * time.Millisecond
)

// endsOfBlocks are errors that end a block and say nothing about the next one (LQ-BLOCK-5).
var endsOfBlocks = setOf("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "UNBLOCKED", ErrConnection.Code)

// target is something to wait for: how to look for it, and how to block until the next look.
type target[T any] struct {
	check func(on *router) checked[T]
	// block is the blocking command without its timeout; its first key is the second word.
	block []string
	// settle passes on a wake-up that this waiter took and did not use.
	settle func() []*call
	// alwaysSettle: also after something was found.
	alwaysSettle bool
	// detached: the caller does not wait for a reply when its context ends; giveBack undoes what that look did.
	detached bool
	giveBack func(T)
}

// checked is what a look found, or when the next one is due: 0 at once, Forever never.
type checked[T any] struct {
	found T
	ok    bool
	due   time.Duration
	sent  time.Time
	err   error
}

// waiting is a wait for a target.
type waiting[T any] struct {
	*target[T]
	pool *pool
	conn *router
	// accept reports whether what was found is wanted: not if another wait was first.
	accept func() bool
}

// waitFor waits until the target is found, the time is up (then ok is false), or the context or the client ends.
func waitFor[T any](ctx context.Context, p *pool, t *target[T], timeout time.Duration, first *checked[T]) (T, bool, error) {
	var none T
	if ctx.Err() != nil {
		return none, false, aborted(ctx)
	}
	if !t.detached {
		defer p.tasks.begin()()
		merged, done := p.until(ctx)
		defer done()
		return (&waiting[T]{target: t, pool: p}).run(merged, timeout, first)
	}
	return detach(ctx, p, func(merged context.Context) (T, bool, error) {
		return (&waiting[T]{target: t, pool: p}).run(merged, timeout, first)
	})
}

// detach runs a wait in the background. When the context ends, the caller waits for it for a moment only; a wait that leased gives that back
// once the reply comes.
func detach[T any](ctx context.Context, p *pool, wait func(context.Context) (T, bool, error)) (T, bool, error) {
	type result struct {
		found T
		ok    bool
		err   error
	}
	merged, done := p.until(ctx)
	ended := make(chan result, 1)
	p.tasks.run(func() {
		defer done()
		found, ok, err := wait(merged)
		ended <- result{found, ok, err}
	})
	select {
	case r := <-ended:
		return r.found, r.ok, r.err
	case <-merged.Done():
	}
	timer := time.NewTimer(abortGrace)
	defer timer.Stop()
	select {
	case r := <-ended:
		return r.found, r.ok, r.err
	case <-timer.C:
		var none T
		return none, false, aborted(merged)
	}
}

func (w *waiting[T]) run(ctx context.Context, timeout time.Duration, first *checked[T]) (found T, ok bool, err error) {
	timeoutAt := after(time.Now(), timeout)
	defer func() {
		if w.conn == nil {
			return
		}
		var settle []*call
		if w.settle != nil && (!ok || w.alwaysSettle) {
			settle = w.settle()
		}
		w.pool.release(w.conn, settle, err != nil)
	}()
	var look checked[T]
	if first != nil {
		look = *first
	} else {
		look = w.check(w.pool.shared)
	}
	for {
		if look.err != nil {
			return found, false, look.err
		}
		if look.ok {
			return w.unlessAborted(ctx, look.found)
		}
		if ctx.Err() != nil {
			return found, false, aborted(ctx)
		}
		if look.due > 0 {
			if !time.Now().Before(timeoutAt) {
				return found, false, nil
			}
			if err := w.connect(); err != nil {
				return found, false, err
			}
			until := after(look.sent, min(look.due, waitCap))
			if timeoutAt.Before(until) {
				until = timeoutAt
			}
			if pause := time.Until(until); pause >= minBlock {
				look = w.blockThenCheck(ctx, pause)
				continue
			}
			sleep(ctx, time.Until(until))
		}
		look = w.check(w.on())
	}
}

// connect opens the connection to block on: the server gets the time of the block, so that is computed afterwards.
func (w *waiting[T]) connect() error {
	if w.conn == nil {
		w.conn = w.pool.acquire()
	}
	return w.conn.open(w.block[1])
}

func (w *waiting[T]) on() *router {
	if w.conn != nil {
		return w.conn
	}
	return w.pool.shared
}

// unlessAborted returns what was found. If the context ended meanwhile, it is given back where that is possible (LQ-BLOCK-15).
func (w *waiting[T]) unlessAborted(ctx context.Context, found T) (T, bool, error) {
	if w.giveBack == nil || ctx.Err() == nil && (w.accept == nil || w.accept()) {
		return found, true, nil
	}
	var none T
	w.giveBack(found)
	if ctx.Err() == nil {
		return none, false, nil
	}
	return none, false, aborted(ctx)
}

// blockThenCheck blocks for a time or until a wake-up, then looks on the same connection.
func (w *waiting[T]) blockThenCheck(ctx context.Context, pause time.Duration) checked[T] {
	begun := time.Now()
	written := w.conn.writtenTo(w.block[1])
	block := make(chan error, 1)
	go func() {
		seconds := strconv.FormatFloat(float64(pause.Round(time.Millisecond).Milliseconds())/1000, 'f', 3, 64)
		words := append(append([]string{}, w.block...), seconds)
		_, err := w.conn.sendOnce(w.block[1], pause+blockGrace, words...)
		block <- err
	}()
	timer := time.NewTimer(pause + blockMargin)
	defer timer.Stop()
	var blockErr error
	ended := false
	select {
	case blockErr = <-block:
		ended = true
	case <-timer.C:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		if !ended {
			written() // what is settled has to come behind the block
		}
		return checked[T]{err: aborted(ctx)}
	}
	if ended && time.Since(begun) < pause {
		switch code := Code(blockErr); {
		case code == "OOM":
			// A server without memory refuses BLMOVE, though it needs none (06.7). Then the time passes without a block.
			sleep(ctx, time.Until(begun.Add(pause)))
		case blockErr != nil && !endsOfBlocks[code]:
			return checked[T]{err: blockErr}
		}
		if ctx.Err() != nil {
			return checked[T]{err: aborted(ctx)}
		}
		return w.check(w.conn)
	}
	// The time is up, and the server may not have noticed: a command behind the block makes it check the clock (LQ-BLOCK-8).
	look := w.check(w.conn)
	if look.err != nil {
		return look
	}
	if !ended {
		blockErr = <-block
	}
	if code := Code(blockErr); blockErr != nil && code != "OOM" && !endsOfBlocks[code] && !look.ok {
		return checked[T]{err: blockErr}
	}
	return look
}

// writtenTo returns a function that waits until something more was written to the node of a key, for a moment at most.
func (r *router) writtenTo(key string) func() {
	c := r.link(r.slots.nodeOf(groupOfKey(key))).ready()
	if c == nil {
		return func() {}
	}
	if c.given { // rueidis writes at once, and does not tell
		return func() { time.Sleep(time.Millisecond) }
	}
	before := c.socket.written.Load()
	return func() {
		for until := time.Now().Add(20 * time.Millisecond); c.socket.written.Load() == before && time.Now().Before(until); {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// after is a time and a duration later; Forever is not reached.
func after(from time.Time, d time.Duration) time.Time {
	return from.Add(min(d, 100*365*24*time.Hour))
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
