package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	leaseq "leaseq.dev/go"
)

// methodCall is a call of a method of the adapter protocol.
type methodCall struct {
	ctx     context.Context
	session *session
	handle  string
	url     string
	args    arguments
}

func (c *methodCall) queue() *leaseq.Queue { return c.session.queue(c.handle) }

// entries is how many a call has that was not split; 1 for a call without.
func (c *methodCall) entries() int {
	for _, name := range []string{"items", "ids"} {
		if given, ok := c.args[name].([]any); ok {
			return len(given)
		}
	}
	return 1
}

func (c *methodCall) held() []*leaseq.LeasedItem {
	var found []*leaseq.LeasedItem
	for _, each := range c.args.list("items") {
		found = append(found, c.session.held(c.handle, each))
	}
	return found
}

func (c *methodCall) only() *leaseq.LeasedItem { return c.session.held(c.handle, c.args) }

// timeout is that of `wait_ms`; false if it is absent.
func (c *methodCall) timeout() (time.Duration, bool) {
	if !c.args.has("wait_ms") {
		return 0, false
	}
	if c.args["wait_ms"] == nil {
		return leaseq.Forever, true
	}
	return c.args.duration("wait_ms"), true
}

func (c *methodCall) leaseOptions() []leaseq.LeaseOption {
	var options []leaseq.LeaseOption
	if timeout, given := c.timeout(); given {
		options = append(options, leaseq.Wait(timeout))
	}
	if c.args.has("count") {
		options = append(options, leaseq.Count(c.args.number("count")))
	}
	return options
}

func (c *methodCall) completions() []leaseq.Completion {
	var found []leaseq.Completion
	for i, item := range c.held() {
		found = append(found, item.Completion(c.completeOptions(c.args.list("items")[i])...))
	}
	return found
}

func (c *methodCall) completeOptions(entry arguments) []leaseq.CompleteOption {
	var options []leaseq.CompleteOption
	if c.args.flag("only_current") {
		options = append(options, leaseq.OnlyCurrent())
	}
	if entry.has("result") {
		options = append(options, leaseq.Result(entry.bytes("result")))
	}
	if entry.has("keep_ms") {
		options = append(options, leaseq.Keep(entry.duration("keep_ms")))
	}
	for _, each := range entry.list("then") {
		options = append(options, leaseq.Then(c.session.queue(each.text("queue")), newItem(each.object("item"), each.object("options"))))
	}
	return options
}

func (c *methodCall) releaseOptions() []leaseq.ReleaseOption {
	var options []leaseq.ReleaseOption
	if c.args.has("delay_ms") {
		options = append(options, leaseq.Delay(c.args.duration("delay_ms")))
	}
	if c.args.flag("uncounted") {
		options = append(options, leaseq.Uncounted())
	}
	if c.args.has("error") {
		options = append(options, leaseq.LastError(c.args.text("error")))
	}
	return options
}

// headersOf keeps the order of a JSON object, which a map does not have.
func headersOf(given any) []leaseq.Header {
	text, _ := given.(json.RawMessage)
	decoder := json.NewDecoder(bytes.NewReader(text))
	var found []leaseq.Header
	for {
		token, err := decoder.Token()
		if err != nil {
			return found
		}
		if name, ok := token.(string); ok {
			var value any
			if decoder.Decode(&value) != nil {
				return found
			}
			found = append(found, leaseq.Header{Name: name, Value: bytesOf(value)})
		}
	}
}

func done(err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return object{}, nil
}

type method = func(*methodCall) (any, error)

var methods map[string]method

func init() {
	methods = map[string]method{
		"add": add, "lease": lease, "lease_any": leaseAny, "complete": complete, "hand_off": handOff,
		"complete_and_lease": completeAndLease, "extend": extend, "release": release, "dead_letter": deadLetter,
		"outcome": outcome, "wait_outcome": waitOutcome,
		"promote": func(c *methodCall) (any, error) {
			found, err := c.queue().Promote(c.ctx, c.args.ids()...)
			return each(found, itself), err
		},
		"revive": func(c *methodCall) (any, error) {
			found, err := c.queue().Revive(c.ctx, c.args.ids()...)
			return each(found, itself), err
		},
		"purge": func(c *methodCall) (any, error) {
			var older time.Duration
			if c.args.has("older_than_ms") {
				older = c.args.duration("older_than_ms")
			}
			found, err := c.queue().Purge(c.ctx, older, c.args.ids()...)
			return each(found, itself), err
		},
		"remove": func(c *methodCall) (any, error) {
			found, err := c.queue().Remove(c.ctx, c.args.ids()...)
			return each(found, itself), err
		},
		"stats": stats, "inspect": inspect, "list": list, "configure": configure, "delete": deleteQueue,
		"pause":       func(c *methodCall) (any, error) { return done(c.queue().Pause(c.ctx)) },
		"resume":      func(c *methodCall) (any, error) { return done(c.queue().Resume(c.ctx)) },
		"light_clean": lightClean, "deep_clean": deepClean,
		"hold": func(c *methodCall) (any, error) {
			c.only().Heartbeat()
			return object{}, nil
		},
		"held": func(c *methodCall) (any, error) { return object{"held": c.only().Held()}, nil },
		"lost": func(c *methodCall) (any, error) {
			select {
			case <-c.only().Lost():
				return object{}, nil
			case <-c.ctx.Done():
				return nil, leaseq.ErrAborted
			}
		},
		"queues": func(c *methodCall) (any, error) {
			found, err := c.session.client.Queues(c.ctx)
			return object{"queues": each(found, itself)}, err
		},
		"pipeline": pipeline, "work": work, "finish": finish, "live_workers": liveWorkers, "steer": steer,
		"enqueue": enqueue, "job": job, "job_result": jobResult, "cancel_job": cancelJob,
		"handed_out": func(c *methodCall) (any, error) {
			return done(c.loop().handedOut(c.ctx, c.args.number("count")))
		},
		"end_handlers": func(c *methodCall) (any, error) {
			c.loop().endHandlers(c.args.text("how"))
			return object{}, nil
		},
		"leave_off": func(c *methodCall) (any, error) {
			c.loop().worker.Stop()
			return object{}, nil
		},
	}
}

func add(c *methodCall) (any, error) {
	var items []leaseq.NewItem
	for _, each := range c.args.list("items") {
		items = append(items, newItem(each, c.args.object("options")))
	}
	var options []leaseq.WaitOption
	if timeout, given := c.timeout(); given {
		options = append(options, leaseq.Wait(timeout))
	}
	answers, err := c.queue().AddAll(c.ctx, items, options...)
	var full *leaseq.FullError
	var partial *leaseq.PartialError[leaseq.Added]
	if errors.As(err, &full) {
		answers = full.Answers
	} else if errors.As(err, &partial) {
		answers = partial.Answers
	}
	return each(answers, addedForm), err
}

func lease(c *methodCall) (any, error) {
	items, err := c.queue().LeaseAll(c.ctx, c.args.duration("duration_ms"), c.leaseOptions()...)
	if err != nil {
		return nil, err
	}
	return c.session.leased(items), nil
}

func leaseAny(c *methodCall) (any, error) {
	var queues []*leaseq.Queue
	for _, each := range c.args.handles("queues") {
		queues = append(queues, c.session.queue(each))
	}
	items, err := c.session.client.LeaseAny(c.ctx, queues, c.args.duration("duration_ms"), c.leaseOptions()...)
	if err != nil {
		return nil, err
	}
	return c.session.leased(items), nil
}

func complete(c *methodCall) (any, error) {
	if held := c.held(); len(held) == 1 {
		completed, err := held[0].Complete(c.ctx, c.completeOptions(c.args.list("items")[0])...)
		if err != nil {
			return nil, err
		}
		return []bool{completed}, nil
	}
	found, err := c.queue().CompleteAll(c.ctx, c.completions())
	return each(found, itself), err
}

func handOff(c *methodCall) (any, error) {
	found, err := c.queue().HandOffAll(c.ctx, c.completions())
	return each(found, func(one leaseq.Completed) any {
		added := each(one.FollowUps, func(a leaseq.Added) any {
			if a.NoRoom() {
				return nil
			}
			return addedForm(a)
		})
		return object{"completed": one.Completed, "added": added}
	}), err
}

func completeAndLease(c *methodCall) (any, error) {
	entry := c.only().Completion(c.completeOptions(nil)...)
	completed, items, err := c.queue().CompleteAndLease(c.ctx, []leaseq.Completion{entry}, c.args.duration("duration_ms"))
	if err != nil {
		return each(completed, itself), err
	}
	return object{"completed": completed[0], "leases": c.session.leased(items)["leases"]}, nil
}

func extend(c *methodCall) (any, error) {
	duration := c.args.duration("duration_ms")
	form := func(deadline time.Time) any {
		if deadline.IsZero() {
			return nil
		}
		return micros(deadline)
	}
	held := c.held()
	if len(held) == 1 {
		deadline, err := held[0].Extend(c.ctx, duration)
		if err != nil {
			return nil, err
		}
		return []any{form(deadline)}, nil
	}
	var entries []leaseq.Extension
	for _, each := range held {
		entries = append(entries, leaseq.Extension{ID: each.ID, Token: each.Token, Duration: duration})
	}
	found, err := c.queue().ExtendAll(c.ctx, entries)
	return each(found, form), err
}

func (c *methodCall) releaseAll(options []leaseq.ReleaseOption) ([]leaseq.Released, error) {
	held := c.held()
	if len(held) == 1 {
		state, err := held[0].Release(c.ctx, options...)
		if err != nil {
			return nil, err
		}
		return []leaseq.Released{state}, nil
	}
	var entries []leaseq.Release
	for _, each := range held {
		entries = append(entries, each.Releasing(options...))
	}
	return c.queue().ReleaseAll(c.ctx, entries)
}

func release(c *methodCall) (any, error) {
	found, err := c.releaseAll(c.releaseOptions())
	return each(found, itself), err
}

func deadLetter(c *methodCall) (any, error) {
	found, err := c.releaseAll(append(c.releaseOptions(), leaseq.Dead()))
	return each(found, func(state leaseq.Released) any { return state == leaseq.ReleasedDead }), err
}
