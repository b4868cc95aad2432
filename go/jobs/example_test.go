package jobs_test

import (
	"context"
	"fmt"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/jobs"
)

type parcel struct {
	Number int    `json:"number"`
	Note   string `json:"note,omitempty"`
}

func ExampleDefine() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client, err := leaseq.Open(serverURL)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	app := jobs.New(client, jobs.InGroup("shop"))
	send := jobs.Define(app, "shop.send", func(_ context.Context, p parcel) (string, error) {
		return fmt.Sprint("sent ", p.Number), nil
	}, jobs.Spread(), jobs.Retries(2))

	worker, err := app.Worker(nil, leaseq.Concurrency(20))
	if err != nil {
		panic(err)
	}
	go func() { _, _ = worker.Run(ctx) }()

	handle, err := send.Enqueue(ctx, parcel{Number: 7})
	if err != nil {
		panic(err)
	}
	receipt, err := handle.Result(ctx)
	fmt.Println(receipt, err)
	// Output:
	// sent 7 <nil>
}
