package leaseq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	leaseq "leaseq.dev/go"
)

func Example() {
	ctx := context.Background()
	client, err := leaseq.Open(serverURL) // such as redis://localhost:6379
	if err != nil {
		panic(err)
	}
	defer client.Close()
	orders := client.MustQueue("orders")
	added, err := orders.Add(ctx, "order-1", []byte("two books"))
	fmt.Println(added.OK(), err)

	for item, err := range orders.Items(ctx, 30*time.Second, leaseq.Wait(100*time.Millisecond)) {
		if err != nil {
			panic(err)
		}
		fmt.Println(item.ID, string(item.Data))
		completed, err := item.Complete(ctx)
		fmt.Println(completed, err)
	}
	// Output:
	// true <nil>
	// order-1 two books
	// true <nil>
}

func ExampleClient_Worker() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	client, err := leaseq.Open(serverURL)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	mails := client.MustQueue("mails")
	_, _ = mails.Add(ctx, "mail-1", []byte("ada@example.org"))

	worker, err := client.Worker([]*leaseq.Queue{mails}, func(ctx context.Context, item *leaseq.LeasedItem) error {
		fmt.Println("sending to", string(item.Data))
		stop()
		return nil
	}, leaseq.Concurrency(10), leaseq.Grace(5*time.Second))
	if err != nil {
		panic(err)
	}
	completed, err := worker.Run(ctx)
	fmt.Println(completed, err)
	// Output:
	// sending to ada@example.org
	// 1 <nil>
}

func ExampleQueue_WaitOutcome() {
	ctx := context.Background()
	client, err := leaseq.Open(serverURL)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	sums := client.MustQueue("sums")
	_, _ = sums.Add(ctx, "sum-1", []byte("1 2 3"), leaseq.Keep(time.Hour))
	item, err := sums.Lease(ctx, time.Minute)
	if err != nil {
		panic(err)
	}
	_, _ = item.Complete(ctx, leaseq.Result([]byte("6")))

	outcome, err := sums.WaitOutcome(ctx, "sum-1", leaseq.Wait(time.Second))
	fmt.Println(outcome.State, string(outcome.Content), err)
	// Output:
	// result 6 <nil>
}

func ExampleError() {
	client, err := leaseq.Open(serverURL)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	_, err = client.MustQueue("orders").Add(context.Background(), "", nil)
	fmt.Println(errors.Is(err, leaseq.ErrBadID), leaseq.IsDefinite(err))
	// Output:
	// true true
}
