package jobs

import (
	"context"
	"encoding/json"
	"time"

	leaseq "leaseq.dev/go"
)

// Status is that of a job.
type Status string

// The statuses of a job. Retrying: it waits for another attempt. Unknown: there is none, or nothing is kept of it.
const (
	Delayed   Status = "delayed"
	Ready     Status = "ready"
	Running   Status = "running"
	Retrying  Status = "retrying"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Unknown   Status = "unknown"
)

// Progress is how much of a running job is done, and of how much; Total is 0 if that is not known.
type Progress struct {
	Done, Total float64
	HasTotal    bool
}

// Info is a job as it is now.
type Info struct {
	// Status is that of the job.
	Status Status
	// Function is the name of the function; empty if the job cannot be read.
	Function string
	// Attempt is the number of its last attempt, 0 before the first.
	Attempt int
	// Enqueued and Ended are by the server's clock, Started by the worker's; zero if they are not known.
	Enqueued, Started, Ended time.Time
	// Worker is the id of the worker that runs it, or ran it last.
	Worker string
	// Error is the last failure, such as "ValueError: no such order", and Traceback what the worker had of it.
	Error, Traceback string
	// Result is what the function returned, as JSON or MessagePack gives it; nil before.
	Result any
	// Progress is what the job reported, nil if it did not.
	Progress *Progress
	// Report is the JSON that the job reported in place of numbers, nil if it did not.
	Report json.RawMessage
}

// note is one of those beside a job.
type note struct {
	Token   json.Number  `json:"token"`
	N       int          `json:"n"`
	Worker  string       `json:"worker"`
	Started int64        `json:"started"`
	Done    *json.Number `json:"done"`
	Total   *json.Number `json:"total"`
	// Progress is any value.
	Progress json.RawMessage `json:"progress"`
	At       int64           `json:"cancelled"`
	Job      []byte          `json:"job"`
	Version  *int            `json:"v"`
}

// notes are those of a running job, and of a cancelled one; nil if there is none that can be read.
func (a *App) notes(ctx context.Context, queue *leaseq.Queue, id string) (running, cancelled *note, err error) {
	keys := []string{queue.Key("job:" + id), queue.Key("cancelled:" + id)}
	reply, err := a.client.Command(ctx, keys[0], "MGET", keys[0], keys[1])
	if err != nil {
		return nil, nil, err
	}
	values, err := reply.ToArray()
	if err != nil || len(values) != 2 {
		return nil, nil, err
	}
	var found [2]*note
	for i, each := range values {
		text, err := each.ToString()
		var read note
		if err != nil || json.Unmarshal([]byte(text), &read) != nil || read.Version != nil && *read.Version != version {
			continue
		}
		if i == 0 && read.Token != "" || i == 1 && read.At != 0 {
			found[i] = &read
		}
	}
	return found[0], found[1], nil
}

// snapshot is all that the server has of a job.
type snapshot struct {
	outcome            leaseq.Outcome
	item               leaseq.ItemInfo
	running, cancelled *note
	// data are those of the item, also of one that was cancelled.
	data []byte
}

func (a *App) snapshot(ctx context.Context, queue *leaseq.Queue, id string) (*snapshot, error) {
	outcomes, err := queue.Outcomes(ctx, id)
	if err != nil {
		return nil, err
	}
	items, err := queue.Inspect(ctx, id)
	if err != nil {
		return nil, err
	}
	running, cancelled, err := a.notes(ctx, queue, id)
	if err != nil {
		return nil, err
	}
	data, err := a.data(ctx, queue, id)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 && cancelled != nil {
		data = cancelled.Job
	}
	return &snapshot{outcomes[0], items[0], running, cancelled, data}, nil
}

// data are those of the item of a job; empty if it is gone.
func (a *App) data(ctx context.Context, queue *leaseq.Queue, id string) ([]byte, error) {
	key := queue.Key("items")
	reply, err := a.client.Command(ctx, key, "HGET", key, id)
	if err != nil {
		return nil, err
	}
	text, _ := reply.ToString()
	return []byte(text), nil
}

// lastAttempt is the number of the last attempt as people see it: the envelope has that of the first. 0 if there was none.
func lastAttempt(outcome leaseq.Outcome, job envelope) int {
	if outcome.Attempt == 0 {
		return 0
	}
	return outcome.Attempt + int(job.number("attempt", 1)) - 1
}

// note is that of the current attempt, nil without one (LQ-JOB-24).
func (s *snapshot) note() *note {
	if s.running == nil || s.item.State != leaseq.StateLeased {
		return nil
	}
	if token, isNumber := integer(s.running.Token); !isNumber || token != s.item.Token {
		return nil
	}
	return s.running
}

// Info returns all that is known of the job.
func (h *Handle[Out]) Info(ctx context.Context) (Info, error) {
	queue, err := h.app.Queue(h.Queue)
	if err != nil {
		return Info{}, err
	}
	found, err := h.app.snapshot(ctx, queue, h.ID)
	if err != nil {
		return Info{}, err
	}
	return found.info(), nil
}

func (s *snapshot) info() Info {
	outcome, cancelled := s.outcome, s.cancelled
	info := Info{Status: statusOf(outcome, cancelled != nil), Attempt: outcome.Attempt, Enqueued: outcome.Created, Ended: outcome.Ended}
	job, err := readEnvelope(s.data)
	if outcome.State == leaseq.OutcomeStateResult {
		if result, failure := readResult(outcome.Content); failure == nil {
			info.Result, info.Worker = result.all["result"], result.text("worker")
			info.Started = timeOf(result.number("started", 0))
			if copied, ok := result.all["job"].(map[string]any); ok && err != nil {
				job, err = envelope{result.format, copied}, nil
			}
		}
	} else if text := errorOf(outcome, s.item); text != "" {
		f := readFailure(text)
		info.Error, info.Traceback, info.Worker, info.Started = describe(f.kind, f.message), f.traceback, f.worker, f.started
	}
	if err == nil {
		info.Function = job.text("function")
		info.Attempt = lastAttempt(outcome, job)
	}
	if running := s.note(); running != nil {
		info.Worker, info.Started, info.Report = running.Worker, timeOf(running.Started), running.Progress
		if running.Done != nil {
			info.Progress = &Progress{HasTotal: running.Total != nil}
			info.Progress.Done, _ = running.Done.Float64()
			if running.Total != nil {
				info.Progress.Total, _ = running.Total.Float64()
			}
		}
	}
	if cancelled != nil && info.Status == Cancelled {
		info.Ended = timeOf(cancelled.At)
	}
	return info
}

func errorOf(outcome leaseq.Outcome, item leaseq.ItemInfo) string {
	if outcome.State == leaseq.OutcomeStateFailure {
		return string(outcome.Content)
	}
	return string(item.Error)
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// statusOf is the status by what outcome answers (spec/jobs.md, Status).
func statusOf(outcome leaseq.Outcome, cancelled bool) Status {
	switch outcome.State {
	case leaseq.OutcomeStateReady, leaseq.OutcomeStateDelayed:
		if outcome.Attempt > 0 {
			return Retrying
		}
		return Status(outcome.State)
	case leaseq.OutcomeStateLeased:
		return Running
	case leaseq.OutcomeStateResult:
		return Succeeded
	case leaseq.OutcomeStateFailure, leaseq.OutcomeStateDead:
		return Failed
	case leaseq.OutcomeStateAbsent:
		if cancelled {
			return Cancelled
		}
	}
	return Unknown
}

// Status returns the status of the job.
func (h *Handle[Out]) Status(ctx context.Context) (Status, error) {
	info, err := h.Info(ctx)
	return info.Status, err
}
