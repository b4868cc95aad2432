package leaseq

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// Client is a client of one server or cluster. Connections are opened when they are needed. It is safe for use by several goroutines.
type Client struct {
	pool *pool
}

// ClientOption is an option of a client.
type ClientOption func(*clientSettings)

type clientSettings struct {
	limit time.Duration
	log   *slog.Logger
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
}

// ReplyTimeout is after which time a call without a reply fails and its connection is closed, and how long connecting may take. Default: 10 s.
func ReplyTimeout(d time.Duration) ClientOption {
	return func(s *clientSettings) { s.limit = d }
}

// Logger is the log of workers, and of items that die where no handler runs. Default: slog.Default(), as it is when a line is written.
func Logger(log *slog.Logger) ClientOption {
	return func(s *clientSettings) { s.log = log }
}

// Dial is how connections are made, such as through a tunnel. TLS of the options is put on top. Default: by net.Dialer.
func Dial(dial func(ctx context.Context, network, address string) (net.Conn, error)) ClientOption {
	return func(s *clientSettings) { s.dial = dial }
}

// Open returns a client of the server at a URL; the first call connects. The URL is redis://, rediss:// for TLS, or unix:// with the path of a
// socket. For a cluster it names one node, or several with ?addr=; for Sentinel give the Sentinels and ?master_set=.
func Open(url string, options ...ClientOption) (*Client, error) {
	option, err := optionsOfURL(url)
	if err != nil {
		return nil, err
	}
	return New(option, options...)
}

// New returns a client by options of rueidis. InitAddress is the server, the nodes of a cluster, or with Sentinel.MasterSet the Sentinels. Retries
// and the cache of rueidis are switched off, since a lease that ran twice would lease two items and return one.
func New(option rueidis.ClientOption, options ...ClientOption) (*Client, error) {
	settings := clientSettings{limit: 10 * time.Second, log: defaultLog()}
	for _, each := range options {
		each(&settings)
	}
	if settings.limit <= 0 {
		return nil, refused("the reply timeout is above 0")
	}
	if settings.dial != nil {
		option.DialCtxFn = dialWith(settings.dial)
	}
	nodes, err := nodesOf(option)
	if err != nil {
		return nil, err
	}
	return &Client{newPool(nodes, settings.limit, settings.log)}, nil
}

// QueueOption is an option of a queue.
type QueueOption func(*string)

// Group puts a queue into a group. Queues of one group can hand items off to each other, and one call waits for all of them. Without it, a queue
// is a separate group.
func Group(name string) QueueOption {
	return func(group *string) { *group = name }
}

// Queue opens a queue. A name or group that does not match [A-Za-z0-9_.-]{1,100} is refused.
func (c *Client) Queue(name string, options ...QueueOption) (*Queue, error) {
	group := name
	for _, each := range options {
		each(&group)
	}
	keys, err := newKeys(name, group)
	if err != nil {
		return nil, err
	}
	return newQueue(c, keys, nil), nil
}

// MustQueue is Queue for names in the program; it panics where Queue returns an error.
func (c *Client) MustQueue(name string, options ...QueueOption) *Queue {
	queue, err := c.Queue(name, options...)
	if err != nil {
		panic(err)
	}
	return queue
}

// LeaseAny leases from the first queue that has an item, by strict precedence. Up to 16 queues of one group take one call; each group waits on a
// separate connection. It returns no items when the time is up. Otherwise as [Queue.LeaseAll].
func (c *Client) LeaseAny(ctx context.Context, queues []*Queue, duration time.Duration, options ...LeaseOption) ([]*LeasedItem, error) {
	if len(queues) == 0 {
		return nil, refused("no queues")
	}
	settings := leaseSettingsOf(options)
	var targets []*target[[]*LeasedItem]
	for _, group := range byGroup(queues) {
		targets = append(targets, leaseTarget(c.pool, group, settings, duration))
	}
	if len(targets) == 1 {
		items, _, err := waitFor(ctx, c.pool, targets[0], settings.timeout, nil)
		return items, err
	}
	if ctx.Err() != nil {
		return nil, aborted(ctx)
	}
	items, _, err := detach(ctx, c.pool, func(merged context.Context) ([]*LeasedItem, bool, error) {
		return c.leaseOfGroups(merged, targets, settings.timeout)
	})
	return items, err
}

// leaseOfGroups looks at group after group, and blocks only if none has an item.
func (c *Client) leaseOfGroups(ctx context.Context, targets []*target[[]*LeasedItem], timeout time.Duration) ([]*LeasedItem, bool, error) {
	timeoutAt := after(time.Now(), timeout)
	checks := make([]checked[[]*LeasedItem], len(targets))
	conns := make([]*router, len(targets))
	raced := false
	defer func() {
		for _, each := range conns {
			if each != nil && !raced {
				c.pool.release(each, nil, false)
			}
		}
	}()
	for i, each := range targets {
		if ctx.Err() != nil {
			return nil, false, aborted(ctx)
		}
		look := each.check(c.pool.shared)
		if look.err != nil {
			return nil, false, look.err
		}
		if look.ok {
			return (&waiting[[]*LeasedItem]{target: each, pool: c.pool}).unlessAborted(ctx, look.found)
		}
		checks[i] = look
		if timeout > 0 { // connects while the next groups are asked
			conns[i] = c.pool.acquire()
			c.pool.tasks.run(func() { _ = conns[i].open(each.block[1]) })
		}
	}
	raced = true
	return race(ctx, c.pool, targets, checks, conns, time.Until(timeoutAt))
}

// byGroup are the queues of each group, in their order, up to 16 in each list.
func byGroup(queues []*Queue) [][]*Queue {
	var names []string
	groups := map[string][]*Queue{}
	for _, each := range queues {
		if groups[each.Group()] == nil {
			names = append(names, each.Group())
		}
		groups[each.Group()] = append(groups[each.Group()], each)
	}
	var found [][]*Queue
	for _, name := range names {
		group := groups[name]
		for len(group) > maxQueues {
			found = append(found, group[:maxQueues])
			group = group[maxQueues:]
		}
		found = append(found, group)
	}
	return found
}

// Queues lists the queues that clients have used, each "<group>:<name>" (LQ-REGISTRY-4).
func (c *Client) Queues(ctx context.Context) ([]string, error) {
	var found []string
	seen := map[string]bool{}
	for cursor := "0"; ; {
		reply, err := during(ctx, func() (rueidis.RedisMessage, error) {
			return c.pool.shared.send(registryKey, c.pool.limit, "SSCAN", registryKey, cursor, "COUNT", "1000")
		})
		if err != nil {
			return found, err
		}
		page := elements(reply)
		cursor = page.text()
		last := page.value()
		members, err := last.AsStrSlice()
		if page.err != nil || err != nil {
			return found, badReply("no page of a set")
		}
		for _, each := range members {
			if registryEntryPattern.MatchString(each) && !seen[each] {
				seen[each] = true
				found = append(found, each)
			}
		}
		if cursor == "0" {
			return found, nil
		}
	}
}

// Close stops the workers of the client, ends every wait, gives back what they leased, and closes the connections.
func (c *Client) Close() {
	c.pool.close()
}
