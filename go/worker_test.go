package leaseq_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	leaseq "leaseq.dev/go"
)

var quiet = leaseq.Logger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// run runs a worker until the test ends, and returns a function that stops it and tells how many items it completed.
func run(t *testing.T, queues []*leaseq.Queue, client *leaseq.Client, handler leaseq.Handler, options ...leaseq.WorkerOption) (stop func() int) {
	t.Helper()
	worker, err := client.Worker(queues, handler, options...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		completed, err := worker.Run(ctx)
		if err != nil {
			t.Error(err)
		}
		ended <- completed
	}()
	t.Cleanup(cancel)
	return func() int {
		cancel()
		select {
		case completed := <-ended:
			return completed
		case <-time.After(10 * time.Second):
			t.Fatal("the worker does not stop")
			return 0
		}
	}
}

func TestWorkerEndsItemsAsItsHandlerEnds(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "well", "failed", "panicked", "dead", "back")
	stop := run(t, []*leaseq.Queue{queue}, client, func(_ context.Context, item *leaseq.LeasedItem) error {
		switch item.ID {
		case "failed":
			return errors.New("no such order")
		case "panicked":
			panic("oh")
		case "dead":
			return leaseq.DeadLetter("never")
		case "back":
			return leaseq.GiveBack("later", leaseq.Delay(time.Hour), leaseq.Uncounted())
		}
		return nil
	}, leaseq.Concurrency(2), leaseq.LeaseAhead(2), leaseq.Backoff(func(int) time.Duration { return time.Hour }))
	want := map[string]leaseq.State{
		"well": leaseq.StateAbsent, "failed": leaseq.StateDelayed, "panicked": leaseq.StateDelayed, "dead": leaseq.StateDead, "back": leaseq.StateDelayed,
	}
	for id, state := range want {
		eventually(t, id+" is "+string(state), func() bool { return stateOf(t, queue, id) == state })
	}
	infos, err := queue.Inspect(t.Context(), "failed", "panicked", "dead", "back")
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"no such order", "panic: oh", "never", "later"} {
		if string(infos[i].Error) != text {
			t.Errorf("%q, not %q", infos[i].Error, text)
		}
	}
	if infos[3].Attempt != 0 {
		t.Error("the attempt counts", infos[3].Attempt)
	}
	if completed := stop(); completed != 1 {
		t.Error(completed)
	}
}

func TestStopGivesBackWhatWasLeasedAhead(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "a", "b", "c")
	begun := make(chan struct{}, 3)
	finish := make(chan struct{})
	stop := run(t, []*leaseq.Queue{queue}, client, func(context.Context, *leaseq.LeasedItem) error {
		begun <- struct{}{}
		<-finish
		return nil
	}, leaseq.LeaseAhead(2))
	<-begun
	eventually(t, "two are leased ahead", func() bool { return stateOf(t, queue, "c") == leaseq.StateLeased })
	time.AfterFunc(200*time.Millisecond, func() { close(finish) })
	if completed := stop(); completed != 1 {
		t.Error(completed)
	}
	infos, err := queue.Inspect(t.Context(), "b", "c")
	if err != nil || infos[0].State != leaseq.StateReady || infos[0].Attempt != 0 || infos[1].State != leaseq.StateReady {
		t.Fatal(infos, err)
	}
}

func TestGraceEndsHandlers(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "a")
	begun := make(chan struct{})
	var cause atomic.Value
	stop := run(t, []*leaseq.Queue{queue}, client, func(ctx context.Context, _ *leaseq.LeasedItem) error {
		close(begun)
		<-leaseq.Stopping(ctx)
		<-ctx.Done()
		cause.Store(context.Cause(ctx))
		return nil
	}, leaseq.Grace(50*time.Millisecond))
	<-begun
	stop()
	eventually(t, "the handler has ended", func() bool { return cause.Load() != nil })
	var stopped *leaseq.StoppedError
	if err, _ := cause.Load().(error); !errors.As(err, &stopped) {
		t.Error(err)
	}
	if state := stateOf(t, queue, "a"); state != leaseq.StateReady {
		t.Error(state)
	}
}

func TestTimeLimitFailsTheAttempt(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "a")
	run(t, []*leaseq.Queue{queue}, client, func(ctx context.Context, _ *leaseq.LeasedItem) error {
		<-ctx.Done()
		return nil
	}, leaseq.TimeLimit(50*time.Millisecond), leaseq.Attempts(1))
	eventually(t, "it is dead", func() bool { return stateOf(t, queue, "a") == leaseq.StateDead })
}

func TestHandlerOfALostLeaseIsTold(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "a")
	told := make(chan error, 1)
	lost := make(chan string, 1)
	begun := make(chan struct{})
	run(t, []*leaseq.Queue{queue}, client, func(ctx context.Context, _ *leaseq.LeasedItem) error {
		close(begun)
		<-ctx.Done()
		told <- context.Cause(ctx)
		return ctx.Err()
	}, leaseq.LeaseFor(600*time.Millisecond), leaseq.WithHooks(leaseq.Hooks{Lost: func(item *leaseq.LeasedItem) { lost <- item.ID }}))
	<-begun
	if _, err := queue.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	var reason *leaseq.LostError
	if err := <-told; !errors.As(err, &reason) {
		t.Error(err)
	}
	if id := <-lost; id != "a" {
		t.Error(id)
	}
}

func TestLiveWorkerIsListed(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	stop := run(t, []*leaseq.Queue{queue}, client, func(context.Context, *leaseq.LeasedItem) error { return nil }, leaseq.WorkerID("w:"+t.Name()))
	listed := func() bool {
		all, err := client.LiveWorkers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range all {
			if each.ID == "w:"+t.Name() {
				return each.Queues[0] == queue.Group()+":"+queue.Name()
			}
		}
		return false
	}
	eventually(t, "it is listed", listed)
	stop()
	if listed() {
		t.Error("it is still listed")
	}
}

func TestWrongPasswordEndsAWorker(t *testing.T) {
	client, err := leaseq.Open("redis://user:wrong@"+serverURL[len("redis://"):], quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	worker, err := client.Worker([]*leaseq.Queue{client.MustQueue("q")}, func(context.Context, *leaseq.LeasedItem) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := worker.Run(ctx); !errors.Is(err, leaseq.ErrConnection) {
		t.Fatal(err)
	}
}
