package leaseq

import (
	"context"
	"sync"
)

// completer completes the items of a worker: on each queue in one call at a time, for all handlers that end meanwhile.
type completer struct {
	mu    sync.Mutex
	calls map[*Queue]*gatherer[Completion, bool]
}

func newCompleter() *completer { return &completer{calls: map[*Queue]*gatherer[Completion, bool]{}} }

// complete completes an item and returns as LeasedItem.Complete does.
func (c *completer) complete(item *LeasedItem, options []CompleteOption) (bool, error) {
	entry := item.Completion(options...)
	if len(entry.FollowUps) > 0 { // an entry with follow-ups is rare, and goes in a separate call
		answer, err := first(item.queue.handOffAll(context.Background(), []Completion{entry}, nil))
		return answer.Completed, err
	}
	return c.of(item.queue).do(context.Background(), entry)
}

// of is the gatherer of a queue.
func (c *completer) of(queue *Queue) *gatherer[Completion, bool] {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.calls[queue]
	if found == nil {
		call := func(entries []Completion) ([]bool, error) {
			return queue.completeAll(context.Background(), entries, nil)
		}
		found = &gatherer[Completion, bool]{atOnce: 1, size: func(c Completion) int { return len(c.Result) }, call: call}
		c.calls[queue] = found
	}
	return found
}
