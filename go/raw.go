package leaseq

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// Command sends a command on a key to the node that has it. It is for what a program stores beside its queues, as jobs do.
func (c *Client) Command(ctx context.Context, key string, words ...string) (rueidis.RedisMessage, error) {
	return during(ctx, func() (rueidis.RedisMessage, error) { return c.pool.shared.send(key, c.pool.limit, words...) })
}

// Transaction runs commands on keys of one slot in one transaction and returns the reply to each; a command that failed has its error there.
func (c *Client) Transaction(ctx context.Context, key string, commands ...[]string) ([]rueidis.RedisMessage, error) {
	return during(ctx, func() ([]rueidis.RedisMessage, error) {
		return c.pool.shared.transaction(key, c.pool.limit, commands...)
	})
}

// Key returns the name of a key of the queue, such as that of "ready".
func (q *Queue) Key(part string) string { return q.keys.key(part) }

// RemoveCommand returns the words of a command that removes one item, for a transaction; its reply is the state that the item was in.
func (q *Queue) RemoveCommand(id string) []string {
	return queueCall(removeScript, q.keys, encodeRemoveArguments([]string{id})).commands("EVAL", removeScript.source, false)[0]
}

// AwaitChange waits until the item has an outcome or the list of this key has an element, for 4 s at most. It returns false at once if 16 such
// calls of the client wait.
func (q *Queue) AwaitChange(ctx context.Context, id, list string) (bool, error) {
	select {
	case q.pool.changeWaits <- struct{}{}:
	default:
		return false, nil
	}
	defer func() { <-q.pool.changeWaits }()
	targets := []*target[struct{}]{wakeTarget(q.pool, q.keys, id, list), wakeTarget(q.pool, q.keys, id, q.keys.resultKey(id))}
	_, _, err := detach(ctx, q.pool, func(merged context.Context) (struct{}, bool, error) {
		look := checked[struct{}]{due: waitCap, sent: time.Now()}
		return race(merged, q.pool, targets, []checked[struct{}]{look, look}, make([]*router, len(targets)), Forever)
	})
	return true, err
}

// Background runs a task that Close of the client waits for, for a limited time.
func (c *Client) Background(task func(context.Context)) {
	c.pool.tasks.run(func() { task(context.Background()) })
}

// LeasedAt returns when it was leased, by the server's clock.
func (i *LeasedItem) LeasedAt() time.Time { return i.leasedAt }

// Keeps reports whether its outcome is kept.
func (i *LeasedItem) Keeps() bool { return i.keeps }

// Judge says what becomes of an item whose handler failed or which cannot be completed, in place of Attempts and Backoff.
func Judge(judge func(item *LeasedItem, err error) *VerdictError) WorkerOption {
	return func(s *workerSettings) { s.judge = judge }
}
