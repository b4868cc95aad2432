package main

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/jobs"
)

// The methods of job clients.

func (c *methodCall) app() *jobs.App {
	queue := c.queue()
	format := jobs.JSON
	if c.args.has("form") {
		format = jobs.Format(c.args.text("form"))
	}
	return jobs.New(c.session.client, jobs.InGroup(queue.Group()), jobs.InQueue(queue.Name()), jobs.Written(format))
}

func callOf(c *methodCall, app *jobs.App, given arguments, more ...jobs.Option) *jobs.Call {
	args, _ := argument(given["args"]).([]any)
	kwargs, _ := argument(given["kwargs"]).(map[string]any)
	options := append(callOptions(given.object("options")), more...)
	if given.has("queue") {
		options = append(options, jobs.OnQueue(c.session.queue(given.text("queue")).Name()))
	}
	return app.NewCall(given.text("function"), args, kwargs, options...)
}

func callOptions(given arguments) []jobs.Option {
	var found []jobs.Option
	for name, option := range map[string]func(string) jobs.Option{
		"delay_ms":      func(n string) jobs.Option { return jobs.Delay(given.duration(n)) },
		"priority":      func(n string) jobs.Option { return jobs.Priority(given.number(n)) },
		"max_attempts":  func(n string) jobs.Option { return jobs.Retries(given.number(n) - 1) },
		"expires_in_ms": func(n string) jobs.Option { return jobs.Expires(given.duration(n)) },
		"keep_ms":       func(n string) jobs.Option { return jobs.Keep(given.duration(n)) },
		"timeout_ms":    func(n string) jobs.Option { return jobs.TimeLimit(given.duration(n)) },
	} {
		if given.has(name) {
			found = append(found, option(name))
		}
	}
	headers := map[string]string{}
	if raw, ok := given["headers"].(json.RawMessage); ok && json.Unmarshal(raw, &headers) == nil {
		for name, value := range headers {
			found = append(found, jobs.WithHeader(name, value))
		}
	}
	return found
}

// argument is an argument of a job: JSON, but for numbers that it does not have.
func argument(given any) any {
	switch value := given.(type) {
	case []any:
		found := make([]any, len(value))
		for i, each := range value {
			found[i] = argument(each)
		}
		return found
	case map[string]any:
		if name, ok := value["$number"].(string); ok {
			number, err := strconv.ParseFloat(name, 64)
			if err != nil {
				number = math.NaN()
			}
			return number
		}
		found := map[string]any{}
		for name, each := range value {
			found[name] = argument(each)
		}
		return found
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		number, _ := value.Float64()
		return number
	}
	return given
}

func enqueue(c *methodCall) (any, error) {
	app := c.app()
	var options []jobs.Option
	if c.args.has("id") {
		options = append(options, jobs.ID(c.args.text("id")))
	}
	chain := app.Chain(callOf(c, app, c.args, options...))
	for _, each := range c.args.list("then") {
		chain = chain.Then(callOf(c, app, each))
	}
	handles, err := chain.Enqueue(c.ctx)
	if err != nil {
		return nil, jobError(err)
	}
	return object{"id": handles[0].ID, "added": handles[0].Added}, nil
}

// jobError gives the errors of jobs the form of others: nothing was sent.
func jobError(err error) error {
	var serialization *jobs.SerializationError
	if errors.As(err, &serialization) {
		return errors.Join(leaseq.ErrBadArgument, err)
	}
	return err
}

func job(c *methodCall) (any, error) {
	info, err := c.app().Job(c.args.text("id")).Info(c.ctx)
	if err != nil {
		return nil, err
	}
	var progress any
	if info.Progress != nil {
		parts := []any{info.Progress.Done}
		if info.Progress.HasTotal {
			parts = append(parts, info.Progress.Total)
		}
		progress = parts
	}
	return object{"status": info.Status, "result": info.Result, "error": info.Error, "progress": progress, "worker": info.Worker}, nil
}

func jobResult(c *methodCall) (any, error) {
	var options []leaseq.WaitOption
	if timeout, given := c.timeout(); given {
		options = append(options, leaseq.Wait(timeout))
	}
	result, err := c.app().Job(c.args.text("id")).Result(c.ctx, options...)
	var failed *jobs.FailedError
	switch {
	case err == nil:
		return object{"ended": "result", "result": result}, nil
	case errors.As(err, &failed):
		return object{"ended": "failure", "kind": failed.Kind, "message": failed.Message}, nil
	case errors.Is(err, jobs.ErrCancelled):
		return object{"ended": "cancelled"}, nil
	case errors.Is(err, jobs.ErrNotKept):
		return object{"ended": "not_kept"}, nil
	case errors.Is(err, jobs.ErrNotEnded):
		return object{"ended": "waiting"}, nil
	}
	return nil, err
}

func cancelJob(c *methodCall) (any, error) {
	cancelled, err := c.app().Job(c.args.text("id")).Cancel(c.ctx)
	if err != nil {
		return nil, err
	}
	return object{"cancelled": cancelled}, nil
}
