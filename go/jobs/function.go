package jobs

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	leaseq "leaseq.dev/go"
)

// None is the input of a function without arguments, or the output of one without a result.
type None = struct{}

// Function is a function of an App with its types.
type Function[In, Out any] struct {
	app  *App
	name string
	own  options
}

// Define gives a function a name: workers of this App run its jobs. Its context ends when the job is to end: see leaseq.Handler. What it returns is
// kept as the result. It panics if the App has a function of this name.
//
// A function takes one value: a single argument, or, as a map or struct, the arguments by name. With [Spread] the fields of a struct are its
// arguments by position too.
func Define[In, Out any](app *App, name string, run func(context.Context, In) (Out, error), given ...Option) *Function[In, Out] {
	own := defaults(app.queue).with(given)
	input := inputOf[In](own.spread, name)
	app.define(&definition{name, own, func(ctx context.Context, f Format, args []any, kwargs map[string]any) (any, error) {
		var in In
		value, there, err := input(args, kwargs)
		if err == nil && there {
			err = f.into(value, &in)
		}
		if err != nil {
			return nil, badEnvelope("%s does not take these arguments: %v", name, err)
		}
		out, err := run(ctx, in)
		if _, none := any(out).(None); none {
			return nil, err
		}
		return out, err
	}})
	return &Function[In, Out]{app, name, own}
}

// Declare names a function that another program runs, in whatever language, with the types of its input and output.
func Declare[In, Out any](app *App, name string, given ...Option) *Function[In, Out] {
	return &Function[In, Out]{app, name, defaults(app.queue).with(given)}
}

// inputOf returns a function that makes one value of arguments.
func inputOf[In any](spread bool, name string) func([]any, map[string]any) (any, bool, error) {
	of := reflect.TypeFor[In]()
	if spread && of.Kind() != reflect.Struct {
		panic(fmt.Sprintf("jobs: Spread of %s takes a struct, not %v", name, of))
	}
	if spread {
		parameters := parametersOf(of)
		return func(args []any, kwargs map[string]any) (any, bool, error) {
			return spreadInput(parameters, args, kwargs)
		}
	}
	return func(args []any, kwargs map[string]any) (any, bool, error) {
		switch {
		case len(args) == 0 && len(kwargs) > 0:
			return kwargs, true, nil
		case len(args) == 1 && len(kwargs) == 0:
			return args[0], true, nil
		case len(args) == 0 && of.Kind() == reflect.Struct && of.NumField() == 0:
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("it takes one, or arguments by name")
	}
}

func spreadInput(parameters []parameter, args []any, kwargs map[string]any) (any, bool, error) {
	if len(args) > len(parameters) {
		return nil, false, fmt.Errorf("it takes %d", len(parameters))
	}
	input := map[string]any{}
	for i, value := range args {
		input[parameters[i].name] = value
	}
	for name, value := range kwargs {
		_, twice := input[name]
		if twice || !slices.ContainsFunc(parameters, func(p parameter) bool { return p.name == name }) {
			return nil, false, fmt.Errorf("it does not take %q, or not twice", name)
		}
		input[name] = value
	}
	for _, each := range parameters {
		if _, there := input[each.name]; !there && !each.optional {
			return nil, false, fmt.Errorf("it needs %q", each.name)
		}
	}
	return input, true, nil
}

// Call is a call of a function, ready to be enqueued.
type Call struct {
	function string
	args     []any
	kwargs   map[string]any
	options  options
	derived  string // the id that was made of the arguments, or of the first job of a chain
	stages   []any
	err      error
}

// NewCall makes a call of a function by its name, with arguments by position and by name, as functions in other languages take them.
func (a *App) NewCall(function string, args []any, kwargs map[string]any, given ...Option) *Call {
	own := defaults(a.queue)
	if known := a.function(function); known != nil {
		own = known.options
	}
	options := own.with(given)
	return &Call{function: function, args: args, kwargs: kwargs, options: options, err: options.check()}
}

// Call makes a call.
func (f *Function[In, Out]) Call(in In, given ...Option) *Call {
	c := &Call{function: f.name, options: f.own.with(given)}
	if c.err = c.options.check(); c.err != nil {
		return c
	}
	if f.own.spread {
		c.err = f.app.format.into(in, &c.kwargs)
	} else if _, none := any(in).(None); !none {
		c.args = []any{in}
	}
	return c
}

// Enqueue enqueues a call.
func (f *Function[In, Out]) Enqueue(ctx context.Context, in In, given ...Option) (*Handle[Out], error) {
	handles, err := f.app.Enqueue(ctx, f.Call(in, given...))
	if err != nil {
		return nil, err
	}
	return As[Out](handles[0]), nil
}

// written is a job as it is written: what is missing is left out.
type written struct {
	Version     int            `json:"v"`
	Function    string         `json:"function"`
	Args        []any          `json:"args,omitempty"`
	Kwargs      map[string]any `json:"kwargs,omitempty"`
	Enqueued    int64          `json:"enqueued,omitempty"`
	Due         int64          `json:"due,omitempty"`
	Attempt     int            `json:"attempt,omitempty"`
	TimeLimit   *int64         `json:"timeout,omitempty"`
	Backoff     []int64        `json:"backoff,omitempty"`
	Delays      []int64        `json:"delays,omitempty"`
	Description string         `json:"description,omitempty"`
	Stages      []any          `json:"then,omitempty"`
}

// written is the job of the call; zero times are left out.
func (c *Call) written(enqueued, due time.Time) written {
	job := written{
		Version: version, Function: c.function, Args: c.args, Kwargs: c.kwargs, Description: c.options.description, Stages: c.stages,
	}
	if c.options.limited {
		limit := int64(0)
		if c.options.timeLimit != Forever {
			limit = millis(c.options.timeLimit)
		}
		job.TimeLimit = &limit
	}
	if c.options.repeated && len(c.options.delays) > 0 {
		job.Delays = allMillis(c.options.delays)
	} else if c.options.repeated && len(c.options.backoff) == 2 {
		job.Backoff = allMillis(c.options.backoff)
	}
	if c.options.attempt != 1 {
		job.Attempt = c.options.attempt
	}
	if !enqueued.IsZero() {
		job.Enqueued = enqueued.UnixMilli()
	}
	if due.After(enqueued) {
		job.Due = due.UnixMilli()
	}
	return job
}

// item is the item that carries it.
func (c *Call) item(f Format, now time.Time) (leaseq.NewItem, error) {
	if c.err != nil {
		return leaseq.NewItem{}, c.err
	}
	id := cmp.Or(c.chosenID(), leaseq.RandomID())
	enqueued := time.Now()
	due := c.options.at
	if due.IsZero() {
		due = enqueued.Add(c.options.delay)
	}
	data, err := f.write(c.written(enqueued, due))
	return leaseq.NewItem{ID: id, Data: data, Options: c.options.addOptions(now)}, err
}

// Enqueue enqueues calls, in one call of the server for each queue and 256 of them, and returns a handle of each.
func (a *App) Enqueue(ctx context.Context, calls ...*Call) ([]*Handle[any], error) {
	handles := make([]*Handle[any], len(calls))
	for _, name := range queuesOf(calls) {
		queue, err := a.Queue(name)
		if err != nil {
			return nil, err
		}
		if err := a.enqueueOn(ctx, queue, calls, handles); err != nil {
			return nil, err
		}
	}
	return handles, nil
}

func queuesOf(calls []*Call) []string {
	var names []string
	for _, each := range calls {
		if !slices.Contains(names, each.options.queue) {
			names = append(names, each.options.queue)
		}
	}
	return names
}

func (a *App) enqueueOn(ctx context.Context, queue *leaseq.Queue, calls []*Call, handles []*Handle[any]) error {
	var drafts []draft
	var now time.Time
	for i, each := range calls {
		if each.options.queue != queue.Name() {
			continue
		}
		if each.needsTime() && now.IsZero() {
			var err error
			if now, err = a.serverTime(ctx, queue); err != nil {
				return err
			}
		}
		call, err := each.identified(now)
		if err != nil {
			return err
		}
		item, err := call.item(a.format, now)
		if err != nil {
			return err
		}
		drafts = append(drafts, draft{i, call, item})
	}
	added, err := a.add(ctx, queue, drafts)
	if err != nil {
		return err
	}
	for at, each := range drafts {
		handles[each.place] = &Handle[any]{ID: each.item.ID, Queue: queue.Name(), Added: added[at].OK(), app: a}
		if added[at].OK() && each.call.chosenID() != "" {
			a.forget(ctx, each.call)
		}
	}
	return nil
}

// needsTime reports whether the server's time is needed to enqueue the call.
func (c *Call) needsTime() bool {
	isSlot := c.options.throttle != 0 && c.derived == ""
	return c.err == nil && (isSlot || !c.options.at.IsZero() && c.options.expires != Forever)
}

// forget deletes the notes of earlier jobs of the ids of a call and its stages (LQ-JOB-26, LQ-JOB-29). If that fails, they stay.
func (a *App) forget(ctx context.Context, call *Call) {
	ids := map[string][]string{call.options.queue: {call.chosenID()}}
	for _, each := range call.stages {
		stage, _ := each.(map[string]any)
		queue, _ := stage["queue"].(string)
		id, _ := stage["id"].(string)
		ids[queue] = append(ids[queue], id)
	}
	for name, of := range ids {
		queue, err := a.Queue(name)
		if err != nil {
			continue
		}
		words := []string{"DEL"}
		for _, id := range of {
			words = append(words, queue.Key("job:"+id), queue.Key("cancelled:"+id))
		}
		_, _ = a.client.Command(ctx, words[1], words...)
	}
}

// stage is the job for later: its time starts when it is enqueued.
func (c *Call) stage() map[string]any {
	stage := map[string]any{"queue": c.options.queue, "job": c.written(time.Time{}, time.Time{}), "add": c.options.stageOptions()}
	if len(c.options.headers) > 0 {
		headers := map[string]any{}
		for _, each := range c.options.headers {
			headers[each.Name] = string(each.Value)
		}
		stage["headers"] = headers
	}
	return stage
}
