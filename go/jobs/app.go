package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	leaseq "leaseq.dev/go"
)

// App has functions by name, enqueues their calls as jobs, and makes the workers that run them.
type App struct {
	client *leaseq.Client
	group  string
	queue  string
	format Format

	mu        sync.Mutex
	functions map[string]*definition
	schedules []*schedule
	queues    map[string]*leaseq.Queue
}

// AppOption is an option of an App.
type AppOption func(*App)

// InGroup is the group of all queues of an App. Default: "jobs".
func InGroup(name string) AppOption { return func(a *App) { a.group = name } }

// InQueue is the queue of functions and calls that name none. Default: "default".
func InQueue(name string) AppOption { return func(a *App) { a.queue = name } }

// Written is the format in which jobs are written. Default: JSON.
func Written(format Format) AppOption { return func(a *App) { a.format = format } }

// New returns an App on a client. A name of a queue or group that is not valid is an error of the first call.
func New(client *leaseq.Client, options ...AppOption) *App {
	a := &App{
		client: client, group: "jobs", queue: "default", format: JSON,
		functions: map[string]*definition{}, queues: map[string]*leaseq.Queue{},
	}
	for _, each := range options {
		each(a)
	}
	return a
}

// definition is a function of an App.
type definition struct {
	name    string
	options options
	run     func(ctx context.Context, f Format, args []any, kwargs map[string]any) (any, error)
}

// Queue returns the queue of an App with a name.
func (a *App) Queue(name string) (*leaseq.Queue, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.queues[name]; found != nil {
		return found, nil
	}
	queue, err := a.client.Queue(name, leaseq.Group(a.group))
	if err == nil {
		a.queues[name] = queue
	}
	return queue, err
}

func (a *App) define(d *definition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.name == "" || len([]rune(d.name)) > maxFunctionChars {
		panic(fmt.Sprintf("jobs: the name of a function has 1 to %d characters", maxFunctionChars))
	}
	if a.functions[d.name] != nil {
		panic(fmt.Sprintf("jobs: function %q is defined twice", d.name))
	}
	a.functions[d.name] = d
}

func (a *App) function(name string) *definition {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.functions[name]
}

func (a *App) functionNames() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.functions))
}

// ownQueues are those of the App and of its functions.
func (a *App) ownQueues() []string {
	found := []string{a.queue}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.functions)) {
		if queue := a.functions[name].options.queue; !slices.Contains(found, queue) {
			found = append(found, queue)
		}
	}
	return found
}

// Worker returns a worker on queues of the App, by default its own and those of its functions. Each job has its own time limit, attempts and
// backoff. It also takes the turns of the schedules whose jobs go to these queues.
func (a *App) Worker(queues []string, options ...leaseq.WorkerOption) (*leaseq.Worker, error) {
	if len(queues) == 0 {
		queues = a.ownQueues()
	}
	scheduler, err := newScheduler(a, queues)
	if err != nil {
		return nil, err
	}
	var all []*leaseq.Queue
	// schedules first: their turns are short, and a queue of jobs may never be empty
	for _, name := range append(scheduler.queueNames(), queues...) {
		queue, err := a.Queue(name)
		if err != nil {
			return nil, err
		}
		all = append(all, queue)
	}
	runner := &runner{app: a, named: map[string]bool{}}
	handler := func(ctx context.Context, item *leaseq.LeasedItem) error {
		if scheduler.has(item) {
			return scheduler.turn(ctx, item)
		}
		return runner.run(ctx, item)
	}
	judge := func(item *leaseq.LeasedItem, err error) *leaseq.VerdictError { return runner.judge(item, err) }
	own := []leaseq.WorkerOption{leaseq.Concurrency(8), leaseq.Attempts(0), leaseq.Prepare(scheduler.start)}
	last := []leaseq.WorkerOption{leaseq.UrgentFirst(len(scheduler.queueNames())), leaseq.Judge(judge), leaseq.TimeLimit(0)}
	worker, err := a.client.Worker(all, handler, slices.Concat(own, options, last)...)
	if err == nil {
		runner.worker = worker.ID()
	}
	return worker, err
}

// serverTime is the server's time.
func (a *App) serverTime(ctx context.Context, queue *leaseq.Queue) (time.Time, error) {
	stats, err := queue.Stats(ctx)
	return time.UnixMicro(stats["now"]), err
}
