package leaseq

import (
	"context"
	"runtime"
	"sync"
)

// maxResultBytes is how many bytes of results one call has at most, unless one result alone is longer.
const maxResultBytes = 4 << 20

// completer completes the items of a worker. An item whose handler ends while a call of its queue is under way is completed by the next call, so
// that many handlers cost few calls, and a single one does not wait.
type completer struct {
	mu    sync.Mutex
	lines map[*Queue]*completionLine
}

// completionLine are the items of one queue that wait for their call.
type completionLine struct {
	waiting []*completing
	isBusy  bool
}

// completing is an item that is being completed.
type completing struct {
	entry     Completion
	completed bool
	err       error
	done      chan struct{}
}

func newCompleter() *completer { return &completer{lines: map[*Queue]*completionLine{}} }

// complete completes an item and returns as LeasedItem.Complete does.
func (c *completer) complete(item *LeasedItem, options []CompleteOption) (bool, error) {
	entry := item.Completion(options...)
	if len(entry.FollowUps) > 0 { // an entry with follow-ups is rare, and goes in a separate call
		answer, err := first(item.queue.handOffAll(context.Background(), []Completion{entry}, nil))
		return answer.Completed, err
	}
	one := &completing{entry: entry, done: make(chan struct{})}
	c.mu.Lock()
	line := c.lines[item.queue]
	if line == nil {
		line = &completionLine{}
		c.lines[item.queue] = line
	}
	line.waiting = append(line.waiting, one)
	if !line.isBusy {
		line.isBusy = true
		go c.serve(item.queue, line)
	}
	c.mu.Unlock()
	<-one.done
	return one.completed, one.err
}

// serve makes calls until nothing waits.
func (c *completer) serve(queue *Queue, line *completionLine) {
	runtime.Gosched() // handlers that end at this moment go along
	for {
		c.mu.Lock()
		group := line.next()
		if len(group) == 0 {
			line.isBusy, line.waiting = false, nil // what was completed is not held on to
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		completeGroup(queue, group)
	}
}

// next takes what one call takes.
func (l *completionLine) next() []*completing {
	count, total := 0, 0
	for count < min(len(l.waiting), maxEntries) {
		total += len(l.waiting[count].entry.Result)
		if count > 0 && total > maxResultBytes {
			break
		}
		count++
	}
	group := l.waiting[:count:count]
	l.waiting = l.waiting[count:]
	return group
}

// completeGroup completes a group. If the call fails, each is completed alone, so that the error reaches the item that caused it. If the server is
// away, all get the error.
func completeGroup(queue *Queue, group []*completing) {
	entries := make([]Completion, len(group))
	for i, one := range group {
		entries[i] = one.entry
	}
	answers, err := queue.completeAll(context.Background(), entries, nil)
	if err != nil && len(group) > 1 && !isServerAway(err) {
		for i := range group {
			completeGroup(queue, group[i:i+1])
		}
		return
	}
	for i, one := range group {
		one.err = err
		one.completed = err == nil && answers[i]
		close(one.done)
	}
}
