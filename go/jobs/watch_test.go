package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/jobs"
)

// beforeTheCap is less than the 4 s after which a watch looks again that nothing has woken.
const beforeTheCap = 3500 * time.Millisecond

// watcher watches a job in the background.
type watcher struct {
	t      *testing.T
	seen   chan jobs.Info
	ended  chan error
	latest time.Time
	all    []jobs.Status
}

func watch[Out any](ctx context.Context, t *testing.T, handle *jobs.Handle[Out]) *watcher {
	w := &watcher{t: t, seen: make(chan jobs.Info, 100), ended: make(chan error, 1)}
	go func() {
		var failed error
		for info, err := range handle.Watch(ctx) {
			if failed = err; err == nil {
				w.seen <- info
			}
		}
		close(w.seen)
		w.ended <- failed
	}()
	return w
}

// until waits until something is seen for which a condition holds.
func (w *watcher) until(what string, holds func(jobs.Info) bool) jobs.Info {
	w.t.Helper()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	for {
		select {
		case info, ok := <-w.seen:
			if !ok {
				w.t.Fatal("it ended before it saw: "+what, w.all, <-w.ended)
			}
			w.all = append(w.all, info.Status)
			if holds(info) {
				w.latest = time.Now()
				return info
			}
		case <-timer.C:
			w.t.Fatal("not seen: "+what, w.all)
		}
	}
}

func (w *watcher) untilStatus(status jobs.Status) jobs.Info {
	w.t.Helper()
	return w.until(string(status), func(info jobs.Info) bool { return info.Status == status })
}

// woken waits for a status that a wake-up shows: it comes before the watch looks again anyway.
func (w *watcher) woken(status jobs.Status) jobs.Info {
	w.t.Helper()
	before := w.latest
	info := w.untilStatus(status)
	if took := w.latest.Sub(before); took > beforeTheCap {
		w.t.Errorf("%s was seen after %v", status, took)
	}
	return info
}

// end waits for the end of the watch, and returns its error.
func (w *watcher) end() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(20 * time.Second):
		w.t.Fatal("the watch does not end")
		return nil
	}
}

// blocked waits until want connections block on the lists of a watch.
func blocked(t *testing.T, want int) {
	t.Helper()
	client, err := leaseq.Open(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	count := 0
	for range 1000 {
		reply, err := client.Command(t.Context(), "", "CLIENT", "LIST")
		if err != nil {
			t.Fatal(err)
		}
		listed, _ := reply.ToString()
		count = 0
		for line := range strings.Lines(listed) {
			if strings.Contains(line, " flags=b ") && strings.Contains(line, " cmd=blmove ") {
				count++
			}
		}
		if count == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(count, "connections block, not", want)
}

func enqueue[In, Out any](t *testing.T, f *jobs.Function[In, Out], in In) *jobs.Handle[Out] {
	t.Helper()
	handle, err := f.Enqueue(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

func TestWatchYieldsEachChangeUntilTheEnd(t *testing.T) {
	app := appOf(t)
	steps := make(chan struct{})
	f := jobs.Define(app, "f", func(ctx context.Context, _ jobs.None) (string, error) {
		<-steps
		jobs.ReportProgress(ctx, 1, 3)
		<-steps
		err := jobs.Report(ctx, order{Book: "Emma"})
		<-steps
		return "done", err
	})
	w := watch(t.Context(), t, enqueue(t, f, jobs.None{}))
	w.untilStatus(jobs.Ready)
	work(t, app)
	w.woken(jobs.Running)
	steps <- struct{}{}
	w.until("progress", func(info jobs.Info) bool {
		return info.Progress != nil && *info.Progress == jobs.Progress{Done: 1, Total: 3, HasTotal: true}
	})
	steps <- struct{}{}
	w.until("a report", func(info jobs.Info) bool { return string(info.Report) == `{"book":"Emma","count":0}` })
	steps <- struct{}{}
	if info := w.woken(jobs.Succeeded); info.Result != "done" {
		t.Error(info)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

func TestWatchSeesAFailedAttemptAndTheNextOne(t *testing.T) {
	for _, reports := range []bool{false, true} {
		t.Run(fmt.Sprint("reports ", reports), func(t *testing.T) { watchAttempts(t, reports) })
	}
}

func watchAttempts(t *testing.T, reports bool) {
	app := appOf(t)
	fail := make(chan struct{})
	f := jobs.Define(app, "f", func(ctx context.Context, _ jobs.None) (jobs.None, error) {
		if reports {
			jobs.ReportProgress(ctx, float64(jobs.Attempt(ctx)), 0)
			<-fail
		}
		if jobs.Attempt(ctx) == 1 {
			return jobs.None{}, leaseq.GiveBack("later", leaseq.Delay(time.Hour))
		}
		return jobs.None{}, errors.New("again")
	}, jobs.Retries(1))
	handle := enqueue(t, f, jobs.None{})
	w := watch(t.Context(), t, handle)
	w.untilStatus(jobs.Ready)
	work(t, app)
	w.attempt(reports, 1, fail)
	w.woken(jobs.Retrying)
	if promoted, err := handle.Promote(t.Context()); err != nil || !promoted {
		t.Fatal(promoted, err)
	}
	w.attempt(reports, 2, fail)
	if info := w.woken(jobs.Failed); info.Attempt != 2 || !strings.Contains(info.Error, "again") {
		t.Error(info)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

// attempt lets an attempt fail that reports its number, once that is seen.
func (w *watcher) attempt(reports bool, number float64, fail chan<- struct{}) {
	w.t.Helper()
	if reports {
		w.until("progress", func(info jobs.Info) bool { return info.Progress != nil && info.Progress.Done == number })
		fail <- struct{}{}
	}
}

func TestWatchEndsWithTheCancelOfTheJob(t *testing.T) {
	app := appOf(t)
	handle := enqueue(t, jobs.Declare[int, int](app, "f"), 1)
	w := watch(t.Context(), t, handle)
	w.untilStatus(jobs.Ready)
	if cancelled, err := handle.Cancel(t.Context()); err != nil || !cancelled {
		t.Fatal(cancelled, err)
	}
	w.woken(jobs.Cancelled)
	if err := w.end(); err != nil || !slices.Equal(w.all, []jobs.Status{jobs.Ready, jobs.Cancelled}) {
		t.Error(w.all, err)
	}
	none := watch(t.Context(), t, app.Job("none"))
	none.untilStatus(jobs.Unknown)
	if err := none.end(); err != nil {
		t.Error(err)
	}
}

func TestWatchThatStopsFreesItsConnections(t *testing.T) {
	app := appOf(t)
	handle := enqueue(t, jobs.Declare[int, int](app, "f"), 1)
	for _, err := range handle.Watch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	blocked(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	w := watch(ctx, t, handle)
	w.untilStatus(jobs.Ready)
	blocked(t, 2)
	cancel()
	if err := w.end(); !errors.Is(err, leaseq.ErrAborted) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	blocked(t, 0)
	if took := time.Since(w.latest); took > beforeTheCap {
		t.Error("it took", took)
	}
}

func TestWatchEndsWithTheClient(t *testing.T) {
	client, err := leaseq.Open(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	app := jobs.New(client, jobs.InGroup("g"+leaseq.RandomID()[:8]))
	w := watch(t.Context(), t, enqueue(t, jobs.Declare[int, int](app, "f"), 1))
	w.untilStatus(jobs.Ready)
	blocked(t, 2)
	client.Close()
	if err := w.end(); !errors.Is(err, leaseq.ErrClosed) {
		t.Error(err)
	}
	blocked(t, 0)
}

func TestMoreWatchesThanMayBlock(t *testing.T) {
	app := appOf(t)
	f := jobs.Define(app, "f", func(_ context.Context, n int) (int, error) { return n, nil })
	var watchers []*watcher
	for n := range 20 {
		watchers = append(watchers, watch(t.Context(), t, enqueue(t, f, n)))
		watchers[n].untilStatus(jobs.Ready)
	}
	blocked(t, 32)
	work(t, app)
	for n, w := range watchers {
		if info := w.untilStatus(jobs.Succeeded); info.Result != json.Number(fmt.Sprint(n)) {
			t.Errorf("%d: %#v", n, info.Result)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	}
	blocked(t, 0)
}

// hand is a worker by hand of one job.
type hand struct {
	t    *testing.T
	item *leaseq.LeasedItem
	key  string
}

func take[Out any](t *testing.T, app *jobs.App, handle *jobs.Handle[Out]) *hand {
	t.Helper()
	queue, err := app.Queue(handle.Queue)
	if err != nil {
		t.Fatal(err)
	}
	item, err := queue.Lease(context.Background(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return &hand{t, item, queue.Key("job:" + item.ID)}
}

// publish runs a command on the note, and wakes those that wait for change n.
func (h *hand) publish(n int, command ...string) {
	h.t.Helper()
	client, err := leaseq.Open(serverURL)
	if err != nil {
		h.t.Fatal(err)
	}
	defer client.Close()
	changed := h.changed(n)
	if _, err := client.Transaction(context.Background(), h.key, command, []string{"RPUSH", changed, "1"}, []string{"PEXPIRE", changed, "4000"}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hand) note(n int) []string {
	return []string{"SET", h.key, fmt.Sprintf(`{"v":1,"token":%d,"worker":"w","started":1,"n":%d,"done":%d}`, h.item.Token, n, n)}
}

func (h *hand) changed(n int) string {
	return h.item.Queue().Key(fmt.Sprintf("changed:%s:%d.%d", h.item.ID, h.item.Attempt, n))
}

// TestWatchLooksUntilAnAttemptIsOver: a worker publishes the end of an attempt before it releases the item, which wakes nothing.
func TestWatchLooksUntilAnAttemptIsOver(t *testing.T) {
	app := appOf(t)
	handle := enqueue(t, jobs.Declare[int, int](app, "f"), 1)
	w := watch(t.Context(), t, handle)
	w.untilStatus(jobs.Ready)
	worker := take(t, app, handle)
	worker.publish(0, worker.note(0)...)
	worker.publish(1, worker.note(1)...)
	w.until("progress", func(info jobs.Info) bool { return info.Progress != nil && info.Progress.Done == 1 })
	worker.publish(2, "DEL", worker.key, worker.changed(0), worker.changed(1)) // as if these were over
	w.until("no progress", func(info jobs.Info) bool { return info.Progress == nil })
	if _, err := worker.item.Release(t.Context(), leaseq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.woken(jobs.Retrying)
	if cancelled, err := handle.Cancel(t.Context()); err != nil || !cancelled {
		t.Fatal(cancelled, err)
	}
	w.woken(jobs.Cancelled)
}

// TestWatchLooksAgainAfterASlowLoop: what the job published meanwhile is gone.
func TestWatchLooksAgainAfterASlowLoop(t *testing.T) {
	app := appOf(t)
	handle := enqueue(t, jobs.Declare[int, int](app, "f"), 1)
	var resumed time.Time
	for info, err := range handle.Watch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if info.Status == jobs.Running {
			break
		}
		worker := take(t, app, handle)
		worker.publish(0, worker.note(0)...)
		worker.publish(1, "DEL", worker.changed(0))
		time.Sleep(2100 * time.Millisecond) // this is the slow loop
		resumed = time.Now()
	}
	if took := time.Since(resumed); took > beforeTheCap {
		t.Error("it took", took)
	}
}
