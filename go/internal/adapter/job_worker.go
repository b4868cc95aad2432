package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/jobs"
)

type jobConfig struct {
	URL         string   `json:"url"`
	Group       string   `json:"group"`
	Queues      []string `json:"queues"`
	Concurrency int      `json:"concurrency"`
	LeaseMs     int      `json:"lease_ms"`
	Schedules   bool     `json:"schedules"`
}

// runJobs is the job worker program: its functions and schedules are those of conformance-tests/ADAPTER.md.
func runJobs(text string) error {
	var config jobConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	client, err := leaseq.Open(config.URL)
	if err != nil {
		return err
	}
	defer client.Close()
	app := jobs.New(client, jobs.InGroup(config.Group), jobs.InQueue(config.Queues[0]))
	defineAll(app)
	tick := jobs.Define(app, "tick", func(context.Context, jobs.None) (string, error) { return "tick", nil })
	if config.Schedules {
		if err := scheduleAll(app, tick); err != nil {
			return err
		}
	}
	worker, err := app.Worker(config.Queues, leaseq.Concurrency(config.Concurrency), leaseq.Grace(500*time.Millisecond),
		leaseq.LeaseFor(time.Duration(config.LeaseMs)*time.Millisecond))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	_, err = worker.Run(ctx)
	return err
}

var errFinal = errors.New("final")

func final(err error) bool { return errors.Is(err, errFinal) }

type finalError struct{ message string }

func (e *finalError) Error() string { return e.message }

func (e *finalError) Is(target error) bool { return target == errFinal }

type message struct {
	Message string `json:"message"`
}

type sleeping struct {
	Ms int64 `json:"ms"`
}

func sleepFor(ctx context.Context, in sleeping) (int64, error) {
	select {
	case <-time.After(time.Duration(in.Ms) * time.Millisecond):
		return in.Ms, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func defineAll(app *jobs.App) {
	jobs.Define(app, "echo", func(_ context.Context, in struct {
		Value any `json:"value"`
	}) (any, error) {
		return in.Value, nil
	}, jobs.Spread())
	jobs.Define(app, "add", func(_ context.Context, in struct {
		A json.Number `json:"a"`
		B json.Number `json:"b,omitempty"`
	}) (any, error) {
		a, _ := in.A.Int64()
		b, _ := in.B.Int64()
		return a + b, nil
	}, jobs.Spread())
	jobs.Define(app, "fail", func(_ context.Context, in message) (any, error) { return nil, errors.New(in.Message) }, jobs.Spread())
	jobs.Define(app, "fail_for_good", func(_ context.Context, in message) (any, error) { return nil, &finalError{in.Message} },
		jobs.Spread(), jobs.FinalIf(final))
	jobs.Define(app, "never_again", func(_ context.Context, in message) (any, error) { return nil, leaseq.DeadLetter(in.Message) }, jobs.Spread())
	jobs.Define(app, "fail_times", func(ctx context.Context, in struct {
		Times int `json:"times"`
	}) (int, error) {
		if attempt := jobs.Attempt(ctx); attempt > in.Times {
			return attempt, nil
		}
		return 0, fmt.Errorf("attempt %d", jobs.Attempt(ctx))
	}, jobs.Spread())
	jobs.Define(app, "not_a_number", func(context.Context, jobs.None) (float64, error) { return math.NaN(), nil })
	jobs.Define(app, "sleep", sleepFor, jobs.Spread())
	jobs.Define(app, "limited", sleepFor, jobs.Spread(), jobs.TimeLimit(300*time.Millisecond))
	jobs.Define(app, "mark", mark, jobs.Spread())
	jobs.Define(app, "fail_late", func(ctx context.Context, in struct {
		Ms  int64  `json:"ms"`
		How string `json:"how"`
	}) (int64, error) {
		ms, err := sleepFor(ctx, sleeping{in.Ms})
		if err != nil && in.How == "never_again" {
			return 0, leaseq.DeadLetter("late")
		}
		if err != nil {
			return 0, &finalError{"late"}
		}
		return ms, nil
	}, jobs.Spread(), jobs.FinalIf(final))
	jobs.Define(app, "progress", func(ctx context.Context, in struct {
		Done  float64 `json:"done"`
		Total float64 `json:"total"`
		Ms    int64   `json:"ms"`
	}) (any, error) {
		jobs.ReportProgress(ctx, in.Done, in.Total)
		_, err := sleepFor(ctx, sleeping{in.Ms})
		return nil, err
	}, jobs.Spread())
}

// mark appends a byte to a file every 20 ms, until the worker ends it.
func mark(ctx context.Context, in struct {
	Path string `json:"path"`
}) (any, error) {
	for {
		file, err := os.OpenFile(in.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		_, err = file.WriteString("x")
		if closing := file.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return nil, err
		}
		if _, err := sleepFor(ctx, sleeping{20}); err != nil {
			return nil, err
		}
	}
}

func scheduleAll(app *jobs.App, tick *jobs.Function[jobs.None, string]) error {
	const berlin = "Europe/Berlin"
	for name, rule := range map[string][2]string{
		"hourly": {"0 * * * *", "UTC"}, "skipped": {"30 2 30 3 *", berlin}, "skipped-several": {"*/15 2 30 3 *", berlin},
		"twice": {"30 2 26 10 *", berlin}, "skipped-each-hour": {"*/30 * 30 3 *", berlin}, "twice-each-hour": {"*/30 * 26 10 *", berlin},
		"twice-several": {"*/30 2,3 26 10 *", berlin},
	} {
		call := tick.Call(jobs.None{}, jobs.Keep(time.Hour))
		if err := app.Cron(call, rule[0], jobs.Name(name), jobs.Zone(rule[1]), jobs.OnMissed(jobs.MissedAll)); err != nil {
			return err
		}
	}
	return nil
}
