package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/internal/testserver"
	"leaseq.dev/go/jobs"
)

var serverURL string

func TestMain(m *testing.M) {
	os.Exit(testserver.Run(m, &serverURL))
}

func appOf(t *testing.T, options ...jobs.AppOption) *jobs.App {
	t.Helper()
	client, err := leaseq.Open(serverURL, leaseq.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return jobs.New(client, append([]jobs.AppOption{jobs.InGroup("g" + leaseq.RandomID()[:8])}, options...)...)
}

func work(t *testing.T, app *jobs.App) {
	t.Helper()
	worker, err := app.Worker(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := worker.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

type order struct {
	Book  string  `json:"book"`
	Count int     `json:"count"`
	Price float64 `json:"price,omitempty"`
}

func TestTypesOfAFunctionInBothFormats(t *testing.T) {
	for _, format := range []jobs.Format{jobs.JSON, jobs.MessagePack} {
		app := appOf(t, jobs.Written(format))
		double := jobs.Define(app, "double", func(_ context.Context, in order) (order, error) {
			in.Count *= 2
			return in, nil
		})
		spread := jobs.Define(app, "spread", func(_ context.Context, in order) (int, error) { return in.Count, nil }, jobs.Spread())
		work(t, app)
		handle, err := double.Enqueue(t.Context(), order{"Dune", 1 << 60, 0.5})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := handle.Result(t.Context()); err != nil || got != (order{"Dune", 1 << 61, 0.5}) {
			t.Fatal(format, got, err)
		}
		other, err := spread.Enqueue(t.Context(), order{Book: "Emma", Count: 3})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := other.Result(t.Context()); err != nil || got != 3 {
			t.Fatal(format, got, err)
		}
	}
}

func TestFailureAndCancel(t *testing.T) {
	app := appOf(t)
	fail := jobs.Define(app, "fail", func(context.Context, string) (jobs.None, error) { return jobs.None{}, errors.New("no such order") }, jobs.Retries(0))
	handle, err := fail.Enqueue(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	late, err := fail.Enqueue(t.Context(), "x", jobs.Delay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	work(t, app)
	_, err = handle.Result(t.Context())
	var failed *jobs.FailedError
	if !errors.As(err, &failed) || failed.Message != "no such order" || failed.Attempt != 1 {
		t.Fatal(err)
	}
	// attempts made elsewhere count, as in the info
	third, err := fail.Enqueue(t.Context(), "x", jobs.Retries(2), jobs.FirstAttempt(3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := third.Result(t.Context()); !errors.As(err, &failed) || failed.Attempt != 3 {
		t.Error(err)
	}
	if info, err := third.Info(t.Context()); err != nil || info.Attempt != 3 {
		t.Error(info, err)
	}
	if cancelled, err := late.Cancel(t.Context()); err != nil || !cancelled {
		t.Fatal(cancelled, err)
	}
	if _, err := late.Result(t.Context()); !errors.Is(err, jobs.ErrCancelled) {
		t.Fatal(err)
	}
}

// TestReport shows any value of JSON, in place of numbers, while the job runs.
func TestReport(t *testing.T) {
	app := appOf(t)
	end := make(chan struct{})
	wait := jobs.Define(app, "wait", func(ctx context.Context, _ string) (jobs.None, error) {
		jobs.ReportProgress(ctx, 1, 2)
		if err := jobs.Report(ctx, order{Book: "Ulysses", Count: 2}); err != nil {
			t.Error(err)
		}
		for _, wrong := range []any{strings.Repeat("x", 4095), make(chan int)} {
			if jobs.Report(ctx, wrong) == nil {
				t.Errorf("%T was reported", wrong)
			}
		}
		<-end
		return jobs.None{}, nil
	})
	handle, err := wait.Enqueue(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	work(t, app)
	var info jobs.Info
	for info.Report == nil {
		if info, err = handle.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if info.Progress != nil || string(info.Report) != `{"book":"Ulysses","count":2}` {
		t.Error(info.Progress, string(info.Report))
	}
	close(end)
	if _, err := handle.Result(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestValuesThatAFormatCannotHold(t *testing.T) {
	app := appOf(t)
	for _, value := range []any{math.NaN(), "\xff", []any{map[string]any{"x": "\xff"}}, make(chan int)} {
		_, err := jobs.Declare[any, any](app, "f").Enqueue(t.Context(), value)
		var refused *jobs.SerializationError
		if !errors.As(err, &refused) {
			t.Error(value, err)
		}
	}
	for _, value := range []any{`\ufffd`, "\ufffd", `\\ufffd`} {
		if _, err := jobs.Declare[any, any](app, "f").Enqueue(t.Context(), value); err != nil {
			t.Error(value, err)
		}
	}
}

func TestChain(t *testing.T) {
	app := appOf(t)
	one := jobs.Define(app, "one", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	two := jobs.Define(app, "two", func(_ context.Context, n int) (int, error) { return n * 10, nil })
	work(t, app)
	handles, err := jobs.ThenFunction(app.Chain(one.Call(1)), two).Enqueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handles[0].Result(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := jobs.As[int](handles[1]).Result(t.Context()); err != nil || got != 20 {
		t.Fatal(got, err)
	}
}

func TestSchedule(t *testing.T) {
	app := appOf(t)
	ticked := make(chan struct{}, 100)
	tick := jobs.Define(app, "tick", func(context.Context, jobs.None) (jobs.None, error) {
		ticked <- struct{}{}
		return jobs.None{}, nil
	})
	if err := app.Every(tick.Call(jobs.None{}), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := app.Cron(tick.Call(jobs.None{}), "61 * * * *", jobs.Name("bad")); err == nil {
		t.Fatal("a bad line is taken")
	}
	work(t, app)
	for range 3 {
		select {
		case <-ticked:
		case <-time.After(10 * time.Second):
			t.Fatal("no tick")
		}
	}
}

func TestSchedulesComeBeforeJobsOfAFairWorker(t *testing.T) {
	app := appOf(t)
	report := jobs.Define(app, "report", func(context.Context, jobs.None) (jobs.None, error) { return jobs.None{}, nil })
	schedules, err := app.Queue("default.cron")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := app.Cron(report.Call(jobs.None{}), "@yearly", jobs.Name(name)); err != nil {
			t.Fatal(err)
		}
		// as an earlier worker left it, due now
		data := fmt.Appendf(nil, `{"v":1,"until":%d}`, time.Now().UnixMilli())
		if _, err := schedules.Add(t.Context(), name, data, leaseq.MaxAttempts(0)); err != nil {
			t.Fatal(err)
		}
	}
	for _, queue := range []string{"default", "other", "default", "other"} {
		if _, err := report.Enqueue(t.Context(), jobs.None{}, jobs.OnQueue(queue)); err != nil {
			t.Fatal(err)
		}
	}
	leased := make(chan string, 100)
	hooks := leaseq.Hooks{Leased: func(items []*leaseq.LeasedItem) { leased <- items[0].Queue().Name() }}
	worker, err := app.Worker([]string{"default", "other"}, leaseq.Concurrency(1), leaseq.Fair(), leaseq.WithHooks(hooks))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := worker.Run(ctx)
		ended <- err
	}()
	var names []string
	for len(names) < 6 {
		select {
		case name := <-leased:
			names = append(names, name)
		case <-time.After(10 * time.Second):
			t.Fatal(names)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if names[0] != "default.cron" || names[1] != "default.cron" || names[2] == names[3] || names[3] == names[4] {
		t.Error(names)
	}
}

// otherProgram is a worker in Python that runs py.add, and enqueues go.add and prints its result.
const otherProgram = `
import sys, leaseq.jobs
url, group = sys.argv[1:]
app = leaseq.jobs.App(url, group=group)

@app.job(name="py.add")
def add(a: int, b: int = 5) -> int:
    return a + b

@app.job(name="go.add")
def of_go(a: int, b: int = 0) -> int: ...

handle = of_go.with_options(queue="go").enqueue(20, b=3)
app.run_worker(queues=["default"], burst=True)
print(handle.result(timeout=20))
`

func TestJobsOfPythonRunInGoAndTheOtherWayRound(t *testing.T) {
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	group := "g" + leaseq.RandomID()[:8]
	app := appOf(t, jobs.InGroup(group))
	type pair struct {
		A int `json:"a"`
		B int `json:"b,omitempty"`
	}
	jobs.Define(app, "go.add", func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil }, jobs.Spread(), jobs.OnQueue("go"))
	handle, err := jobs.Declare[pair, int](app, "py.add", jobs.Spread()).Enqueue(t.Context(), pair{A: 2})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := app.Worker([]string{"go"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _, _ = worker.Run(ctx) }()
	program := exec.Command(python, "-c", otherProgram, serverURL, group)
	program.Stderr = os.Stderr
	printed, err := program.Output()
	if err != nil || strings.TrimSpace(string(printed)) != "23" {
		t.Fatal(string(printed), err)
	}
	if got, err := handle.Result(t.Context(), leaseq.Wait(10*time.Second)); err != nil || got != 7 {
		t.Fatal(got, err)
	}
}

func TestOptionsThatNoJobCanHaveAreRefused(t *testing.T) {
	app := appOf(t)
	double := jobs.Define(app, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	for _, option := range []jobs.Option{
		jobs.ID(""), jobs.Retries(-7), jobs.FirstAttempt(0), jobs.FirstAttempt(6), jobs.Delay(-time.Second), jobs.Keep(-time.Second),
	} {
		if _, err := double.Enqueue(t.Context(), 1, option); err == nil || !strings.HasPrefix(err.Error(), "jobs: ") {
			t.Error(err)
		}
	}
}
