package leaseq_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/internal/testserver"
)

func TestEndOfContextEndsAWait(t *testing.T) {
	queue := queueOf(t, open(t))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := queue.Lease(ctx, time.Minute, leaseq.Wait(leaseq.Forever))
	if !errors.Is(err, leaseq.ErrAborted) || !errors.Is(err, context.DeadlineExceeded) || !leaseq.IsDefinite(err) {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > time.Second {
		t.Fatal("it took", took)
	}
}

func TestWaitIsWokenByAnAdd(t *testing.T) {
	client := open(t)
	queue := queueOf(t, client)
	time.AfterFunc(50*time.Millisecond, func() { _, _ = queue.Add(context.Background(), "a", nil) })
	begun := time.Now()
	item, err := queue.Lease(t.Context(), time.Minute, leaseq.Wait(10*time.Second))
	if err != nil || item.ID != "a" || time.Since(begun) > 2*time.Second {
		t.Fatal(item, err, time.Since(begun))
	}
}

func TestNoItemIsAnError(t *testing.T) {
	if _, err := queueOf(t, open(t)).Lease(t.Context(), time.Minute); !errors.Is(err, leaseq.ErrNoItem) {
		t.Fatal(err)
	}
}

func TestOptionsTravelWithTheItem(t *testing.T) {
	queue := queueOf(t, open(t))
	_, err := queue.Add(t.Context(), "a", []byte{0, 255}, leaseq.ContentType(""), leaseq.WithHeader("trace", []byte("7f")), leaseq.Keep(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	item := lease(t, queue)
	if string(item.Data) != "\x00\xff" || item.ContentType == nil || string(item.Header("trace")) != "7f" || item.Keep != time.Hour {
		t.Fatal(item)
	}
	if completed, err := item.Complete(t.Context(), leaseq.Result([]byte("done"))); err != nil || !completed {
		t.Fatal(completed, err)
	}
	if item.Held() {
		t.Error("a completed item is held")
	}
	outcome, err := queue.WaitOutcome(t.Context(), "a")
	if err != nil || outcome.State != leaseq.OutcomeStateResult || string(outcome.Content) != "done" {
		t.Fatal(outcome, err)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	client := open(t)
	queue := queueOf(t, client)
	_, err := queue.Add(t.Context(), "", nil)
	var failed *leaseq.Error
	if !errors.Is(err, leaseq.ErrBadID) || !errors.As(err, &failed) || !failed.Definite || failed.Code != "LEASEQ_BAD_ID" {
		t.Fatal(err)
	}
	if err := queue.Configure(t.Context(), leaseq.ConfigureOptions{MaxItems: new(int)}); err != nil {
		t.Fatal(err)
	}
	one := 1
	if err := queue.Configure(t.Context(), leaseq.ConfigureOptions{MaxItems: &one}); err != nil {
		t.Fatal(err)
	}
	_, err = queue.AddAll(t.Context(), []leaseq.NewItem{leaseq.Item("a", nil), leaseq.Item("b", nil)})
	var full *leaseq.FullError
	if !errors.Is(err, leaseq.ErrFull) || !errors.As(err, &full) || !full.Answers[0].OK() || !full.Answers[1].NoRoom() {
		t.Fatal(err)
	}
}

func TestPartialAnswersAreTyped(t *testing.T) {
	queue := queueOf(t, open(t))
	items := make([]leaseq.NewItem, 300)
	for i := range items {
		items[i] = leaseq.Item(strconv.Itoa(i), nil)
	}
	items[299].ID = ""
	_, err := queue.AddAll(t.Context(), items)
	var partial *leaseq.PartialError[leaseq.Added]
	if !errors.As(err, &partial) || len(partial.Answers) != 256 || partial.InDoubt != 0 || !errors.Is(err, leaseq.ErrBadID) {
		t.Fatal(err)
	}
}

func TestLoopGivesBackWhatItDidNotReach(t *testing.T) {
	queue := queueOf(t, open(t))
	add(t, queue, "a", "b", "c")
	for item, err := range queue.Items(t.Context(), time.Minute, leaseq.Count(3)) {
		if err != nil || item.ID != "a" {
			t.Fatal(item, err)
		}
		if _, err := item.Complete(t.Context()); err != nil {
			t.Fatal(err)
		}
		break
	}
	if b, c := stateOf(t, queue, "b"), stateOf(t, queue, "c"); b != leaseq.StateReady || c != leaseq.StateReady {
		t.Fatal(b, c)
	}
}

func TestLostLeaseEndsTheContext(t *testing.T) {
	queue := queueOf(t, open(t))
	add(t, queue, "a")
	item, err := queue.Lease(t.Context(), 600*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer item.Heartbeat()()
	ctx, cancel := item.WithContext(t.Context())
	defer cancel()
	if _, err := queue.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the context goes on")
	}
	var lost *leaseq.LostError
	if !errors.As(context.Cause(ctx), &lost) || item.Held() {
		t.Fatal(context.Cause(ctx), item.Held())
	}
}

func TestHeartbeatKeepsALease(t *testing.T) {
	queue := queueOf(t, open(t))
	add(t, queue, "a")
	item, err := queue.Lease(t.Context(), 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer item.Heartbeat()()
	time.Sleep(time.Second)
	if completed, err := item.Complete(t.Context(), leaseq.OnlyCurrent()); err != nil || !completed || item.Attempt != 1 {
		t.Fatal(completed, err)
	}
}

func TestFollowUpComesInOneStep(t *testing.T) {
	client := open(t)
	queue := queueOf(t, client, leaseq.Group("steps"))
	next := queueOf(t, client, leaseq.Group("steps"))
	add(t, queue, "a")
	answer, err := lease(t, queue).HandOff(t.Context(), leaseq.Then(next, leaseq.Item(leaseq.DerivedID("a", "mail"), nil)))
	if err != nil || !answer.Completed || !answer.FollowUps[0].OK() || lease(t, next).ID != "a/mail" {
		t.Fatal(answer, err)
	}
	other := queueOf(t, client)
	add(t, queue, "b")
	if _, err := lease(t, queue).HandOff(t.Context(), leaseq.Then(other, leaseq.Item("x", nil))); !errors.Is(err, leaseq.ErrCrossGroup) {
		t.Fatal(err)
	}
}

func TestLeaseAnyOfSeveralGroups(t *testing.T) {
	client := open(t)
	queues := []*leaseq.Queue{queueOf(t, client), queueOf(t, client), queueOf(t, client)}
	time.AfterFunc(50*time.Millisecond, func() { _, _ = queues[2].Add(context.Background(), "c", nil) })
	items, err := client.LeaseAny(t.Context(), queues, time.Minute, leaseq.Wait(10*time.Second))
	if err != nil || len(items) != 1 || items[0].Queue() != queues[2] {
		t.Fatal(items, err)
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	client, err := leaseq.Open(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	queue := queueOf(t, client)
	add(t, queue, "a")
	lease(t, queue).Heartbeat()
	ended := make(chan error)
	go func() {
		_, err := queue.Lease(context.Background(), time.Minute, leaseq.Wait(leaseq.Forever))
		ended <- err
	}()
	time.Sleep(100 * time.Millisecond)
	client.Close()
	if err := <-ended; !errors.Is(err, leaseq.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := queue.Add(t.Context(), "b", nil); !errors.Is(err, leaseq.ErrClosed) {
		t.Fatal(err)
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

func TestBadURLIsRefusedWithoutItsPassword(t *testing.T) {
	for _, url := range []string{"redis://u:hunter2%@h", "http://u:hunter2@h", "redis://:hunter2@", "redis://u:hunter2@h/x", "redis://u:hunter2@h?retry=hunter2x"} {
		_, err := leaseq.Open(url)
		if !errors.Is(err, leaseq.ErrBadArgument) || strings.Contains(strings.ReplaceAll(err.Error(), "hunter2x", ""), "hunter2") {
			t.Error(url, err)
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	client, err := leaseq.Open("redis://127.0.0.1:" + testserver.FreePort())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.MustQueue("q").Add(t.Context(), "a", nil)
	if !errors.Is(err, leaseq.ErrConnection) || !leaseq.IsDefinite(err) {
		t.Fatal(err)
	}
}
