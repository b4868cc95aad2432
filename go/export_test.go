package leaseq

// AddsAtOnce is how many calls for single adds are under way at a time.
const AddsAtOnce = addsAtOnce

// AddsInHand is how many calls for single adds are under way, and how many adds wait for the next.
func (q *Queue) AddsInHand() (calls, waiting int) {
	q.adds.mu.Lock()
	defer q.adds.mu.Unlock()
	return q.adds.calls, len(q.adds.waiting)
}
