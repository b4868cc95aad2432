package leaseq

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// The live workers (02.9): a worker reports itself and the items that it holds, and a client lists the reports.

const (
	workersKey     = "leaseq:workers"
	reportLife     = 30 * time.Second
	reportInterval = 10 * time.Second
	indexLife      = 10 * time.Minute
	indexRefresh   = time.Minute
	maxExpiredIDs  = 100
	maxReported    = 100
	wishLife       = 24 * time.Hour
	workersPage    = 1000
	// reportLimit is the time of each command of a report. A worker that stops waits for the last ones.
	reportLimit = time.Second
)

// WorkerInfo is a live worker, as of its last report.
type WorkerInfo struct {
	// ID is its name.
	ID string
	// Host and Process are where it runs.
	Host    string
	Process int
	// Client is the name and version of its client.
	Client string
	// Started is when it sent its first report, by the server's clock.
	Started time.Time
	// Stopping is true once it leases no more.
	Stopping bool
	// Quiet is true while it leases nothing because a program wishes so: see [Client.QuietWorker].
	Quiet bool
	// Concurrency is how many items it works on at a time at most.
	Concurrency int
	// Completed is how many items it has completed.
	Completed int
	// Queues are those that it leases from, each "<group>:<name>".
	Queues []string
	// Held is how many items it holds, and Items are up to 100 of them.
	Held  int
	Items []HeldItem
}

// HeldItem is an item that a live worker holds.
type HeldItem struct {
	// Queue is "<group>:<name>".
	Queue   string `json:"queue"`
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
	// Ms is the time since it was leased in milliseconds: up to now, if it is still held.
	Ms int64 `json:"ms"`
}

// workerStatus is the part of a report that changes.
type workerStatus struct {
	Stopping  bool       `json:"stopping"`
	Quiet     bool       `json:"quiet"`
	Completed int        `json:"completed"`
	Held      int        `json:"held"`
	Items     []HeldItem `json:"items"`
}

// workerReport is what stands on the server.
type workerReport struct {
	Version     int      `json:"version"`
	Reported    int64    `json:"reported"`
	Host        string   `json:"host"`
	Process     int      `json:"pid"`
	Client      string   `json:"client"`
	Started     int64    `json:"started"`
	Concurrency int      `json:"concurrency"`
	Queues      []string `json:"queues"`
	workerStatus
}

// presence reports a worker from begin to end. It never fails or delays the work (LQ-WORKER-3): it has a separate connection, and its errors are
// ignored.
type presence struct {
	id     string
	router *router
	report workerReport
	status func() workerStatus
	// steer is called behind each report with what a program wishes the worker to do.
	steer func(wish string)
	now   chan struct{}
	stop  chan struct{}
	ended chan struct{}
	once  sync.Once
	// registered is when it last entered the index, and serverTime what the server's clock said then.
	registered time.Time
	serverTime int64
}

func newPresence(id string, r *router, concurrency int, queues []string, status func() workerStatus, steer func(string)) *presence {
	host, _ := os.Hostname()
	return &presence{
		id: id, router: r, status: status, steer: steer, now: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
		report: workerReport{
			Version: 1, Host: host, Process: os.Getpid(), Client: "leaseq (Go) " + Version, Concurrency: concurrency, Queues: queues,
		},
	}
}

func (p *presence) key() string { return workerKey(p.id) }

func workerKey(id string) string { return "leaseq:worker:" + id }

// wishKey is where a program says what the worker is to do.
func wishKey(id string) string { return workerKey(id) + "/wish" }

func (p *presence) begin() {
	go func() {
		defer close(p.ended)
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		for {
			p.send()
			select {
			case <-p.now:
			case <-ticker.C:
			case <-p.stop:
				_, _ = p.command(p.key(), "DEL", p.key())
				_, _ = p.command(wishKey(p.id), "DEL", wishKey(p.id))
				_, _ = p.command(workersKey, "ZREM", workersKey, p.id)
				return
			}
		}
	}()
}

func (p *presence) reportNow() {
	select {
	case p.now <- struct{}{}:
	default:
	}
}

// end removes the worker from the server, if that can be reached (LQ-WORKER-4), and closes the connection.
func (p *presence) end() {
	p.once.Do(func() { close(p.stop) })
	timer := time.NewTimer(reportLimit)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
	p.router.close()
}

func (p *presence) command(key string, words ...string) (rueidis.RedisMessage, error) {
	return p.router.send(key, reportLimit, words...)
}

func (p *presence) send() {
	if time.Since(p.registered) >= indexRefresh && !p.register() {
		return
	}
	report := p.report
	report.workerStatus = p.status()
	report.Reported = p.serverTime + time.Since(p.registered).Milliseconds()
	text, err := json.Marshal(report)
	if err == nil {
		_, err = p.command(p.key(), "SET", p.key(), string(text), "PX", digits(reportLife.Milliseconds()))
	}
	if err != nil {
		return
	}
	wish, err := p.command(wishKey(p.id), "GET", wishKey(p.id))
	if err == nil || rueidis.IsRedisNil(err) {
		text, _ := wish.ToString()
		p.steer(text)
	}
}

// register enters the worker in the index, by the server's clock, and removes expired ids from it (LQ-WORKER-2).
func (p *presence) register() bool {
	begun := time.Now()
	now, err := serverTime(p.router, workersKey, reportLimit)
	if err != nil {
		return false
	}
	if _, err := p.command(workersKey, "ZADD", workersKey, digits(now+indexLife.Milliseconds()), p.id); err != nil {
		return false
	}
	if p.report.Started == 0 {
		p.report.Started = now
	}
	p.registered, p.serverTime = begun, now
	expired, err := p.command(workersKey, "ZRANGEBYSCORE", workersKey, "-inf", digits(now), "LIMIT", "0", itoa(maxExpiredIDs))
	if ids, _ := expired.AsStrSlice(); err == nil && len(ids) > 0 {
		_, _ = p.command(workersKey, append([]string{"ZREM", workersKey}, ids...)...)
	}
	return true
}

// serverTime is the server's time in milliseconds since 1970.
func serverTime(r *router, key string, limit time.Duration) (int64, error) {
	reply, err := r.sendOnce(key, limit, "TIME")
	if err != nil {
		return 0, err
	}
	words, err := reply.AsStrSlice()
	if err != nil || len(words) != 2 {
		return 0, badReply("no time")
	}
	seconds, err1 := strconv.ParseInt(words[0], 10, 64)
	micros, err2 := strconv.ParseInt(words[1], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, badReply("no time")
	}
	return seconds*1000 + micros/1000, nil
}

// LiveWorkers lists the live workers of all clients (LQ-WORKER-5).
func (c *Client) LiveWorkers(ctx context.Context) ([]WorkerInfo, error) {
	return during(ctx, func() ([]WorkerInfo, error) { return listWorkers(c.pool.shared, c.pool.limit) })
}

// QuietWorker lets a worker lease nothing more for a day, or until ResumeWorker: it gives back what it has not started, and handlers that run go on.
// It does so with its next report, within 15 seconds. QuietWorker returns false if no such worker is alive.
func (c *Client) QuietWorker(ctx context.Context, id string) (bool, error) {
	return c.steer(ctx, id, "quiet")
}

// ResumeWorker lets a worker lease again: see [Client.QuietWorker].
func (c *Client) ResumeWorker(ctx context.Context, id string) (bool, error) {
	return c.steer(ctx, id, "")
}

// StopWorker stops a worker as [Worker.Stop] does: see [Client.QuietWorker].
func (c *Client) StopWorker(ctx context.Context, id string) (bool, error) {
	return c.steer(ctx, id, "stop")
}

func (c *Client) steer(ctx context.Context, id, wish string) (bool, error) {
	if !workerIDPattern.MatchString(id) {
		return false, refused("not the id of a worker: %.220q", id)
	}
	return during(ctx, func() (bool, error) { return writeWish(c.pool.shared, c.pool.limit, id, wish) })
}

// writeWish writes a wish for a live worker, or deletes that which is there (LQ-WORKER-7).
func writeWish(r *router, limit time.Duration, id, wish string) (bool, error) {
	if wish == "" {
		if _, err := r.send(wishKey(id), limit, "DEL", wishKey(id)); err != nil {
			return false, err
		}
	}
	// not EXISTS: an operator has the right to GET
	if found, err := r.send(workerKey(id), limit, "GET", workerKey(id)); err != nil && !rueidis.IsRedisNil(err) {
		return false, err
	} else if found.IsNil() {
		return false, nil
	}
	if wish == "" {
		return true, nil
	}
	_, err := r.send(wishKey(id), limit, "SET", wishKey(id), wish, "PX", digits(wishLife.Milliseconds()))
	return err == nil, err
}

// listWorkers reads the index by score: ranks shift when an id is renewed or removed, and the score of an id only grows.
func listWorkers(r *router, limit time.Duration) ([]WorkerInfo, error) {
	now, err := serverTime(r, workersKey, limit)
	if err != nil {
		return nil, err
	}
	var found []WorkerInfo
	seen := map[string]bool{}
	for start, offset := math.Inf(-1), 0; ; {
		from := strconv.FormatFloat(start, 'f', -1, 64)
		reply, err := r.send(workersKey, limit, "ZRANGE", workersKey, from, "+inf", "BYSCORE", "LIMIT", itoa(offset), itoa(workersPage), "WITHSCORES")
		if err != nil {
			return nil, err
		}
		page, err := reply.AsZScores()
		if err != nil {
			return nil, badReply("no page of ids")
		}
		for _, each := range page {
			id := each.Member
			if !workerIDPattern.MatchString(id) || seen[id] {
				continue
			}
			seen[id] = true
			value, err := r.send(workerKey(id), limit, "GET", workerKey(id))
			if err != nil {
				return nil, err
			}
			if text, err := value.ToString(); err == nil {
				if info, ok := readReport(id, text, now); ok {
					found = append(found, info)
				}
			}
		}
		if len(page) < workersPage {
			return found, nil
		}
		last := page[len(page)-1].Score
		switch {
		case page[0].Score != last:
			offset = 0
		case last == start:
			offset += workersPage
		default: // a page of one score: the ids behind it may have that score too
			offset = workersPage
		}
		start = last
	}
}
