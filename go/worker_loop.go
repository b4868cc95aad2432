package leaseq

import (
	"context"
	"slices"
	"time"
)

const (
	// probeLimit is how long to wait for an item while the outage may last, and at first: later refusals are not of its first calls
	// (LQ-WORK-14). A server that refuses writes refuses the block, not the lease of an empty queue: the time must leave some for the block when connections are new and the server is far.
	probeLimit = time.Second
	// lastCallsLimit is how long the calls that give items back may take at the end: a server that is silent replies to none.
	lastCallsLimit = 2 * time.Second
)

// work leases until the worker is stopped, and waits for the handlers.
func (w *Worker) work(ctx context.Context) error {
	places := &slots{free: w.settings.concurrency}
	failures, leased, prepared := 0, false, false
	var failure error
	for w.stopping.Err() == nil && failure == nil {
		leasing, resumed := w.leasingState()
		if resumed != nil {
			select {
			case <-resumed:
			case <-w.stopping.Done():
			}
			continue
		}
		free := w.settings.concurrency + w.settings.ahead - w.running()
		if free <= 0 {
			w.waitFreed(w.stopping)
			continue
		}
		err := w.prepare(&prepared)
		if err == nil {
			timeout := Forever
			if !leased || w.health.isAway() {
				timeout = probeLimit
			}
			err = w.leaseOnce(ctx, leasing, min(free, maxEntries), timeout, places)
		}
		switch {
		case err == nil:
			failures, leased = 0, true
			w.health.worked()
		case w.client.pool.closing.Err() != nil:
			w.stop(0) // what does that too may be later than the error
		case leasing.Err() != nil:
		case !leased && isMisconfigured(err), !isServerAway(err) && !isDamaged(err):
			failure = err
		default:
			w.health.failed(err)
			failures++
			pauseAfter(w.stopping, failures)
		}
	}
	w.Stop()
	for w.running() > 0 && w.over.Err() == nil {
		w.waitFreed(w.over)
	}
	return failure
}

// leasingState is what ends when the worker is to lease nothing, and while it is quiet what is closed when it resumes.
func (w *Worker) leasingState() (context.Context, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leasing, w.resumed
}

func (w *Worker) prepare(done *bool) error {
	if *done || w.settings.prepare == nil {
		return nil
	}
	err := w.settings.prepare(w.stopping)
	*done = err == nil
	return err
}

// giveBack releases items of one lease uncounted. If that fails they come back at their deadline.
func giveBack(items []*LeasedItem) {
	entries := make([]Release, len(items))
	for i, each := range items {
		entries[i] = each.Releasing(Uncounted())
	}
	_, _ = items[0].queue.ReleaseAll(context.Background(), entries)
}

// leaseOnce leases up to count items and starts their handlers, unless leasing has ended meanwhile.
func (w *Worker) leaseOnce(ctx, leasing context.Context, count int, timeout time.Duration, places *slots) error {
	items, err := w.client.LeaseAny(leasing, w.nextQueues(), w.settings.duration, Count(count), Wait(timeout))
	if err != nil || len(items) == 0 {
		return err
	}
	if !items[0].Held() { // this process stood still, and others may have the items by now (LQ-WORK-15)
		giveBack(items)
		return nil
	}
	w.reporter.leased(items)
	for _, each := range items {
		run := newItemRun(ctx, leasing, w, each)
		w.mu.Lock()
		w.runs[run] = true
		w.mu.Unlock()
		place := places.ask()
		go func() {
			completed := run.run(place)
			places.leave(place)
			w.mu.Lock()
			delete(w.runs, run)
			if completed {
				w.completed++
			}
			w.mu.Unlock()
			select {
			case w.freed <- struct{}{}:
			default:
			}
		}()
	}
	return nil
}

// nextQueues are the queues in the order to lease from.
func (w *Worker) nextQueues() []*Queue {
	count := min(w.settings.urgent, len(w.queues))
	urgent, queues := w.queues[:count], w.queues[count:]
	if !w.settings.fair || len(queues) <= 1 {
		return w.queues
	}
	first := w.turn % len(queues)
	w.turn++
	return slices.Concat(urgent, queues[first:], queues[:first])
}

func (w *Worker) running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}

func (w *Worker) waitFreed(until context.Context) {
	select {
	case <-w.freed:
	case <-until.Done():
	}
}

// giveBackRest gives back the items of handlers that run, and waits for those that are being completed or released.
func (w *Worker) giveBackRest() {
	w.mu.Lock()
	var ends []<-chan struct{}
	for run := range w.runs {
		ends = append(ends, run.over)
		go run.giveBack()
	}
	w.mu.Unlock()
	timer := time.NewTimer(lastCallsLimit)
	defer timer.Stop()
	for _, each := range ends {
		select {
		case <-each:
		case <-timer.C:
			return
		}
	}
}

// status is what changes in the reports of a worker.
func (w *Worker) status() workerStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := workerStatus{Stopping: w.stopping.Err() != nil, Quiet: w.resumed != nil, Completed: w.completed, Held: len(w.runs), Items: []HeldItem{}}
	for run := range w.runs {
		if len(s.Items) < maxReported {
			s.Items = append(s.Items, run.report())
		}
	}
	return s
}
