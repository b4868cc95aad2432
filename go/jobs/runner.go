package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	leaseq "leaseq.dev/go"
)

const (
	// unwindLimit is how long a function whose time is over may take to end.
	unwindLimit = time.Second
	// refusalLimit is how long after the first refusal a job of an unknown function is dead (LQ-JOB-43). It waits as long as it has been
	// refused, within the other two.
	refusalLimit    = 10 * time.Minute
	minRefusalDelay = 10 * time.Second
	maxRefusalDelay = time.Minute
	unknownFunction = "UnknownFunction"
	maxNames        = 20
)

// runner runs the jobs of one worker.
type runner struct {
	app    *App
	worker string

	mu    sync.Mutex
	named map[string]bool
}

// TimeoutError is the failure of an attempt that took longer than its time limit.
type TimeoutError struct{ limit time.Duration }

// Error returns the text.
func (e *TimeoutError) Error() string { return fmt.Sprintf("the function ran longer than %v", e.limit) }

// run runs a job, and says how its item is to end.
func (r *runner) run(ctx context.Context, item *leaseq.LeasedItem) error {
	begun := time.Now()
	job, err := readEnvelope(item.Data)
	if err != nil {
		return r.dead(err, begun)
	}
	known := r.app.function(job.text("function"))
	if known == nil {
		return r.refuse(ctx, item, job.text("function"))
	}
	args, kwargs, err := job.arguments()
	if err != nil {
		return r.dead(err, begun)
	}
	c := &running{item: item, job: job, attempt: int64(item.Attempt) + job.number("attempt", 1) - 1, begun: begun}
	c.notes = r.app.follow(item, r.worker, begun)
	returned, err := r.call(ctx, c, known, args, kwargs)
	c.notes.end(err != nil)
	if err != nil {
		return r.failed(c, known, err)
	}
	if err := r.complete(c, returned); err != nil {
		return r.dead(err, begun)
	}
	return nil
}

// running is a job that runs.
type running struct {
	item    *leaseq.LeasedItem
	job     envelope
	attempt int64
	begun   time.Time
	notes   *noteWriter
}

type runningKey struct{}

// Attempt returns the number of the attempt of the job of a function's context, 0 for another context.
func Attempt(ctx context.Context) int {
	if found, ok := ctx.Value(runningKey{}).(*running); ok {
		return int(found.attempt)
	}
	return 0
}

// Item returns the item of the job of a function's context, with its id, headers and token; nil for another context.
func Item(ctx context.Context) *leaseq.LeasedItem {
	if found, ok := ctx.Value(runningKey{}).(*running); ok {
		return found.item
	}
	return nil
}

// ReportProgress tells clients that look at the job how much is done, and of how much; 0 leaves the total out.
func ReportProgress(ctx context.Context, done, total float64) {
	if found, ok := ctx.Value(runningKey{}).(*running); ok {
		found.notes.report(done, total)
	}
}

// maxReport is the bytes of a report as JSON.
const maxReport = 4096

// Report tells clients that look at the job any value, as JSON of up to 4096 bytes, in place of [ReportProgress]. See Info.Report.
func Report(ctx context.Context, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("jobs: a report is a value of JSON: %w", err)
	}
	if len(text) > maxReport {
		return fmt.Errorf("jobs: a report has at most %d bytes as JSON, not %d: store it elsewhere, and report where", maxReport, len(text))
	}
	if found, ok := ctx.Value(runningKey{}).(*running); ok {
		found.notes.reportValue(text)
	}
	return nil
}

// call runs the function within its time limit. One that returns past the limit has returned; if it fails then, or does not end soon, the attempt
// took too long, unless it said itself that it must not run again (LQ-JOB-6, LQ-JOB-20).
func (r *runner) call(ctx context.Context, c *running, known *definition, args []any, kwargs map[string]any) (any, error) {
	type result struct {
		value any
		err   error
	}
	limit := c.job.ms("timeout", known.options.timeLimit)
	inner, cancel := context.WithCancelCause(context.WithValue(ctx, runningKey{}, c))
	defer cancel(context.Canceled)
	late := &TimeoutError{limit}
	ended := make(chan result, 1)
	go func() {
		found := result{err: errors.New("the function ended its goroutine: runtime.Goexit")}
		defer func() {
			if problem := recover(); problem != nil {
				found.err = panicError(problem)
			}
			ended <- found
		}()
		value, err := known.run(inner, c.job.format, args, kwargs)
		found = result{value, err}
	}()
	if limit <= 0 || limit == Forever {
		found := <-ended
		return found.value, found.err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case found := <-ended:
		return found.value, found.err
	case <-timer.C:
	}
	cancel(late)
	timer.Reset(unwindLimit)
	select {
	case found := <-ended:
		if said := verdictOf(found.err); found.err == nil || said {
			return found.value, found.err
		}
	case <-timer.C:
	}
	return nil, late
}

// verdictOf reports whether an error says itself what becomes of the job.
func verdictOf(err error) bool {
	var dead *leaseq.DeadLetterError
	var back *leaseq.GiveBackError
	return errors.As(err, &dead) || errors.As(err, &back)
}

// complete says how the worker completes the item: with the result, and with the next stage of a chain (LQ-JOB-8, LQ-JOB-16).
func (r *runner) complete(c *running, returned any) error {
	if c.item.Keeps() {
		result := map[string]any{
			"v": version, "result": returned, "started": c.begun.UnixMilli(), "ended": time.Now().UnixMilli(), "worker": r.worker,
		}
		if len(c.item.Data) <= maxCopyBytes {
			result["job"] = c.job.all
		}
		content, err := c.job.format.write(result)
		if err != nil {
			return fmt.Errorf("the result of %s: %w", c.job.text("function"), err)
		}
		c.item.CompleteWith(leaseq.Result(content))
	}
	if stages := c.job.stages(); len(stages) > 0 {
		next, queue, err := r.app.followUp(c.job.format, stages, returned)
		if err != nil {
			return err
		}
		c.item.CompleteWith(leaseq.Then(queue, next))
	}
	return nil
}

// followUp is the next stage of a chain, whose first argument is what this one returned (LQ-JOB-27).
func (a *App) followUp(f Format, stages []any, returned any) (leaseq.NewItem, *leaseq.Queue, error) {
	var none leaseq.NewItem
	stage, _ := stages[0].(map[string]any)
	id, ok := stage["id"].(string)
	if !ok {
		return none, nil, badEnvelope("the next stage of the chain has no id")
	}
	name, _ := stage["queue"].(string)
	queue, err := a.Queue(name)
	if err != nil {
		return none, nil, err
	}
	given, _ := stage["job"].(map[string]any)
	args, _, err := envelope{f, given}.arguments()
	if err != nil {
		return none, nil, err
	}
	add, delay, err := addOptionsOf(stage)
	if err != nil {
		return none, nil, err
	}
	job := map[string]any{}
	for name, value := range given {
		job[name] = value
	}
	now := time.Now()
	job["args"] = append([]any{returned}, args...)
	job["enqueued"] = now.UnixMilli()
	if delete(job, "due"); delay > 0 {
		job["due"] = now.Add(delay).UnixMilli()
	}
	if delete(job, "then"); len(stages) > 1 {
		job["then"] = stages[1:]
	}
	data, err := f.write(job)
	return leaseq.Item(id, data, add...), queue, err
}

// failed says what becomes of a job whose function failed. The script says whether it was the last attempt (LQ-JOB-21).
func (r *runner) failed(c *running, known *definition, err error) error {
	var dead *leaseq.DeadLetterError
	var asked *leaseq.GiveBackError
	var bad *BadEnvelopeError
	var late *TimeoutError
	final := known.options.final != nil && known.options.final(err) && !errors.As(err, &late)
	if errors.As(err, &dead) || errors.As(err, &bad) || final {
		return r.dead(err, c.begun)
	}
	v := &leaseq.VerdictError{Text: failureOf(err, r.worker, c.begun).text(), Cause: err}
	v.Delay = delayAfter(c.attempt, c.job, known.options)
	if errors.As(err, &asked) {
		delay, uncounted := asked.Asked()
		v.Uncounted = uncounted
		if delay != nil && *delay >= 0 && *delay <= maxDelay {
			v.Delay = *delay
		} else if uncounted {
			v.Delay = 0
		}
	}
	return v
}

// dead is the end of a job for which there is no other attempt.
func (r *runner) dead(err error, begun time.Time) error {
	return &leaseq.VerdictError{Dead: true, Text: failureOf(err, r.worker, begun).text(), Cause: err}
}

// judge says what becomes of an item whose handler failed outside of a job, or which cannot be completed.
func (r *runner) judge(item *leaseq.LeasedItem, err error) *leaseq.VerdictError {
	var said *leaseq.VerdictError
	if errors.As(err, &said) {
		return said
	}
	v := &leaseq.VerdictError{Text: failureOf(err, r.worker, time.Time{}).text(), Cause: err}
	v.Dead = errors.Is(err, leaseq.ErrTooLarge)
	if !v.Dead {
		v.Delay = leaseq.ExponentialBackoff(time.Second, 5*time.Minute)(item.Attempt)
	}
	return v
}

// refuse puts off a job of a function that this worker does not have: another worker may (LQ-JOB-42). The time of the first refusal is in the last
// error of the item, by the server's clock.
func (r *runner) refuse(ctx context.Context, item *leaseq.LeasedItem, name string) error {
	names := r.app.functionNames()
	listed := strings.Join(names[:min(len(names), maxNames)], ", ")
	if len(names) == 0 {
		listed = "none"
	}
	reason := fmt.Sprintf("this App has no function %q; it has %s", name, listed)
	refused := item.LeasedAt()
	if infos, err := item.Queue().Inspect(ctx, item.ID); err == nil {
		if last := readFailure(string(infos[0].Error)); last.kind == unknownFunction && !last.refused.IsZero() {
			refused = last.refused
		}
	}
	since := max(0, item.LeasedAt().Sub(refused))
	f := failure{kind: unknownFunction, message: reason, worker: r.worker}
	if since >= refusalLimit {
		return &leaseq.VerdictError{Dead: true, Text: f.text(), Cause: errors.New(reason)}
	}
	f.refused = refused
	r.mu.Lock()
	r.named[name] = true
	r.mu.Unlock()
	delay := min(max(since, minRefusalDelay), maxRefusalDelay)
	return &leaseq.VerdictError{Uncounted: true, Delay: delay, Text: f.text(), Cause: errors.New(reason)}
}

func sortedKeys(all map[string]any) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
