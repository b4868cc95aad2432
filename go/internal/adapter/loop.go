package main

import (
	"context"
	"errors"
	"sync"
	"time"

	leaseq "leaseq.dev/go"
)

// loop is a running worker, and how to let its handlers return.
type loop struct {
	worker *leaseq.Worker
	mu     sync.Mutex
	// handed is how many items have reached handlers since they were last asked for; it is told by `changed`.
	handed  int
	changed chan struct{}
	// end is closed when the handlers that run now are to end as `how` says.
	end       chan struct{}
	how       string
	finished  chan struct{}
	completed int
	err       error
}

func (l *loop) handle(_ context.Context, _ *leaseq.LeasedItem) error {
	l.mu.Lock()
	l.handed++
	end := l.end
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	<-end
	l.mu.Lock()
	how := l.how
	l.mu.Unlock()
	switch how {
	case "raise", "unfinished":
		return errors.New("handler failed")
	case "panic":
		panic(struct{}{})
	case "cancel":
		return context.Canceled
	}
	return nil
}

func (l *loop) endHandlers(how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.how = how
	close(l.end)
	l.end = make(chan struct{})
}

func (l *loop) handedOut(ctx context.Context, count int) error {
	for {
		l.mu.Lock()
		changed := l.changed
		if l.handed >= count {
			l.handed -= count
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return leaseq.ErrAborted
		}
	}
}

func work(c *methodCall) (any, error) {
	queues := []*leaseq.Queue{c.queue()}
	for _, each := range c.args.handles("also") {
		queues = append(queues, c.session.queue(each))
	}
	var retry time.Duration
	options := []leaseq.WorkerOption{leaseq.Concurrency(c.args.number("concurrency"))}
	if c.args.has("lease_ms") {
		options = append(options, leaseq.LeaseFor(c.args.duration("lease_ms")))
	}
	if c.args.has("retry_ms") {
		retry = c.args.duration("retry_ms")
	}
	if c.args.has("grace_ms") {
		options = append(options, leaseq.Grace(c.args.duration("grace_ms")))
	}
	options = append(options, leaseq.Backoff(func(int) time.Duration { return retry }))
	l := &loop{changed: make(chan struct{}), end: make(chan struct{}), finished: make(chan struct{})}
	worker, err := c.session.client.Worker(queues, l.handle, options...)
	if err != nil {
		return nil, err
	}
	l.worker = worker
	c.session.mu.Lock()
	c.session.loops[c.handle] = l
	c.session.mu.Unlock()
	go func() {
		l.completed, l.err = worker.Run(context.Background())
		close(l.finished)
	}()
	return object{}, nil
}

func (c *methodCall) loop() *loop {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	found := c.session.loops[c.handle]
	if found == nil {
		panic(harnessError("there is no loop on " + c.handle))
	}
	return found
}

func finish(c *methodCall) (any, error) {
	l := c.loop()
	l.worker.Stop()
	l.endHandlers("")
	select {
	case <-l.finished:
	case <-c.ctx.Done():
		return nil, leaseq.ErrAborted
	}
	if l.err != nil {
		return nil, l.err
	}
	return object{"completed": l.completed}, nil
}

func steer(c *methodCall) (any, error) {
	client := c.session.client
	steer := map[string]func(context.Context, string) (bool, error){
		"quiet": client.QuietWorker, "resume": client.ResumeWorker, "stop": client.StopWorker,
	}[c.args.text("wish")]
	alive, err := steer(c.ctx, c.args.text("worker"))
	return object{"alive": alive}, err
}

func liveWorkers(c *methodCall) (any, error) {
	found, err := c.session.client.LiveWorkers(c.ctx)
	if err != nil {
		return nil, err
	}
	return each(found, func(w leaseq.WorkerInfo) any {
		items := each(w.Items, func(i leaseq.HeldItem) any {
			return object{"queue": i.Queue, "id": b64([]byte(i.ID)), "attempt": i.Attempt, "ms": i.Ms}
		})
		return object{
			"worker": w.ID, "host": w.Host, "pid": w.Process, "client": w.Client, "started": micros(w.Started), "stopping": w.Stopping, "quiet": w.Quiet,
			"concurrency": w.Concurrency, "completed": w.Completed, "queues": w.Queues, "held": w.Held, "items": items,
		}
	}), nil
}
