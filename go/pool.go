package leaseq

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	waitCap = waitCapMs * time.Millisecond
	// maxIdle is how many connections to block on are kept for later waiters.
	maxIdle = 16
	// refreshRegistration: a queue is registered again after this time, in case the server lost its registry.
	refreshRegistration = 5 * time.Minute
	// maxChangeWaits is how many calls of AwaitChange wait at a time, on two connections each.
	maxChangeWaits = 16
	// closeLimit is how long a close waits for replies. A server that is silent gives none.
	closeLimit = 2 * time.Second
)

// pool has the connections of a client: one shared by all calls, one for heartbeats, and one for each waiter. It also counts the tasks in the
// background, which a close waits for.
type pool struct {
	slots *slotTable
	limit time.Duration
	log   *slog.Logger
	// shared is for all calls that do not block.
	shared *router
	// heartbeats is for extensions in the background. Their time is short, and a late reply closes the connection.
	heartbeats *router
	beats      *heartbeats
	// closing ends with the client.
	closing context.Context
	end     context.CancelCauseFunc
	tasks   tasks
	// changeWaits has an element for each call of AwaitChange that waits.
	changeWaits chan struct{}

	mu sync.Mutex
	// idle are connections to block on that no waiter uses.
	idle []*router
	// settling are connections that waiters released, with the calls whose replies are pending on them.
	settling map[*router][]*call
	// waiting are connections of calls that wait for durability.
	waiting    map[*router]bool
	registered map[string]time.Time
}

func newPool(nodes []*node, limit time.Duration, log *slog.Logger) *pool {
	p := &pool{
		slots: &slotTable{moved: map[string]*node{}, given: nodes}, limit: limit, log: log,
		settling: map[*router][]*call{}, waiting: map[*router]bool{}, registered: map[string]time.Time{},
		changeWaits: make(chan struct{}, maxChangeWaits),
	}
	p.closing, p.end = context.WithCancelCause(context.Background())
	// connections of a client that is given are shared with all of the application, and a late reply cannot close them
	p.shared, p.heartbeats = p.router(false), p.router(p.isGiven())
	p.beats = &heartbeats{byLease: map[string]*heartbeat{}}
	return p
}

// isGiven reports whether the application gave its client.
func (p *pool) isGiven() bool { return p.slots.given[0].given != nil }

// dedicated is a separate connection. The caller closes it.
func (p *pool) dedicated() *router { return p.router(true) }

func (p *pool) router(own bool) *router {
	return &router{slots: p.slots, limit: p.limit, own: own, broken: p.closeIdle, links: map[string]*link{}}
}

// acquire is a connection to block on. Give it back with release.
func (p *pool) acquire() *router {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		found := p.idle[last]
		p.idle = p.idle[:last]
		return found
	}
	return p.dedicated()
}

// release takes a connection back and settles on it, behind a block that may still be under way, so that the block cannot take a wake-up
// afterwards (06.3).
func (p *pool) release(r *router, settle []*call, failed bool) {
	// Without a call to settle nothing shows when the block is over, and the next waiter's block would wait for that.
	if failed && len(settle) == 0 {
		r.close()
		return
	}
	p.mu.Lock()
	if p.closing.Err() != nil {
		p.mu.Unlock()
		r.close()
		p.settleElsewhere(settle)
		return
	}
	p.settling[r] = settle
	p.mu.Unlock()
	p.tasks.run(func() {
		settleAll(r, settle, 2*waitCap)
		p.keep(r)
	})
}

// keep keeps a settled connection for the next waiter.
func (p *pool) keep(r *router) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.settling[r]; !there {
		return
	}
	delete(p.settling, r)
	if len(p.idle) < maxIdle && p.closing.Err() == nil {
		p.idle = append(p.idle, r)
	} else {
		r.close()
	}
}

func (p *pool) settleElsewhere(settle []*call) {
	if len(settle) > 0 {
		p.tasks.run(func() { settleAll(p.shared, settle, p.limit) })
	}
}

// settleAll settles queues of one group, in their order.
func settleAll(on *router, settle []*call, limit time.Duration) {
	if len(settle) > 0 {
		_ = on.runAll(settle, limit)
	}
}

// closeIdle closes what is idle of the connections to a node: one of them broke, or its reply was late (LQ-CLIENT-21).
func (p *pool) closeIdle(to *node) {
	p.mu.Lock()
	idle := append([]*router{p.shared, p.heartbeats}, p.idle...)
	p.mu.Unlock()
	for _, each := range idle {
		each.closeIdle(to)
	}
}

// call makes a call on the shared connection. When the context ends the caller waits no longer, and the call may have taken effect.
func (p *pool) call(ctx context.Context, c *call) (rueidis.RedisMessage, error) {
	return during(ctx, func() (rueidis.RedisMessage, error) { return p.shared.run(c, p.limit) })
}

// during runs a call unless the context has ended, and waits for it until the context ends.
func during[T any](ctx context.Context, call func() (T, error)) (T, error) {
	if ctx.Err() != nil {
		var none T
		return none, aborted(ctx)
	}
	return attend(ctx, call)
}

// attend runs a call, and waits for it until the context ends.
func attend[T any](ctx context.Context, call func() (T, error)) (T, error) {
	if ctx.Done() == nil {
		return call()
	}
	var none T
	type result struct {
		value T
		err   error
	}
	ended := make(chan result, 1)
	go func() {
		value, err := call()
		ended <- result{value, err}
	}()
	select {
	case r := <-ended:
		return r.value, r.err
	case <-ctx.Done():
		return none, abortedUnderWay(ctx)
	}
}

// register enters a queue in the registry, in the background. No call waits for it or fails by it (LQ-REGISTRY-3).
func (p *pool) register(keys queueKeys) {
	entry := keys.registryEntry
	p.mu.Lock()
	last, known := p.registered[entry]
	due := !known || time.Since(last) >= refreshRegistration
	if due {
		p.registered[entry] = time.Now()
	}
	p.mu.Unlock()
	if due {
		p.tasks.run(func() { _, _ = p.shared.send(registryKey, p.limit, "SADD", registryKey, entry) })
	}
}

// unregister takes a queue out of the registry (LQ-DELETE-3). The next call that adds or leases enters it again. An error does not concern the caller.
func (p *pool) unregister(keys queueKeys) {
	entry := keys.registryEntry
	_, _ = p.shared.send(registryKey, p.limit, "SREM", registryKey, entry)
	p.mu.Lock()
	delete(p.registered, entry)
	p.mu.Unlock()
}

// close ends every wait and heartbeat, waits for the tasks in the background, and closes all connections.
func (p *pool) close() {
	p.mu.Lock()
	p.end(closedError())
	settling := p.settling
	p.settling = map[*router][]*call{}
	p.mu.Unlock()
	p.beats.close()
	// The blocks of released connections may take 4 s to end. Instead of waiting, settle on the shared connection.
	for r, settle := range settling {
		r.close()
		p.settleElsewhere(settle)
	}
	p.tasks.wait(closeLimit)
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	for waiting := range p.waiting {
		idle = append(idle, waiting)
	}
	p.mu.Unlock()
	for _, each := range append(idle, p.shared, p.heartbeats) {
		each.close()
	}
}

// until is a context that ends with the given one, and with the client.
func (p *pool) until(ctx context.Context) (context.Context, func()) {
	merged, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.closing, func() { cancel(context.Cause(p.closing)) })
	return merged, func() {
		stop()
		cancel(nil)
	}
}

// tasks counts what runs in the background.
type tasks struct {
	mu      sync.Mutex
	running int
	ended   chan struct{}
}

func (t *tasks) run(task func()) {
	end := t.begin()
	go func() {
		defer end()
		task()
	}()
}

// begin counts a task that the caller runs, until the returned function is called.
func (t *tasks) begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == 0 {
		t.ended = make(chan struct{})
	}
	t.running++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.running--
		if t.running == 0 {
			close(t.ended)
		}
	}
}

// wait waits until nothing runs, or the limit is over.
func (t *tasks) wait(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		t.mu.Lock()
		running, ended := t.running, t.ended
		t.mu.Unlock()
		if running == 0 {
			return
		}
		select {
		case <-ended:
		case <-timer.C:
			return
		}
	}
}
