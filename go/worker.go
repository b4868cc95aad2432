package leaseq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"sync"
	"time"
)

// Handler works on one item. When it returns nil, the item is completed; an error, a panic or runtime.Goexit is a failed attempt: the item is
// released with the error's text and a growing delay. Its context ends when the lease is lost, its time limit is over or the worker gives the item
// back: see context.Cause. [LeasedItem.CompleteWith] sets a result or follow-ups.
type Handler func(ctx context.Context, item *LeasedItem) error

// WorkerOption is an option of a worker.
type WorkerOption func(*workerSettings)

type workerSettings struct {
	id          string
	duration    time.Duration
	concurrency int
	ahead       int
	fair        bool
	urgent      int
	timeLimit   time.Duration
	grace       time.Duration
	policy      retryPolicy
	judge       func(*LeasedItem, error) *VerdictError
	hooks       Hooks
	announce    bool
	prepare     func(context.Context) error
}

// Concurrency is how many items a worker works on at a time, of all queues together. Default: 1.
func Concurrency(n int) WorkerOption { return func(s *workerSettings) { s.concurrency = n } }

// LeaseAhead is how many items a worker leases beside those that it works on, so that the next one starts at once. Default: 0.
func LeaseAhead(n int) WorkerOption { return func(s *workerSettings) { s.ahead = n } }

// LeaseFor is the duration of each lease, which is extended while the handler runs. Default: 30 s.
func LeaseFor(d time.Duration) WorkerOption { return func(s *workerSettings) { s.duration = d } }

// Fair lets each lease start with another queue, so that a queue that is never empty does not block the others.
func Fair() WorkerOption { return func(s *workerSettings) { s.fair = true } }

// TimeLimit is how long a handler may run. Then its context ends and the attempt has failed. Default: without limit.
func TimeLimit(d time.Duration) WorkerOption { return func(s *workerSettings) { s.timeLimit = d } }

// Grace is how long handlers may run on after a stop. Then their contexts end and their items are given back. Default: 25 s.
func Grace(d time.Duration) WorkerOption { return func(s *workerSettings) { s.grace = d } }

// Attempts: an item whose handler failed at this attempt becomes a dead letter; 0 is no limit. Default: 25.
func Attempts(n int) WorkerOption { return func(s *workerSettings) { s.policy.attempts = n } }

// Backoff is the delay before the next attempt, by the number of the attempt that failed. Default: [ExponentialBackoff] from 1 s to 5 min.
func Backoff(delay func(attempt int) time.Duration) WorkerOption {
	return func(s *workerSettings) { s.policy.backoff = delay }
}

// WithHooks lets a worker call functions as the work goes on.
func WithHooks(hooks Hooks) WorkerOption { return func(s *workerSettings) { s.hooks = hooks } }

// Unannounced keeps a worker from reporting itself and the items that it holds to the server: see [Client.LiveWorkers].
func Unannounced() WorkerOption { return func(s *workerSettings) { s.announce = false } }

// UrgentFirst is how many of the first queues of a worker stay the first ones if it is [Fair]. Default: 0.
func UrgentFirst(n int) WorkerOption { return func(s *workerSettings) { s.urgent = n } }

// Prepare is called before the first lease, and again while the server is away.
func Prepare(prepare func(context.Context) error) WorkerOption {
	return func(s *workerSettings) { s.prepare = prepare }
}

// WorkerID is the name of the worker among the live ones: 1 to 200 of the characters A-Z, a-z, 0-9, _ . : and -. Default: a new one of host and process.
func WorkerID(id string) WorkerOption { return func(s *workerSettings) { s.id = id } }

var workerIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,200}$`)

func settingsOf(options []WorkerOption) (*workerSettings, error) {
	s := &workerSettings{
		id: newWorkerID(), duration: 30 * time.Second, concurrency: 1, grace: 25 * time.Second, announce: true,
		policy: retryPolicy{attempts: 25, backoff: ExponentialBackoff(time.Second, 5*time.Minute)},
	}
	for _, each := range options {
		each(s)
	}
	switch {
	case s.duration.Round(time.Millisecond) < time.Millisecond || s.duration > maxLeaseMs*time.Millisecond:
		return nil, refused("the duration of a lease is 1 ms to 30 days, not %v", s.duration)
	case s.concurrency < 1:
		return nil, refused("concurrency is 1 or more, not %d", s.concurrency)
	case s.ahead < 0 || s.policy.attempts < 0 || s.timeLimit < 0 || s.grace < 0 || s.urgent < 0:
		return nil, refused("LeaseAhead, Attempts, TimeLimit, Grace and UrgentFirst are 0 or more")
	case !workerIDPattern.MatchString(s.id):
		return nil, refused("not the id of a worker: %.220q", s.id)
	}
	return s, nil
}

var notOfAnID = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// newWorkerID is a new id of a worker: `<host>:<pid>:<random>`.
func newWorkerID() string {
	host, _ := os.Hostname()
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	return fmt.Sprintf("%.100s:%d:%s", notOfAnID.ReplaceAllString(host, "_"), os.Getpid(), hex.EncodeToString(random))
}

// Worker leases items and calls the handler for each, until it is stopped. [Client.Worker] makes one; it runs once.
type Worker struct {
	client   *Client
	queues   []*Queue
	handler  Handler
	settings *workerSettings
	reporter *reporter
	health   *serverHealth

	// stopping ends at the stop, over at the end of the grace.
	stopping, over         context.Context
	stopStopping, stopOver context.CancelFunc
	// leasing ends at the stop, and whenever the worker is to be quiet; resumed is closed when it leases again.
	leasing     context.Context
	stopLeasing context.CancelFunc
	resumed     chan struct{}

	mu        sync.Mutex
	begun     bool
	runs      map[*itemRun]bool
	freed     chan struct{}
	completed int
	turn      int
	grace     *time.Timer
	presence  *presence
}

// Worker returns a worker on queues of this client, by strict precedence as in LeaseAny. It reports itself and the items that it holds to the
// server.
func (c *Client) Worker(queues []*Queue, handler Handler, options ...WorkerOption) (*Worker, error) {
	settings, err := settingsOf(options)
	if err != nil {
		return nil, err
	}
	if len(queues) == 0 || handler == nil {
		return nil, refused("a worker has a queue and a handler")
	}
	w := &Worker{
		client: c, queues: queues, handler: handler, settings: settings,
		reporter: &reporter{settings.hooks, c.pool.log}, runs: map[*itemRun]bool{}, freed: make(chan struct{}, 1),
	}
	w.health = &serverHealth{reporter: w.reporter}
	w.stopping, w.stopStopping = context.WithCancel(context.Background())
	w.leasing, w.stopLeasing = context.WithCancel(w.stopping)
	w.over, w.stopOver = context.WithCancel(context.Background())
	return w, nil
}

// ID returns the name of the worker among the live ones.
func (w *Worker) ID() string { return w.settings.id }

// Stop lets the worker lease no more and start no handler. Run returns when the running handlers have ended, or after the grace.
func (w *Worker) Stop() { w.stop(w.settings.grace) }

// StopNow stops and lets handlers run for that long, 0 for not at all; a later call can set another time.
func (w *Worker) StopNow(grace time.Duration) { w.stop(grace) }

func (w *Worker) stop(grace time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.stopping.Err() == nil
	w.stopStopping()
	if w.grace != nil {
		w.grace.Stop()
	}
	if grace == 0 {
		w.stopOver()
	} else {
		w.grace = time.AfterFunc(grace, w.stopOver)
	}
	if first && w.presence != nil {
		w.presence.reportNow()
	}
}

// steer does what a program wishes that steers this worker from elsewhere (LQ-WORKER-6).
func (w *Worker) steer(wish string) {
	if wish == "stop" {
		if w.stopping.Err() == nil {
			w.Stop()
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch quiet := w.resumed != nil; {
	case wish == "quiet" && !quiet:
		w.stopLeasing()
		w.resumed = make(chan struct{})
	case wish != "quiet" && quiet:
		w.leasing, w.stopLeasing = context.WithCancel(w.stopping)
		close(w.resumed)
		w.resumed = nil
	default:
		return
	}
	w.presence.reportNow()
}

// Run works until the context ends or Stop is called, and returns how many items it completed. While the server is away or refuses, or a record
// of a queue is damaged, it tries again, with growing pauses. It returns an error if the server refuses its first calls because of its user,
// password or settings, or another error of leasing. When the client is closed, the items of running handlers are given back before its
// connections are closed.
func (w *Worker) Run(ctx context.Context) (int, error) {
	w.mu.Lock()
	if w.begun {
		w.mu.Unlock()
		return 0, refused("a worker runs once")
	}
	w.begun = true
	w.mu.Unlock()
	defer w.client.pool.tasks.begin()()
	defer context.AfterFunc(ctx, w.Stop)()
	defer context.AfterFunc(w.client.pool.closing, func() { w.stop(0) })()
	w.announce()
	err := w.work(context.WithoutCancel(ctx))
	w.stopOver()
	w.giveBackRest()
	w.mu.Lock()
	if w.grace != nil {
		w.grace.Stop()
	}
	presence, completed := w.presence, w.completed
	w.mu.Unlock()
	if presence != nil {
		presence.end() // a report that is under way asks for the status
	}
	return completed, err
}

func (w *Worker) announce() {
	if !w.settings.announce || w.stopping.Err() != nil || w.client.pool.closing.Err() != nil {
		return
	}
	var entries []string
	for _, each := range w.queues {
		entries = append(entries, each.keys.registryEntry)
	}
	pool := w.client.pool
	// the keys of reports are in several slots, which a connection of the pool of rueidis must not mix
	p := newPresence(w.settings.id, pool.router(!pool.isGiven()), w.settings.concurrency, entries, w.status, w.steer)
	w.mu.Lock()
	w.presence = p
	w.mu.Unlock()
	p.begin()
}
