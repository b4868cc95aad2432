// leaseq in Go, from this checkout.
//
// Settings:
// - the variant `items` is `client.Worker`, `jobs` is a worker of `jobs.App`, whose results are not kept (`Keep(0)`)
// - `Concurrency(100)`, as asynq's
// - bulk: `AddAll`, `App.Enqueue` of several calls
//
// Reference: docs/go.md

package main

import (
	"context"
	"fmt"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/jobs"
)

func runLeaseq(o orders) error {
	client, err := leaseq.Open(fmt.Sprintf("redis://127.0.0.1:%d/%d", o.Port, o.Database))
	if err != nil {
		return err
	}
	defer client.Close()
	if o.Variant == "jobs" {
		return runJobs(client, o)
	}
	return runItems(client, o)
}

func runItems(client *leaseq.Client, o orders) error {
	ctx, queue := context.Background(), client.MustQueue("bench")
	if o.produces() {
		return produce(
			func(j job) error {
				_, err := queue.Add(ctx, j.id, []byte(j.data))
				return err
			},
			func(all []job) error {
				items := make([]leaseq.NewItem, len(all))
				for i, j := range all {
					items[i] = leaseq.Item(j.id, []byte(j.data))
				}
				_, err := queue.AddAll(ctx, items)
				return err
			},
		)
	}
	left, err := newTraces(o)
	if err != nil {
		return err
	}
	worker, err := client.Worker([]*leaseq.Queue{queue}, func(_ context.Context, item *leaseq.LeasedItem) error {
		return work(o, left, string(item.Data))
	}, leaseq.Concurrency(o.concurrency(100)))
	if err != nil {
		return err
	}
	_, err = worker.Run(ctx)
	return err
}

func runJobs(client *leaseq.Client, o orders) error {
	ctx, app := context.Background(), jobs.New(client)
	if o.produces() {
		handled := jobs.Declare[string, jobs.None](app, "handle", jobs.Keep(0))
		return produce(
			func(j job) error {
				_, err := handled.Enqueue(ctx, j.data)
				return err
			},
			func(all []job) error {
				calls := make([]*jobs.Call, len(all))
				for i, j := range all {
					calls[i] = handled.Call(j.data)
				}
				_, err := app.Enqueue(ctx, calls...)
				return err
			},
		)
	}
	left, err := newTraces(o)
	if err != nil {
		return err
	}
	jobs.Define(app, "handle", func(_ context.Context, data string) (jobs.None, error) {
		return jobs.None{}, work(o, left, data)
	}, jobs.Keep(0))
	worker, err := app.Worker(nil, leaseq.Concurrency(o.concurrency(100)))
	if err != nil {
		return err
	}
	_, err = worker.Run(ctx)
	return err
}
