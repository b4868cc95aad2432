package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	leaseq "leaseq.dev/go"
)

// Chain is jobs one after the other, each given what the one before it returned. One call of the server completes a job and enqueues the next, so no
// crash comes between. A dead job stops the chain; if it is revived, the chain goes on.
type Chain struct {
	app   *App
	first *Call
	later []*Call
}

// Chain starts a chain with a call.
func (a *App) Chain(first *Call) *Chain { return &Chain{app: a, first: first} }

// Then adds a job: its call has the arguments behind the first one, which is what the job before it returned. The call has no id and no time.
func (c *Chain) Then(next *Call) *Chain {
	return &Chain{c.app, c.first, append(append([]*Call{}, c.later...), next)}
}

// ThenFunction adds a call of a function that takes only what the job before it returned.
func ThenFunction[In, Out any](c *Chain, next *Function[In, Out], given ...Option) *Chain {
	return c.Then(&Call{function: next.name, options: next.own.with(given)})
}

// Enqueue enqueues the first job, which carries the others with it, and returns a handle of each.
func (c *Chain) Enqueue(ctx context.Context) ([]*Handle[any], error) {
	identified, err := c.identified(ctx)
	if err != nil {
		return nil, err
	}
	first := *identified
	first.derived = cmp.Or(first.chosenID(), leaseq.RandomID())
	handles := []*Handle[any]{nil}
	for i, each := range c.later {
		if each.err != nil {
			return nil, each.err
		}
		if each.options.id != "" || !each.options.at.IsZero() {
			return nil, errors.New("jobs: a job in a chain has no id and no time: the chain sets them")
		}
		if each.options.once() {
			return nil, errors.New("jobs: a later job of a chain is neither unique nor throttled, as its first argument is not known yet: give it" +
				" Repeatable; the first job of the chain can be")
		}
		stage := each.stage()
		stage["id"] = leaseq.DerivedID(first.derived, fmt.Sprint(i+1))
		first.stages = append(first.stages, stage)
		handles = append(handles, &Handle[any]{ID: stage["id"].(string), Queue: each.options.queue, app: c.app})
	}
	enqueued, err := c.app.Enqueue(ctx, &first)
	if err != nil {
		return nil, err
	}
	handles[0] = enqueued[0]
	for _, each := range handles[1:] {
		each.Added = enqueued[0].Added
	}
	return handles, nil
}

// identified is the first call with its id, if that is made of its arguments: those of the others follow from it.
func (c *Chain) identified(ctx context.Context) (*Call, error) {
	var now time.Time
	if c.first.needsTime() && c.first.options.throttle != 0 {
		queue, err := c.app.Queue(c.first.options.queue)
		if err != nil {
			return nil, err
		}
		if now, err = c.app.serverTime(ctx, queue); err != nil {
			return nil, err
		}
	}
	return c.first.identified(now)
}
