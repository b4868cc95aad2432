package leaseq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	leaseq "leaseq.dev/go"
)

// crowd is a number of callers that add at once on a server that stands still. The first fill the calls that can be under way, and the others wait
// for the next.
type crowd struct {
	server *spawned
	queue  *leaseq.Queue
	ended  []chan addEnd
	before int
}

type addEnd struct {
	added leaseq.Added
	err   error
}

// crowdOf stops the server and lets callers fill the calls that can be under way.
func crowdOf(t *testing.T, server *spawned, queue *leaseq.Queue) *crowd {
	t.Helper()
	if _, err := queue.Stats(t.Context()); err != nil { // connected
		t.Fatal(err)
	}
	c := &crowd{server: server, queue: queue, before: server.evals(t)}
	pause(t, server)
	for at := range leaseq.AddsAtOnce {
		c.add(t, t.Context(), "first-"+strconv.Itoa(at), nil)
	}
	return c
}

// add lets one more caller add, and returns once its item is sent or waits.
func (c *crowd) add(t *testing.T, ctx context.Context, id string, data []byte) {
	t.Helper()
	ended := make(chan addEnd, 1)
	callers := len(c.ended) + 1
	go func() {
		added, err := c.queue.Add(ctx, id, data)
		ended <- addEnd{added, err}
	}()
	c.ended = append(c.ended, ended)
	eventually(t, id+" is sent or waits", func() bool {
		calls, waiting := c.queue.AddsInHand()
		return calls+waiting == callers
	})
}

// end is what became of one caller.
func (c *crowd) end(t *testing.T, at int) (leaseq.Added, error) {
	t.Helper()
	select {
	case found := <-c.ended[at]:
		return found.added, found.err
	case <-time.After(20 * time.Second):
		t.Fatal("caller", at, "still waits")
		return 0, nil
	}
}

func (c *crowd) resume() { _ = c.server.process.Process.Signal(syscall.SIGCONT) }

// isAdded fails unless the caller's item was added.
func (c *crowd) isAdded(t *testing.T, at int) {
	t.Helper()
	if added, err := c.end(t, at); err != nil || !added.OK() {
		t.Fatal(at, added, err)
	}
}

// calls is how many calls of scripts the callers made.
func (c *crowd) calls(t *testing.T) int { return c.server.evals(t) - c.before }

func TestCallersAtOnceShareCalls(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	add(t, queue, "known to the server")
	c := crowdOf(t, server, queue)
	for at := range 300 {
		c.add(t, t.Context(), strconv.Itoa(at), []byte(strconv.Itoa(at)))
	}
	c.resume()
	for at := range c.ended {
		c.isAdded(t, at)
	}
	if calls := c.calls(t); calls != leaseq.AddsAtOnce+2 { // 300 entries are two calls
		t.Error(calls, "calls")
	}
	found, err := queue.Inspect(t.Context(), "0", "299")
	if err != nil || found[0].Size != 1 || found[1].Size != 3 {
		t.Fatal(found, err)
	}
}

func TestLongDataIsSharedByFew(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	add(t, queue, "known to the server")
	c := crowdOf(t, server, queue)
	data := []byte(strings.Repeat("x", 1<<20))
	for at := range 6 { // 4 MiB are one call
		c.add(t, t.Context(), strconv.Itoa(at), data)
	}
	c.resume()
	for at := range c.ended {
		c.isAdded(t, at)
	}
	if calls := c.calls(t); calls != leaseq.AddsAtOnce+2 {
		t.Error(calls, "calls")
	}
}

func TestARefusedItemOfASharedCall(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	add(t, queue, "known to the server")
	c := crowdOf(t, server, queue)
	wrong := len(c.ended) + 5
	for at := range 64 {
		id := strconv.Itoa(at)
		if len(c.ended) == wrong {
			id = ""
		}
		c.add(t, t.Context(), id, nil)
	}
	c.resume()
	for at := range c.ended {
		if at != wrong {
			c.isAdded(t, at)
		} else if _, err := c.end(t, at); !errors.Is(err, leaseq.ErrBadID) || !leaseq.IsDefinite(err) {
			t.Fatal(err)
		}
	}
	if calls := c.calls(t); calls != leaseq.AddsAtOnce+1+2*6 { // 64 are halved six times
		t.Error(calls, "calls")
	}
}

func TestTheSameIDInASharedCallIsAddedOnce(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	c := crowdOf(t, server, queue)
	first := len(c.ended)
	c.add(t, t.Context(), "same", []byte("one"))
	c.add(t, t.Context(), "same", []byte("other"))
	c.resume()
	c.isAdded(t, first)
	if added, err := c.end(t, first+1); err != nil || added.OK() || added.NoRoom() {
		t.Fatal(added, err)
	}
}

func TestASharedCallAndAFullQueue(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	most := leaseq.AddsAtOnce + 1
	if err := queue.Configure(t.Context(), leaseq.ConfigureOptions{MaxItems: &most}); err != nil {
		t.Fatal(err)
	}
	c := crowdOf(t, server, queue)
	last := len(c.ended)
	c.add(t, t.Context(), "fits", nil)
	c.add(t, t.Context(), "does not", nil)
	c.resume()
	c.isAdded(t, last)
	var full *leaseq.FullError
	if _, err := c.end(t, last+1); !errors.As(err, &full) || len(full.Answers) != 1 || !full.Answers[0].NoRoom() {
		t.Fatal(err)
	}
}

func TestTheEndOfAContextTakesBackAnAddThatWaits(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	add(t, queue, "known to the server")
	c := crowdOf(t, server, queue)
	waits, end := context.WithCancel(t.Context())
	last := len(c.ended)
	c.add(t, waits, "taken back", nil)
	c.add(t, t.Context(), "stays", nil)
	end()
	if _, err := c.end(t, last); !errors.Is(err, leaseq.ErrAborted) || !leaseq.IsDefinite(err) {
		t.Fatal(err)
	}
	if _, err := queue.Add(waits, "late", nil); !errors.Is(err, leaseq.ErrAborted) || !leaseq.IsDefinite(err) {
		t.Fatal(err)
	}
	c.resume()
	c.isAdded(t, last+1)
	if state := stateOf(t, queue, "taken back"); state != leaseq.StateAbsent {
		t.Fatal(state)
	}
}

func TestTheEndOfAContextLeavesAnAddThatWasSent(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	add(t, queue, "known to the server")
	pause(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := queue.Add(ctx, "a", nil); !errors.Is(err, leaseq.ErrAborted) || leaseq.IsDefinite(err) {
		t.Fatal(err)
	}
	_ = server.process.Process.Signal(syscall.SIGCONT)
	eventually(t, "it is added", func() bool { return stateOf(t, queue, "a") == leaseq.StateReady })
}

func TestAServerThatDiesUnderSharedCalls(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	c := crowdOf(t, server, queue)
	for at := range 20 {
		c.add(t, t.Context(), strconv.Itoa(at), nil)
	}
	_ = server.process.Process.Kill()
	for at := range c.ended {
		if _, err := c.end(t, at); !errors.Is(err, leaseq.ErrConnection) {
			t.Fatal(at, err)
		}
	}
}

func TestAnAddThatWaitsLongerThanAReplyMayTakeIsNotSent(t *testing.T) {
	server := spawn(t)
	queue := queueOf(t, server.client(t))
	add(t, queue, "known to the server")
	c := crowdOf(t, server, queue)
	last := len(c.ended)
	c.add(t, t.Context(), "late", nil)
	queue.SetAddLimit(time.Nanosecond)
	c.resume()
	if _, err := c.end(t, last); !errors.Is(err, leaseq.ErrConnection) || !leaseq.IsDefinite(err) {
		t.Fatal(err)
	}
	if state := stateOf(t, queue, "late"); state != leaseq.StateAbsent {
		t.Fatal(state)
	}
}

func TestSharedCallsThatAreNotDurable(t *testing.T) {
	server := spawn(t)
	plain := queueOf(t, server.client(t))
	add(t, plain, "known to the server")
	queue := durable(t, plain, leaseq.Replicas(1, 50*time.Millisecond))
	c := crowdOf(t, server, queue)
	for at := range 2 {
		c.add(t, t.Context(), strconv.Itoa(at), nil)
	}
	c.resume()
	for at := range c.ended {
		added, err := c.end(t, at)
		notDurable(t, err, 0, 1)
		if !added.OK() {
			t.Fatal(at, added)
		}
	}
}
