package leaseq

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// maxRedirects is how many MOVED and ASK one call follows.
	maxRedirects = 16
	// The pause after TRYAGAIN and CLUSTERDOWN doubles from the first to the second.
	minRetryDelay = 20 * time.Millisecond
	maxRetryDelay = time.Second
)

// slotTable knows which node of a cluster has which group, learned from MOVED: all keys of a group are in one slot (LQ-CLUSTER-1). A server that
// is no cluster never replies MOVED; then every group is on the first server that was given and can be reached.
type slotTable struct {
	mu     sync.Mutex
	moved  map[string]*node
	given  []*node
	chosen int
}

func (t *slotTable) nodeOf(group string) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.moved[group]; found != nil {
		return found
	}
	first := t.given[t.chosen]
	if first.given != nil && first.given.Mode() == rueidis.ClientModeCluster {
		// rueidis panics when a connection of its pool is used for two slots
		return &node{name: "given for " + group, given: first.given}
	}
	return first
}

func (t *slotTable) recordMove(group string, to *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moved[group] = to
}

// markUnreachable: another node may know now which one has its groups.
func (t *slotTable) markUnreachable(group string, gone *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.moved[group]; found != nil {
		delete(t.moved, group)
	} else if t.given[t.chosen] == gone {
		t.chosen = (t.chosen + 1) % len(t.given)
	}
}

// countUntried is how many nodes a call may still try to reach: this one, and those that were given.
func (t *slotTable) countUntried(next *node, unreachable []string) int {
	count := 1
	for _, each := range t.given {
		if each.name != next.name && !slices.Contains(unreachable, each.name) {
			count++
		}
	}
	return count
}

// router sends each call to the node that has its group, and follows redirections. It has one connection to each node that was needed.
type router struct {
	slots  *slotTable
	limit  time.Duration
	own    bool
	broken func(*node)

	mu     sync.Mutex
	links  map[string]*link
	closed bool
}

// open connects to the node of a key, so that the next command is written at once.
func (r *router) open(key string) error {
	_, err := r.link(r.slots.nodeOf(groupOfKey(key))).open(r.limit)
	return err
}

// run makes a call. It is sent again only after a reply that shows that it did not run (LQ-CLUSTER-3), or if it could not be sent.
func (r *router) run(call *call, limit time.Duration) (rueidis.RedisMessage, error) {
	var reply rueidis.RedisMessage
	err := r.follow(call.keys[0], limit, func(c *conn, asking bool, left time.Duration) (err error) {
		reply, err = c.run(call, left, asking)
		return err
	})
	return reply, err
}

// runAll makes calls on keys of one slot, one right behind the other. It is for calls whose replies say nothing that is needed.
func (r *router) runAll(calls []*call, limit time.Duration) error {
	return r.follow(calls[0].keys[0], limit, func(c *conn, asking bool, left time.Duration) error {
		var commands [][]string
		for _, each := range calls {
			commands = append(commands, each.commands("EVALSHA", each.script.sha1, asking)...)
		}
		results, err := c.doAll(left, commands...)
		if err != nil {
			return err
		}
		for i, each := range calls {
			at := (i+1)*len(results)/len(calls) - 1
			_, err := c.reply(results[at])
			if Code(err) == "NOSCRIPT" {
				_, err = c.run(each, left, asking)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// send sends a command on a key and follows redirections as run does.
func (r *router) send(key string, limit time.Duration, words ...string) (rueidis.RedisMessage, error) {
	var reply rueidis.RedisMessage
	err := r.follow(key, limit, func(c *conn, asking bool, left time.Duration) (err error) {
		if asking {
			reply, err = c.do(left, []string{"ASKING"}, words)
		} else {
			reply, err = c.do(left, words)
		}
		return err
	})
	return reply, err
}

// transaction sends commands on keys of one slot in one transaction.
func (r *router) transaction(key string, limit time.Duration, commands ...[]string) ([]rueidis.RedisMessage, error) {
	all := append(append([][]string{{"MULTI"}}, commands...), []string{"EXEC"})
	var replies []rueidis.RedisMessage
	err := r.follow(key, limit, func(c *conn, _ bool, left time.Duration) error {
		if given, ok := c.client.(rueidis.Client); c.given && ok {
			c = takeConn(given, true)
			defer c.close()
		}
		results, err := c.doAll(left, all...)
		if err != nil {
			return err
		}
		for _, each := range results[:len(results)-1] {
			// why the transaction was refused is in the first reply that is an error
			if _, err := c.reply(each); err != nil {
				var found *Error
				if errors.As(err, &found) {
					found.Definite = true
				}
				return err
			}
		}
		reply, err := c.reply(results[len(results)-1])
		if err == nil {
			replies, err = reply.ToArray()
		}
		return err
	})
	return replies, err
}

// sendOnce sends a command on a key once. For blocks: their waiter looks again anyway.
func (r *router) sendOnce(key string, limit time.Duration, words ...string) (rueidis.RedisMessage, error) {
	c, err := r.link(r.slots.nodeOf(groupOfKey(key))).open(r.limit)
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	return c.do(limit, words)
}

// follow sends to the node of a key until a node replies to the command itself. Connecting, redirections, pauses and the reply share one limit:
// that of connecting, and that of the reply (LQ-CLUSTER-5).
func (r *router) follow(key string, limit time.Duration, send func(*conn, bool, time.Duration) error) error {
	f := &following{router: r, group: groupOfKey(key), until: time.Now().Add(r.limit + limit), delay: minRetryDelay}
	f.next = r.slots.nodeOf(f.group)
	for {
		c, err := f.connect()
		if err == nil {
			left := min(limit, max(time.Millisecond, time.Until(f.until)))
			err = send(c, f.asking, left)
		}
		if err == nil {
			return nil
		}
		var failure *Error
		if !errors.As(err, &failure) || !failure.Definite || !time.Now().Before(f.until) || !f.again(failure) {
			return err
		}
	}
}

// following is where a call is on its way through the nodes of a cluster.
type following struct {
	router      *router
	group       string
	until       time.Time
	next        *node
	asking      bool
	redirects   int
	delay       time.Duration
	unreachable []string
}

func (f *following) connect() (*conn, error) {
	connection := f.router.link(f.next)
	if c := connection.ready(); c != nil {
		return c, nil
	}
	untried := f.router.slots.countUntried(f.next, f.unreachable)
	return connection.open(time.Until(f.until) / time.Duration(untried))
}

// again reports whether to send the call again, after a definite error, and to which node.
func (f *following) again(failure *Error) bool {
	f.asking = failure.Code == "ASK"
	slots := f.router.slots
	switch failure.Code {
	case "MOVED", "ASK":
		f.redirects++
		f.next = redirected(failure.message, f.next)
		if !f.asking {
			slots.recordMove(f.group, f.next)
		}
		return f.redirects <= maxRedirects
	case "TRYAGAIN", "CLUSTERDOWN":
		if time.Now().Add(f.delay).After(f.until) {
			return false
		}
		time.Sleep(f.delay)
		f.delay = min(2*f.delay, maxRetryDelay)
		f.next = slots.nodeOf(f.group)
		return true
	case ErrConnection.Code:
		f.unreachable = append(f.unreachable, f.next.name)
		slots.markUnreachable(f.group, f.next)
		f.next = slots.nodeOf(f.group)
		return !slices.Contains(f.unreachable, f.next.name)
	}
	return false
}

func (r *router) link(to *node) *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.links[to.name]
	if found == nil {
		found = &link{node: to, limit: r.limit, own: r.own, broken: r.broken, closed: r.closed}
		r.links[to.name] = found
	}
	return found
}

// closeIdle closes the connection to a node if no reply is expected on it (LQ-CLIENT-21).
func (r *router) closeIdle(to *node) {
	r.mu.Lock()
	found := r.links[to.name]
	r.mu.Unlock()
	if found != nil {
		found.closeIfIdle()
	}
}

func (r *router) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, each := range r.links {
		each.close()
	}
}
