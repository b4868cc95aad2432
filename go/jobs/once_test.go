package jobs_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/jobs"
)

const decade = 3650 * 24 * time.Hour

// ways are those in which a job of "f" is enqueued.
var ways = map[string]func(context.Context, *jobs.App, int, ...jobs.Option) (*jobs.Handle[any], error){
	"alone": func(ctx context.Context, app *jobs.App, n int, given ...jobs.Option) (*jobs.Handle[any], error) {
		return jobs.Declare[int, any](app, "f").Enqueue(ctx, n, given...)
	},
	"with others": func(ctx context.Context, app *jobs.App, n int, given ...jobs.Option) (*jobs.Handle[any], error) {
		other := app.NewCall("f", []any{100}, nil)
		handles, err := app.Enqueue(ctx, other, app.NewCall("f", []any{n}, nil, given...), other)
		if err != nil {
			return nil, err
		}
		return handles[1], nil
	},
	"in a chain": func(ctx context.Context, app *jobs.App, n int, given ...jobs.Option) (*jobs.Handle[any], error) {
		handles, err := app.Chain(app.NewCall("f", []any{n}, nil, given...)).Then(app.NewCall("g", nil, nil)).Enqueue(ctx)
		if err != nil {
			return nil, err
		}
		return handles[0], nil
	},
}

// inEachWay runs a test with a function that enqueues a job, and reports whether it was added.
func inEachWay(t *testing.T, test func(t *testing.T, app *jobs.App, enqueue func(n int, given ...jobs.Option) (*jobs.Handle[any], bool))) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			app := appOf(t)
			jobs.Define(app, "g", func(context.Context, any) (jobs.None, error) { return jobs.None{}, nil })
			test(t, app, func(n int, given ...jobs.Option) (*jobs.Handle[any], bool) {
				t.Helper()
				handle, err := way(t.Context(), app, n, given...)
				if err != nil {
					t.Fatal(err)
				}
				return handle, handle.Added
			})
		})
	}
}

func awaitStatus(t *testing.T, handle *jobs.Handle[any], want jobs.Status) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		info, err := handle.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Status == want {
			return
		}
		if time.Now().After(end) {
			t.Fatal(info.Status)
		}
	}
}

func TestUniqueWhileItIsThereOrItsResultIsKept(t *testing.T) {
	inEachWay(t, func(t *testing.T, app *jobs.App, enqueue func(int, ...jobs.Option) (*jobs.Handle[any], bool)) {
		proceed := make(chan struct{})
		jobs.Define(app, "f", func(_ context.Context, n int) (int, error) {
			if n == 1 {
				<-proceed
			}
			return n, nil
		})
		given := []jobs.Option{jobs.Unique(), jobs.Keep(2 * time.Second)}
		first, added := enqueue(1, given...)
		again, addedAgain := enqueue(1, given...)
		if _, other := enqueue(2, given...); !added || addedAgain || !other || again.ID != first.ID {
			t.Fatal(added, addedAgain, other)
		}
		work(t, app)
		awaitStatus(t, first, jobs.Running)
		if _, added := enqueue(1, given...); added {
			t.Error("added while it ran")
		}
		close(proceed)
		if _, err := first.Result(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept, added := enqueue(1, given...)
		if got, err := jobs.As[int](kept).Result(t.Context()); added || err != nil || got != 1 {
			t.Error(added, got, err)
		}
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			if _, added := enqueue(1, given...); added {
				break
			}
			if time.Now().After(end) {
				t.Fatal("not added when its result was gone")
			}
		}
	})
}

func TestUniqueWhileItIsDead(t *testing.T) {
	inEachWay(t, func(t *testing.T, app *jobs.App, enqueue func(int, ...jobs.Option) (*jobs.Handle[any], bool)) {
		jobs.Define(app, "f", func(_ context.Context, n int) (int, error) {
			if n == 1 {
				return 0, errors.New("no")
			}
			return n, nil
		})
		work(t, app)
		first, _ := enqueue(1, jobs.Unique(), jobs.Retries(0))
		awaitStatus(t, first, jobs.Failed)
		if _, added := enqueue(1, jobs.Unique()); added {
			t.Error("added while it is dead")
		}
		queue, err := app.Queue("default")
		if err != nil {
			t.Fatal(err)
		}
		if purged, err := queue.Purge(t.Context(), 0, first.ID); err != nil || !purged[0] {
			t.Fatal(purged, err)
		}
		if _, added := enqueue(1, jobs.Unique()); !added {
			t.Error("not added")
		}
	})
}

func TestThrottledWhateverBecomesOfTheFirst(t *testing.T) {
	inEachWay(t, func(t *testing.T, app *jobs.App, enqueue func(int, ...jobs.Option) (*jobs.Handle[any], bool)) {
		jobs.Define(app, "f", func(context.Context, int) (jobs.None, error) { return jobs.None{}, nil })
		given := []jobs.Option{jobs.Throttle(decade), jobs.Keep(0)}
		first, added := enqueue(1, given...)
		again, addedAgain := enqueue(1, given...)
		_, other := enqueue(2, given...)
		_, longer := enqueue(1, jobs.Throttle(decade+time.Hour))
		if !added || addedAgain || !other || !longer || again.ID != first.ID {
			t.Fatal(added, addedAgain, other, longer)
		}
		work(t, app)
		awaitStatus(t, first, jobs.Unknown)
		if _, added := enqueue(1, given...); added {
			t.Error("added twice in its slot")
		}
	})
}

func TestOneOfManyAtATimeIsAdded(t *testing.T) {
	inEachWay(t, func(t *testing.T, _ *jobs.App, enqueue func(int, ...jobs.Option) (*jobs.Handle[any], bool)) {
		for _, option := range []jobs.Option{jobs.Unique(), jobs.Throttle(decade)} {
			var all sync.WaitGroup
			found := make(chan bool, 20)
			for range 20 {
				all.Go(func() {
					_, added := enqueue(1, option)
					found <- added
				})
			}
			all.Wait()
			close(found)
			count := 0
			for added := range found {
				if added {
					count++
				}
			}
			if count != 1 {
				t.Error(count)
			}
		}
	})
}

func TestASlotIsFreeAgainIfItsJobWasNotAdded(t *testing.T) {
	app := appOf(t)
	call := func(n int) *jobs.Call { return app.NewCall("f", []any{n}, nil, jobs.Throttle(decade)) }
	queue, err := app.Queue("default")
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{2, 0} {
		if err := queue.Configure(t.Context(), leaseq.ConfigureOptions{MaxItems: &most}); err != nil {
			t.Fatal(err)
		}
		if most == 0 {
			break
		}
		if _, err := app.Enqueue(t.Context(), call(0)); err != nil {
			t.Fatal(err)
		}
		_, err := app.Enqueue(t.Context(), call(0), call(1), call(2), call(0), call(3), call(1))
		var full *leaseq.FullError
		if !errors.As(err, &full) || len(full.Answers) != 6 {
			t.Fatal(err)
		}
		for i, each := range full.Answers {
			if each.Exists() != (i == 0 || i == 3 || i == 5) || each.OK() != (i == 1) {
				t.Error(i, each)
			}
		}
	}
	handles, err := app.Enqueue(t.Context(), call(0), call(1), call(2), call(3))
	if err != nil || handles[0].Added || handles[1].Added || !handles[2].Added || !handles[3].Added {
		t.Fatal(err)
	}
}

func TestArgumentsThatJSONHasNotAreRefused(t *testing.T) {
	app := appOf(t, jobs.Written(jobs.MessagePack))
	for _, option := range []jobs.Option{jobs.Unique(), jobs.Throttle(time.Hour)} {
		for _, value := range []any{math.NaN(), math.Inf(1), "\xff"} {
			_, err := app.Enqueue(t.Context(), app.NewCall("f", []any{value}, nil, option))
			var refused *jobs.SerializationError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "choose an id yourself") {
				t.Error(value, err)
			}
		}
	}
}

func TestUniqueAndThrottleGoNeitherTogetherNorWithAnID(t *testing.T) {
	app := appOf(t)
	f := jobs.Declare[int, any](app, "f", jobs.Unique())
	for _, each := range []struct {
		option jobs.Option
		why    string
	}{
		{jobs.ID("a"), "leave out ID, or give Repeatable"},
		{jobs.Throttle(time.Hour), "unique or throttled, not both: give one"},
		{jobs.Throttle(-time.Hour), "Throttle is 1 ms or more"},
		{jobs.Throttle(time.Microsecond), "Throttle is 1 ms or more"},
	} {
		if _, err := f.Enqueue(t.Context(), 1, each.option); err == nil || !strings.Contains(err.Error(), each.why) {
			t.Error(err)
		}
	}
	handle, err := f.Enqueue(t.Context(), 1, jobs.Repeatable(), jobs.ID("a"))
	if err != nil || handle.ID != "a" {
		t.Error(err)
	}
	throttled, err := f.Enqueue(t.Context(), 1, jobs.Repeatable(), jobs.Throttle(time.Hour))
	if err != nil || !strings.HasPrefix(throttled.ID, "throttle-") {
		t.Error(err)
	}
}

func TestLaterJobsOfAChainAndThoseOfAScheduleAreNeither(t *testing.T) {
	app := appOf(t)
	for _, option := range []jobs.Option{jobs.Unique(), jobs.Throttle(time.Hour)} {
		_, err := app.Chain(app.NewCall("f", nil, nil)).Then(app.NewCall("f", nil, nil, option)).Enqueue(t.Context())
		if err == nil || !strings.Contains(err.Error(), "neither unique nor throttled") {
			t.Error(err)
		}
		if err := app.Every(app.NewCall("f", nil, nil, option), time.Hour); err == nil || !strings.Contains(err.Error(), "neither unique nor throttled") {
			t.Error(err)
		}
	}
}
