package leaseq

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const maxServers = 1000

// Durability is a wait behind a call: [Replicas] or [Disk]. See [Queue.Durable].
type Durability struct {
	disk     bool
	replicas int
	timeout  time.Duration
}

// Replicas waits until that many replicas (1 to 1000) have the call in memory, at most for a time, at least 1 ms.
func Replicas(count int, timeout time.Duration) Durability {
	return Durability{replicas: count, timeout: timeout}
}

// Disk waits until the primary has the call on disk, and that many replicas (0 to 1000) on theirs. The server is Redis or Valkey 7.2 or later, with
// an append-only file.
func Disk(timeout time.Duration, replicas int) Durability {
	return Durability{disk: true, replicas: replicas, timeout: timeout}
}

// NotDurableError says that a call was done, and that fewer servers have it than [Queue.Durable] asks for. The call returns its answers with it,
// those of the calls before it that a long list was split into included. Nothing is sent again (LQ-CLIENT-1), and later entries were not sent.
type NotDurableError struct {
	// Wanted is the number of servers that was asked for: replicas, or disks.
	Wanted int
	// Reached is how many have the call, -1 if that is unknown: the connection broke, or the server refused to wait.
	Reached int
	reason  string
}

// Error returns the text.
func (e *NotDurableError) Error() string {
	return "leaseq: the call was done, but it is not durable: " + e.reason
}

// Unwrap returns the error that ErrNotDurable is compared with.
func (e *NotDurableError) Unwrap() error { return ErrNotDurable }

var (
	// ErrNotDurable: the call was done, and too few servers have it: see NotDurableError.
	ErrNotDurable = sentinel("NOT_DURABLE", false)
	// ErrNoDurability: the server cannot wait so: it has no WAITAOF, or no append-only file. Nothing was done.
	ErrNoDurability = sentinel("NO_DURABILITY", false)
)

// Durable returns the same queue with a wait behind each call that adds or completes. These return once the servers have the call, or with a
// [NotDurableError] and their answers. Each such call uses a separate connection. A [Worker] on it does not wait for its completions.
func (q *Queue) Durable(durability Durability) (*Queue, error) {
	least := 1
	if durability.disk {
		least = 0
	}
	if durability.replicas < least || durability.replicas > maxServers {
		return nil, refused("a number of replicas is %d to %d, not %d", least, maxServers, durability.replicas)
	}
	if durability.timeout < time.Millisecond {
		return nil, refused("a timeout of replicas or a disk is at least 1 ms, not %v: the server would wait without limit", durability.timeout)
	}
	return newQueue(q.client, q.keys, &durability), nil
}

func (d *Durability) name() string {
	if d.disk {
		return "WAITAOF"
	}
	return "WAIT"
}

func (d *Durability) wanted() int {
	if d.disk {
		return 1 + d.replicas
	}
	return d.replicas
}

func (d *Durability) command() []string {
	words := []string{d.name()}
	if d.disk {
		words = append(words, "1")
	}
	return append(words, itoa(d.replicas), itoa(int(d.timeout.Milliseconds())))
}

// probe is the same command, which shows at once whether the server can wait so.
func (d *Durability) probe() []string {
	if d.disk {
		return []string{"WAITAOF", "1", "0", "1"}
	}
	return []string{"WAIT", "0", "1"}
}

// reached is how many servers have the call. Further replicas do not stand in for the primary.
func (d *Durability) reached(reply rueidis.RedisMessage) (int, error) {
	if !d.disk {
		count, err := reply.AsInt64()
		return int(count), err
	}
	counts, err := reply.AsIntSlice()
	if err != nil || len(counts) != 2 {
		return 0, badReply("it has another number of counts")
	}
	return int(counts[0]) + min(int(counts[1]), d.replicas), nil
}

func (d *Durability) missing(reached int, reason string) error {
	return &NotDurableError{Wanted: d.wanted(), Reached: reached, reason: reason}
}

// answer is the reply of a call, and the NotDurableError of its wait.
type answer struct {
	reply     rueidis.RedisMessage
	shortfall error
}

// call makes a call, and waits behind it if the durability is not nil. When the context ends the caller waits no longer.
func (q *Queue) call(ctx context.Context, c *call, d *Durability) (answer, error) {
	if d == nil {
		reply, err := q.pool.call(ctx, c)
		return answer{reply: reply}, err
	}
	return during(ctx, func() (answer, error) { return q.pool.callDurably(c, d) })
}

// callDurably makes a call and waits behind it, on a connection that no other call uses meanwhile: a wait holds up what comes behind.
func (p *pool) callDurably(c *call, d *Durability) (answer, error) {
	if p.closing.Err() != nil {
		return answer{}, closedError()
	}
	r := p.acquire()
	p.mu.Lock()
	p.waiting[r] = true
	p.mu.Unlock()
	found, err := r.runDurably(c, d)
	p.mu.Lock()
	delete(p.waiting, r)
	p.mu.Unlock()
	p.release(r, nil, err != nil || found.shortfall != nil)
	return found, err
}

func (r *router) runDurably(call *call, d *Durability) (answer, error) {
	var found answer
	err := r.follow(call.keys[0], r.limit, func(c *conn, asking bool, left time.Duration) (err error) {
		found, err = c.runDurably(call, d, left, r.limit, asking)
		return err
	})
	return found, err
}

// runDurably makes a call and waits behind it, over the same socket. Whatever becomes of the wait, the reply of the call is returned.
func (c *conn) runDurably(call *call, d *Durability, left, limit time.Duration, asking bool) (answer, error) {
	if err := c.checkWait(d, limit); err != nil {
		return answer{}, err
	}
	reply, err := c.run(call, left, asking)
	if err != nil {
		return answer{}, err
	}
	waited, err := c.do(d.timeout+limit, d.command())
	reached := -1
	if err == nil {
		reached, err = d.reached(waited)
	}
	if err != nil {
		return answer{reply, d.missing(-1, err.Error())}, nil
	}
	if reached < d.wanted() {
		return answer{reply, d.missing(reached, fmt.Sprintf("%d of %d have it after %v", reached, d.wanted(), d.timeout))}, nil
	}
	return answer{reply: reply}, nil
}

var unknownCommand = regexp.MustCompile(`(?i)unknown command`)

// checkWait asks once whether the server waits so. A replica refuses to, and then the script says more.
func (c *conn) checkWait(d *Durability, limit time.Duration) error {
	if _, known := c.waits.Load(d.name()); known {
		return nil
	}
	_, err := c.do(limit, d.probe())
	switch text := reasonOf(err); {
	case err == nil:
		c.waits.Store(d.name(), true)
		return nil
	case Code(err) == ErrConnection.Code:
		return unavailable(err, "not connected: %v", err)
	case strings.Contains(text, "replica instances"):
		return nil
	case unknownCommand.MatchString(text):
		return cannotWait("the server has no command " + d.name() + ", nothing was done: WAITAOF needs Redis or Valkey 7.2 or later")
	case strings.Contains(text, "appendonly"):
		return cannotWait("the server keeps no append-only file, nothing was done: set appendonly yes, or use Replicas")
	}
	return err
}

func cannotWait(reason string) error {
	return &Error{Code: ErrNoDurability.Code, Definite: true, message: "leaseq: " + reason}
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
