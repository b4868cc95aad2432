package leaseq

import "time"

// AddsAtOnce is how many calls for single adds are under way at a time.
const AddsAtOnce = addsAtOnce

// AddsInHand is how many calls for single adds are under way, and how many adds wait for the next.
func (q *Queue) AddsInHand() (calls, waiting int) {
	q.adds.mu.Lock()
	defer q.adds.mu.Unlock()
	return q.adds.calls, len(q.adds.waiting)
}

// SetAddLimit sets how long an add waits at most for a call that it goes along in.
func (q *Queue) SetAddLimit(limit time.Duration) {
	q.adds.mu.Lock()
	defer q.adds.mu.Unlock()
	q.adds.limit = limit
}
