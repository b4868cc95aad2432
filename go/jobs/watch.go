package jobs

import (
	"context"
	"iter"
	"time"

	leaseq "leaseq.dev/go"
)

const (
	// watchPause is how long a watch waits that saw nothing new behind a wake-up, or has no connections to block on.
	watchPause = 250 * time.Millisecond
	// staleAfter is when a look is too old to wait behind it: the next change can be past, and its list with it, which lives for 4 s.
	staleAfter = 2 * time.Second
)

// Watch yields what Info returns: at once, and whenever the status, the attempt or the progress changes. It ends behind the Info of a job that has
// ended: Succeeded, Failed, Cancelled or Unknown. An error ends it too, such as that of the context.
//
// It waits without polling. It sees other changes within 4 s: the end of a delay, or the death of a worker. It takes two connections while
// it waits; from the 17th on that a client has at a time, a watch takes none and looks four times a second.
//
//	for info, err := range handle.Watch(ctx) {
func (h *Handle[Out]) Watch(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		queue, err := h.app.Queue(h.Queue)
		if err == nil {
			err = h.app.watch(ctx, queue, h.ID, func(info Info) bool { return yield(info, nil) })
		}
		if err != nil {
			yield(Info{}, err)
		}
	}
}

// watch yields until the job has ended, or yield returns false.
func (a *App) watch(ctx context.Context, queue *leaseq.Queue, id string, yield func(Info) bool) error {
	var seen view
	var next change
	waited := false
	for {
		begun := time.Now()
		found, err := a.snapshot(ctx, queue, id)
		if err != nil {
			return err
		}
		info := found.info()
		isNew := viewOf(info) != seen
		if isNew && !yield(info) || info.Status.isEnd() {
			return nil
		}
		seen, next = viewOf(info), found.next(next)
		if found.isTorn() || time.Since(begun) > staleAfter {
			continue
		}
		if waited && !isNew {
			pause(ctx)
		}
		waited, err = queue.AwaitChange(ctx, id, changedKey(queue, id, next.attempt, next.n))
		if err != nil {
			return err
		}
		if !waited {
			pause(ctx)
		}
	}
}

// pause ends with the context; the next call returns its error.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(watchPause):
	}
}

func (s Status) isEnd() bool {
	return s == Succeeded || s == Failed || s == Cancelled || s == Unknown
}

// view is what a watch compares.
type view struct {
	status      Status
	attempt     int
	hasProgress bool
	progress    Progress
	report      string
}

func viewOf(info Info) view {
	found := view{status: info.Status, attempt: info.Attempt, report: string(info.Report)}
	if info.Progress != nil {
		found.hasProgress, found.progress = true, *info.Progress
	}
	return found
}

// change is what the worker of a lease publishes (LQ-JOB-63). The token is 0 if the lease is still to come.
type change struct {
	token      int64
	attempt, n int
}

// next returns the change that will be published next, or was since. A note that is gone does not set the number back: the attempt has ended,
// and what was published then lets the watch look until the item says so too.
func (s *snapshot) next(last change) change {
	if s.item.State != leaseq.StateLeased {
		return change{attempt: s.item.Attempt + 1}
	}
	next := change{token: s.item.Token, attempt: s.item.Attempt}
	if note := s.note(); note != nil {
		next.n = note.N + 1
	} else if last.token == next.token {
		next.n = last.n
	}
	return next
}

// isTorn reports whether the job changed between the calls that read it.
func (s *snapshot) isTorn() bool {
	return (s.outcome.State == leaseq.OutcomeStateLeased) != (s.item.State == leaseq.StateLeased)
}
