package jobs_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leaseq.dev/go/jobs"
)

func listed(t *testing.T, app *jobs.App, paused bool) jobs.ScheduleInfo {
	t.Helper()
	for range 500 {
		found, err := app.Schedules().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 && !found[0].Next.IsZero() && found[0].Paused == paused {
			return found[0]
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the schedule is not listed")
	return jobs.ScheduleInfo{}
}

func TestSchedulesAreListedPausedResumedAndTriggered(t *testing.T) {
	for _, format := range []jobs.Format{jobs.JSON, jobs.MessagePack} {
		app := appOf(t, jobs.Written(format))
		report := jobs.Define(app, "report", func(_ context.Context, in order) (order, error) { return in, nil }, jobs.OnQueue("reports"))
		given := order{"Dune", 1 << 60, 0.5}
		call := report.Call(given, jobs.WithHeader("trace", "1"))
		if err := app.Cron(call, "30 2 * * *", jobs.Name("nightly"), jobs.Zone("Europe/Berlin")); err != nil {
			t.Fatal(err)
		}
		schedules := app.Schedules()
		if found, err := schedules.List(t.Context()); err != nil || len(found) != 0 {
			t.Fatal(found, err)
		}
		if err := schedules.Pause(t.Context(), "nightly"); !errors.Is(err, jobs.ErrNoSchedule) {
			t.Fatal(err)
		}
		work(t, app)
		found := listed(t, app, false)
		if found.Name != "nightly" || found.Queue != "reports" || found.Rule != "30 2 * * * Europe/Berlin" || found.Function != "report" ||
			found.Missed != jobs.MissedLast || !found.Last.IsZero() || !found.Next.After(time.Now()) {
			t.Fatal(found)
		}
		if err := schedules.Pause(t.Context(), "nightly"); err != nil {
			t.Fatal(err)
		}
		listed(t, app, true)
		if err := schedules.Resume(t.Context(), "nightly", "reports"); err != nil {
			t.Fatal(err)
		}
		listed(t, app, false)
		handle, err := schedules.Trigger(t.Context(), "nightly")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := jobs.As[order](handle).Result(t.Context()); err != nil || got != given {
			t.Fatal(got, err)
		}
	}
}

func TestAScheduleHasItsTurnThoughTheQueueOfJobsIsNeverEmpty(t *testing.T) {
	app := appOf(t)
	ticked := make(chan struct{}, 100)
	tick := jobs.Define(app, "tick", func(context.Context, jobs.None) (jobs.None, error) {
		ticked <- struct{}{}
		return jobs.None{}, nil
	}, jobs.Priority(7))
	var busy *jobs.Function[jobs.None, jobs.None]
	busy = jobs.Define(app, "busy", func(ctx context.Context, _ jobs.None) (jobs.None, error) {
		_, err := busy.Enqueue(ctx, jobs.None{})
		return jobs.None{}, err
	})
	for range 50 {
		if _, err := busy.Enqueue(t.Context(), jobs.None{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Every(tick.Call(jobs.None{}), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	work(t, app)
	select {
	case <-ticked:
	case <-time.After(10 * time.Second):
		t.Fatal("no tick")
	}
}

func TestAScheduleKeepsResultsOnlyIfItsCallSays(t *testing.T) {
	app := appOf(t)
	ids := make(chan bool, 100)
	tick := jobs.Define(app, "tick", func(ctx context.Context, _ jobs.None) (jobs.None, error) {
		ids <- jobs.Item(ctx).Keeps()
		return jobs.None{}, nil
	})
	if err := app.Every(tick.Call(jobs.None{}), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := app.Every(tick.Call(jobs.None{}), time.Second, jobs.Name("odd"), jobs.OnMissed("first")); err == nil {
		t.Fatal("another word for missed slots is taken")
	}
	work(t, app)
	if <-ids {
		t.Fatal("a result is kept")
	}
}

// listsAndTriggers is another program, in Python, that sees the schedules of a worker in Go.
const listsAndTriggers = `
import sys, leaseq.jobs
url, group = sys.argv[1:]
app = leaseq.jobs.App(url, group=group)
(found,) = app.schedules.inspect("reports")
app.schedules.pause("nightly", "reports")
print(found.name, found.function, app.schedules.trigger("nightly", "reports").result(timeout=20))
`

func TestSchedulesOfGoAreSeenFromPython(t *testing.T) {
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	group := "g-of-schedules"
	app := appOf(t, jobs.InGroup(group))
	report := jobs.Define(app, "report", func(_ context.Context, n int) (int, error) { return n + 1, nil }, jobs.OnQueue("reports"))
	if err := app.Cron(report.Call(6), "@yearly", jobs.Name("nightly")); err != nil {
		t.Fatal(err)
	}
	work(t, app)
	listed(t, app, false)
	program := exec.Command(python, "-c", listsAndTriggers, serverURL, group)
	program.Stderr = os.Stderr
	printed, err := program.Output()
	if err != nil || strings.TrimSpace(string(printed)) != "nightly report 7" {
		t.Fatal(string(printed), err)
	}
	listed(t, app, true)
}
