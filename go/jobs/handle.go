package jobs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	leaseq "leaseq.dev/go"
)

var (
	// ErrCancelled: the job was cancelled.
	ErrCancelled = errors.New("the job was cancelled")
	// ErrNotKept: there is no result of this job, and none will come: none is kept, its time is over, or there is no such job.
	ErrNotKept = errors.New("no result is kept of the job")
	// ErrNotEnded: the job has not ended within the time that a call waited.
	ErrNotEnded = errors.New("the job has not ended")
)

// FailedError: the job is dead, since it failed for the last time.
type FailedError struct {
	// Kind is the kind of failure in its worker, such as "ValueError"; empty if no worker wrote one.
	Kind string
	// Message is that of the failure.
	Message string
	// Traceback is as the worker had it.
	Traceback string
	// Attempt is the number of the last attempt, as the function saw it.
	Attempt int
}

// Error returns the text.
func (e *FailedError) Error() string {
	return fmt.Sprintf("the job failed after %d attempts: %s", e.Attempt, describe(e.Kind, e.Message))
}

func describe(kind, message string) string {
	if kind == "" {
		return message
	}
	return kind + ": " + message
}

// Handle is a job that was enqueued, perhaps by another program.
type Handle[Out any] struct {
	// ID is its id, and Queue the name of its queue.
	ID, Queue string
	// Added is false if a job of this id was in its queue already, if the result of a job with Unique is kept, if the slot of a job with Throttle
	// has its job, and of a handle of an earlier job.
	Added bool

	app *App
}

// Job returns a handle of a job by its id; queue is by default that of the App.
func (a *App) Job(id string, queue ...string) *Handle[any] {
	name := a.queue
	if len(queue) > 0 {
		name = queue[0]
	}
	return &Handle[any]{ID: id, Queue: name, app: a}
}

// As is a handle with another type of the result.
func As[Out any](h *Handle[any]) *Handle[Out] {
	return &Handle[Out]{ID: h.ID, Queue: h.Queue, Added: h.Added, app: h.app}
}

// Result returns what the function returned. It waits for it, by default until the context ends; leaseq.Wait sets another time. It returns a
// [FailedError], [ErrCancelled], [ErrNotKept] or [ErrNotEnded].
func (h *Handle[Out]) Result(ctx context.Context, options ...leaseq.WaitOption) (Out, error) {
	var out Out
	queue, err := h.app.Queue(h.Queue)
	if err != nil {
		return out, err
	}
	outcome, err := waitEnd(ctx, queue, h.ID, options)
	if err != nil {
		return out, err
	}
	if outcome.State != leaseq.OutcomeStateResult {
		return out, h.unsuccessful(ctx, queue, outcome)
	}
	result, err := readResult(outcome.Content)
	if err == nil && result.all["result"] != nil {
		err = result.format.into(result.all["result"], &out)
	}
	return out, err
}

// waitEnd waits while an outcome may come.
func waitEnd(ctx context.Context, queue *leaseq.Queue, id string, options []leaseq.WaitOption) (leaseq.Outcome, error) {
	found, err := queue.Outcomes(ctx, id)
	if err != nil {
		return leaseq.Outcome{}, err
	}
	if !waits(found[0]) || found[0].Keep == 0 {
		return found[0], nil
	}
	outcome, err := queue.WaitOutcome(ctx, id, options...)
	if err == nil && !outcome.Created.IsZero() && !outcome.Created.Equal(found[0].Created) {
		// another item of this id by now (LQ-BLOCK-13)
		return leaseq.Outcome{State: leaseq.OutcomeStateAbsent}, nil
	}
	return outcome, err
}

// waits reports whether the job may yet end.
func waits(o leaseq.Outcome) bool {
	return o.State == leaseq.OutcomeStateReady || o.State == leaseq.OutcomeStateDelayed || o.State == leaseq.OutcomeStateLeased
}

func (h *Handle[Out]) unsuccessful(ctx context.Context, queue *leaseq.Queue, outcome leaseq.Outcome) error {
	switch {
	case outcome.State == leaseq.OutcomeStateFailure || outcome.State == leaseq.OutcomeStateDead:
		text := string(outcome.Content)
		if outcome.State == leaseq.OutcomeStateDead {
			infos, err := queue.Inspect(ctx, h.ID)
			if err != nil {
				return err
			}
			text = string(infos[0].Error)
		}
		f := readFailure(text)
		data, err := h.app.data(ctx, queue, h.ID)
		if err != nil {
			return err
		}
		attempt := outcome.Attempt
		if job, err := readEnvelope(data); err == nil {
			attempt = lastAttempt(outcome, job)
		}
		return &FailedError{f.kind, f.message, f.traceback, attempt}
	case waits(outcome) && outcome.Keep == 0:
		return ErrNotKept
	case waits(outcome):
		return ErrNotEnded
	}
	_, cancelled, err := h.app.notes(ctx, queue, h.ID)
	if err != nil {
		return err
	}
	if cancelled != nil {
		return ErrCancelled
	}
	return ErrNotKept
}

// Cancel removes the job from its queue. It returns false if it has ended, or there is none. A worker that runs it finds out at its next heartbeat.
func (h *Handle[Out]) Cancel(ctx context.Context) (bool, error) {
	queue, err := h.app.Queue(h.Queue)
	if err != nil {
		return false, err
	}
	found, err := queue.Outcomes(ctx, h.ID)
	if err != nil || !waits(found[0]) {
		return false, err
	}
	items := queue.Key("items")
	data, err := h.app.client.Command(ctx, items, "HGET", items, h.ID)
	if err != nil {
		return false, err
	}
	note := map[string]any{"v": version, "cancelled": time.Now().UnixMilli()}
	if text, err := data.ToString(); err == nil && len(text) <= maxCopyBytes {
		note["job"] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	text, err := json.Marshal(note)
	if err != nil {
		return false, err
	}
	key := queue.Key("cancelled:" + h.ID)
	replies, err := h.app.client.Transaction(ctx, key, queue.RemoveCommand(h.ID),
		[]string{"SET", key, string(text), "PX", fmt.Sprint(day.Milliseconds())})
	if err != nil {
		return false, err
	}
	state, err := replies[0].ToString()
	if err != nil || state == string(leaseq.StateAbsent) {
		// it ended meanwhile, or could not be removed
		_, _ = h.app.client.Command(ctx, key, "DEL", key)
		return false, err
	}
	h.wake(ctx, queue)
	return true, nil
}

// noOutcome is an outcome that does not count, since its id is not in `kept`: version, kind, and zeros (02.5).
var noOutcome = string([]byte{1, 2}) + string(make([]byte, 28)) + "cancelled"

// wake wakes clients that wait for the outcome of a job that was cancelled. Without this they look again at the cap.
func (h *Handle[Out]) wake(ctx context.Context, queue *leaseq.Queue) {
	woken := queue.Key("woken:" + h.ID)
	_, _ = h.app.client.Transaction(ctx, woken,
		[]string{"RPUSH", woken, noOutcome},
		[]string{"PEXPIRE", woken, "4000"},
		// not in place of an outcome: the id may be in use again
		[]string{"RENAMENX", woken, queue.Key("result:" + h.ID)},
		[]string{"DEL", woken})
}

// Promote lets a job that is delayed, until its time or its next attempt, run now. It returns false if it is not delayed.
func (h *Handle[Out]) Promote(ctx context.Context) (bool, error) {
	queue, err := h.app.Queue(h.Queue)
	if err != nil {
		return false, err
	}
	found, err := queue.Promote(ctx, h.ID)
	return err == nil && found[0], err
}

// Revive makes a dead job ready again, with all its attempts. It returns false if it is not dead.
func (h *Handle[Out]) Revive(ctx context.Context) (bool, error) {
	queue, err := h.app.Queue(h.Queue)
	if err != nil {
		return false, err
	}
	found, err := queue.Revive(ctx, h.ID)
	return err == nil && found[0], err
}
