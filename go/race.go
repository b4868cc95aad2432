package leaseq

import (
	"context"
	"sync"
	"time"
)

// race lets each target block on a separate connection, which may be open already. The first that finds something ends the others.
func race[T any](ctx context.Context, p *pool, targets []*target[T], checks []checked[T], conns []*router, timeout time.Duration) (T, bool, error) {
	decided, decide := context.WithCancelCause(ctx)
	defer decide(nil)
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		won     bool
		found   bool
		winner  T
		failure error
	)
	accept := func() bool {
		mu.Lock()
		defer mu.Unlock()
		first := !won
		won = true
		decide(context.Canceled)
		return first
	}
	for i, each := range targets {
		all.Go(func() {
			wait := &waiting[T]{target: each, pool: p, conn: conns[i], accept: accept}
			answer, ok, err := wait.run(decided, timeout, &checks[i])
			mu.Lock()
			defer mu.Unlock()
			if ok {
				winner, found = answer, true
			} else if err != nil && decided.Err() == nil {
				failure = err // errors behind the decision are its effect, not its cause
				decide(context.Canceled)
			}
		})
	}
	all.Wait()
	var none T
	switch {
	case found:
		return winner, true, nil
	case ctx.Err() != nil:
		return none, false, aborted(ctx)
	}
	return none, false, failure
}
