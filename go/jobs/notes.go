package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	leaseq "leaseq.dev/go"
)

const (
	// noteInterval is how often a note is written at most. A job that is over by then has none.
	noteInterval = 250 * time.Millisecond
	noteLife     = 10 * time.Minute
)

// noteWriter writes the note about a running job (LQ-JOB-10), for those that look at it. Its errors do not concern the work.
type noteWriter struct {
	app  *App
	item *leaseq.LeasedItem
	key  string

	mu      sync.Mutex
	note    map[string]any
	changed bool
	written int // how often
	over    bool
	timer   *time.Timer
	due     time.Time
}

func (a *App) follow(item *leaseq.LeasedItem, worker string, begun time.Time) *noteWriter {
	w := &noteWriter{
		app: a, item: item, key: item.Queue().Key("job:" + item.ID), changed: true,
		note: map[string]any{"v": version, "token": item.Token, "worker": worker, "started": begun.UnixMilli()},
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(noteInterval, w.write)
	return w
}

func (w *noteWriter) report(done, total float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note["done"] = done
	delete(w.note, "progress")
	if delete(w.note, "total"); total != 0 {
		w.note["total"] = total
	}
	w.changed = true
}

func (w *noteWriter) reportValue(value json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.note, "done")
	delete(w.note, "total")
	w.note["progress"] = value
	w.changed = true
}

func (w *noteWriter) write() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.timer.Reset(noteInterval)
	if !w.changed && time.Now().Before(w.due) {
		return
	}
	w.note["n"] = w.written
	text, err := json.Marshal(w.note)
	if err != nil {
		return
	}
	w.send("SET", w.key, string(text), "PX", itoa(noteLife))
	w.changed, w.due = false, time.Now().Add(noteLife/3)
	w.written++
}

// end deletes the note, if one was written.
func (w *noteWriter) end(failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	if w.written > 0 || failed {
		w.send("DEL", w.key)
	}
}

// send runs a command on the note, and wakes clients that watch the job (LQ-JOB-63).
func (w *noteWriter) send(command ...string) {
	changed := changedKey(w.item.Queue(), w.item.ID, w.item.Attempt, w.written)
	w.app.client.Background(func(ctx context.Context) {
		_, _ = w.app.client.Transaction(ctx, w.key, command, []string{"RPUSH", changed, "1"}, []string{"PEXPIRE", changed, "4000"})
	})
}

// changedKey is a list that has an element for 4 s once a job has changed: number n of the changes of an attempt, from 0.
func changedKey(queue *leaseq.Queue, id string, attempt, n int) string {
	return queue.Key(fmt.Sprintf("changed:%s:%d.%d", id, attempt, n))
}

func itoa(d time.Duration) string {
	text, _ := json.Marshal(d.Milliseconds())
	return string(text)
}

func panicError(problem any) error {
	return &leaseq.PanicError{Value: problem, Stack: string(debug.Stack())}
}
