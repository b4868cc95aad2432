package leaseq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// unwindLimit is how long a handler whose time limit is over may take to end, before its item goes back and its slot takes the next.
const unwindLimit = time.Second

// itemRun is one leased item of a worker, from its lease to its end. Its states, from left to right:
//
//	leased --started--> running --returned-----------> ending --completed, lost--------------> over
//	  |                    |---failed, late----------> ending --released, dead, lost---------> over
//	  |                    '---grace over------------> ending, uncounted --------------------> over
//	  |---attempts used up--> ending, dead
//	  '---stopped, quiet----> ending, uncounted
type itemRun struct {
	item   *LeasedItem
	worker *Worker
	since  time.Time
	// leasing ends when the worker is to start no handler.
	leasing context.Context
	// ctx is that of the handler.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// over is closed when the item has ended.
	over chan struct{}

	mu       sync.Mutex
	isEnding bool
	isOver   bool
	isLost   bool
	// mayHaveEnded: a call that was to end the item has no reply.
	mayHaveEnded bool
	stopBeat     func()
}

// StoppedError is the cause of the context of a handler whose item the worker gives back.
type StoppedError struct{}

// Error returns the text.
func (*StoppedError) Error() string { return "leaseq: the worker stopped" }

// TimeLimitError is the cause of the context of a handler that ran longer than its time limit.
type TimeLimitError struct{ Limit time.Duration }

// Error returns the text.
func (e *TimeLimitError) Error() string {
	return fmt.Sprintf("the handler ran longer than %v", e.Limit)
}

type stoppingKey struct{}

// Stopping returns a channel that is closed as soon as the worker of a handler's context is stopped: a long handler can save what it has, and
// return [GiveBack]. For another context it is nil.
func Stopping(ctx context.Context) <-chan struct{} {
	found, _ := ctx.Value(stoppingKey{}).(<-chan struct{})
	return found
}

func newItemRun(ctx, leasing context.Context, w *Worker, item *LeasedItem) *itemRun {
	r := &itemRun{item: item, worker: w, leasing: leasing, since: time.Now(), over: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(context.WithValue(ctx, stoppingKey{}, w.stopping.Done()))
	r.stopBeat = item.Heartbeat()
	return r
}

// run waits for its place, runs the handler and ends the item as the handler ended. It returns whether it was completed.
func (r *itemRun) run(place <-chan struct{}) bool {
	defer r.cancel(context.Canceled)
	select {
	case <-place:
	case <-r.leasing.Done():
	case <-r.item.Lost():
		r.reportLoss()
		r.begin()
		r.finish()
		return false
	}
	if r.leasing.Err() != nil {
		r.giveBack()
		return false
	}
	if verdict := r.worker.settings.policy.exhausted(r.item.Attempt); verdict != nil && r.begin() {
		r.worker.reporter.of(r.item).Error("leaseq worker: an item is dead", "error", verdict.reason)
		r.release(verdict)
		r.finish()
		return false
	}
	stop := r.watchLoss()
	err := r.runHandler()
	stop()
	if !r.begin() {
		return false // it was given back
	}
	defer r.finish()
	if err != nil {
		r.fail(err)
		return false
	}
	return r.complete()
}

// watchLoss reports the loss of the lease and ends the handler's context then, until the returned function is called.
func (r *itemRun) watchLoss() (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-r.item.Lost():
			r.reportLoss()
			r.cancel(r.item.lostFor)
		case <-done:
		}
	}()
	return func() { close(done) }
}

// begin takes the item for the calls that end it, and stops its extensions (LQ-WORK-5).
func (r *itemRun) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isEnding {
		return false
	}
	r.isEnding = true
	r.stopBeat()
	return true
}

func (r *itemRun) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isOver {
		r.isOver = true
		close(r.over)
	}
}

// giveBack gives the item back as if it had not been leased, unless it is being completed or released.
func (r *itemRun) giveBack() {
	if !r.begin() {
		return
	}
	r.cancel(&StoppedError{})
	r.worker.reporter.of(r.item).Info("leaseq worker: an item is given back, since the worker stopped")
	r.release(&verdict{uncounted: true})
	r.finish()
}

// runHandler runs the handler within its time limit: an attempt past it has failed, whatever the handler returns then.
func (r *itemRun) runHandler() error {
	r.worker.reporter.started(r.item)
	begun := time.Now()
	ended := make(chan error, 1)
	go func() {
		err := fmt.Errorf("the handler ended its goroutine: runtime.Goexit")
		defer func() {
			if problem := recover(); problem != nil {
				err = &PanicError{Value: problem, Stack: string(debug.Stack())}
			}
			ended <- err
		}()
		err = r.worker.handler(r.ctx, r.item)
	}()
	err := r.await(ended)
	r.worker.reporter.ended(r.item, time.Since(begun), err)
	return err
}

func (r *itemRun) await(ended <-chan error) error {
	limit := r.worker.settings.timeLimit
	if limit == 0 {
		select {
		case err := <-ended:
			return err
		case <-r.over: // given back
			return &StoppedError{}
		}
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-r.over:
		return &StoppedError{}
	case <-timer.C:
	}
	late := &TimeLimitError{limit}
	r.cancel(late)
	r.worker.reporter.of(r.item).Warn("leaseq worker: a handler ran longer than its time limit", "limit", limit)
	timer.Reset(unwindLimit)
	select {
	case <-ended:
	case <-timer.C:
	}
	return late
}

// PanicError is what the panic of a handler becomes.
type PanicError struct {
	Value any
	Stack string
}

// Error returns the text.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

func (r *itemRun) complete() bool {
	var completed bool
	err := r.whileHeld(func() (err error) {
		completed, err = r.item.queue.completeOne(r.item.Completion(r.item.completion...))
		return err
	})
	switch {
	case err != nil && isServerAway(err):
		r.heldUntilOver(err)
	case err != nil:
		r.fail(err) // the item cannot be completed, for example because its result is too large
	case completed:
		r.worker.reporter.completed(r.item)
	default:
		r.reportLoss()
	}
	return completed
}

func (r *itemRun) heldUntilOver(err error) {
	r.worker.reporter.of(r.item).Error("leaseq worker: an item is held until its lease is over", "error", err)
}

// fail releases an item whose handler failed, by the verdict of the handler, or of the policy.
func (r *itemRun) fail(err error) {
	v := r.judge(err)
	state, released := r.send(v)
	r.logFailure(err, v, state)
	if released {
		r.reportRelease(state, v)
	}
}

func (r *itemRun) judge(err error) *verdict {
	if judge := r.worker.settings.judge; judge != nil {
		said := judge(r.item, err)
		return &verdict{said.Delay, said.Dead, said.Uncounted, said.Text}
	}
	return r.worker.settings.policy.judge(r.item.Attempt, err)
}

func (r *itemRun) release(v *verdict) {
	if state, released := r.send(v); released {
		r.reportRelease(state, v)
	}
}

// send releases the item and returns what became of it.
func (r *itemRun) send(v *verdict) (Released, bool) {
	var state Released
	err := r.whileHeld(func() (err error) {
		state, err = r.item.Release(context.Background(), v.options()...)
		return err
	})
	if err != nil {
		r.heldUntilOver(err)
	}
	return state, err == nil
}

func (r *itemRun) reportRelease(state Released, v *verdict) {
	switch state {
	case ReleasedLost:
		r.reportLoss()
	case ReleasedDead:
		r.worker.reporter.deadLettered(r.item, v.reason)
	default:
		r.worker.reporter.released(r.item, v.delay, v.reason)
	}
}

// logFailure tells how an attempt ended, and what became of the item: state is empty if the server did not say.
func (r *itemRun) logFailure(err error, v *verdict, state Released) {
	log := r.worker.reporter.of(r.item).With("error", err)
	var panicked *PanicError
	if errors.As(err, &panicked) {
		log = log.With("stack", panicked.Stack)
	}
	var asked *GiveBackError
	switch {
	case state == ReleasedLost:
		log.Warn("leaseq worker: a handler failed, and its item is left to another")
	case state == ReleasedDead:
		log.Error("leaseq worker: an item failed and is dead")
	case errors.As(err, &asked):
		log.Info("leaseq worker: an item is given back by its handler", "delay", v.delay)
	default:
		log.Warn("leaseq worker: an item failed and goes back", "delay", v.delay)
	}
}

// whileHeld makes the call that ends an item: in an outage again and again, but only while the lease is held (LQ-WORK-6).
func (r *itemRun) whileHeld(call func() error) error {
	for failures := 1; ; failures++ {
		err := call()
		if err == nil || !isServerAway(err) || r.worker.over.Err() != nil {
			return err
		}
		r.mu.Lock()
		r.mayHaveEnded = r.mayHaveEnded || !IsDefinite(err)
		r.mu.Unlock()
		r.worker.health.failed(err)
		pauseAfter(r.worker.over, failures)
		if _, heldUntil, _ := r.item.lease(); !time.Now().Before(heldUntil) {
			return err
		}
	}
}

// reportLoss reports once that the lease is lost: found by the heartbeat, or by the call that was to end the item.
func (r *itemRun) reportLoss() {
	r.mu.Lock()
	known := r.isLost || r.mayHaveEnded
	r.isLost = true
	r.mu.Unlock()
	if !known {
		r.worker.reporter.of(r.item).Warn("leaseq worker: an item is no longer this worker's")
		r.worker.reporter.lost(r.item)
	}
}

func (r *itemRun) report() HeldItem {
	return HeldItem{r.item.queue.keys.registryEntry, r.item.ID, r.item.Attempt, time.Since(r.since).Milliseconds()}
}
