package leaseq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// slowestBytes is how many bytes of a command or reply a second must bring at least (LQ-CLIENT-19).
const slowestBytes = 32 * 1024

// conn is one connection to one server: a rueidis client that connects once and repeats nothing. It decides of each failure whether the call
// can have run.
type conn struct {
	client rueidis.CoreClient
	// given: the client is the application's, or a connection of its pool. It knows the slots and has no socket of ours.
	given   bool
	closer  func()
	closing sync.Once
	socket  *socket
	pending atomic.Int32
	retired atomic.Bool
	// waits has the kinds of waits that the server is known to have.
	waits sync.Map
	// broken is called once, when the connection breaks or a reply is late.
	broken func()
	once   sync.Once
}

// dialConn connects within the limit. The cause of its error is the reply of the server, without the text: that may hold the password.
func dialConn(option rueidis.ClientOption, limit time.Duration) (*conn, error) {
	opened := &conn{}
	used := option
	used.DialCtxFn = dialOnce(option, &opened.socket)
	used.DialFn = nil //nolint:staticcheck // dialOnce calls it
	used.Dialer.Timeout = limit
	// a keep-alive of rueidis would queue behind a block
	used.Dialer.KeepAlive = -1
	used.ForceSingleClient = true
	used.Sentinel = rueidis.SentinelOption{}
	used.DisableRetry = true
	used.DisableCache = true
	used.AlwaysPipelining = true
	used.DisableAutoPipelining = false
	used.PipelineMultiplex = -1
	used.AlwaysRESP2 = true
	used.ConnLifetime = 0
	used.SendToReplicas = nil
	used.ReplicaOnly = false
	used.ClientSetInfo = rueidis.DisableClientSetInfo
	used.ReadBufferEachConn = 1 << 15
	used.WriteBufferEachConn = 1 << 15
	client, err := rueidis.NewClient(used)
	if err != nil {
		if client != nil {
			client.Close()
		}
		if opened.socket != nil {
			opened.socket.Close()
		}
		var reply *rueidis.RedisError
		if errors.As(err, &reply) {
			answered := errorFromReply(reply.Error())
			if answered.Code == "ERR" && answered.Definite { // that is no setting: it passes (LQ-WORK-7)
				return nil, unavailable(nil, "not connected: the server has too many connections")
			}
			answered.message, answered.Definite = "leaseq: the server refused the connection: "+answered.Code, true
			if strings.HasPrefix(reply.Error(), "DB index") {
				return nil, unavailable(answered, "not connected: the server has no database %d", used.SelectDB)
			}
			return nil, unavailable(answered, "not connected: the server replied %s", answered.Code)
		}
		if errors.Is(err, context.DeadlineExceeded) && used.TLSConfig != nil {
			return nil, unavailable(nil, "not connected in time: does the server speak TLS on this port?")
		}
		return nil, unavailable(nil, "not connected: %v", err)
	}
	opened.client, opened.closer = client, client.Close
	return opened, nil
}

// alive reports whether the next command is written at once.
func (c *conn) alive() bool { return !c.socket.dead.Load() && !c.retired.Load() }

func (c *conn) close() {
	c.once.Do(func() {}) // what is closed is not broken
	c.socket.Close()
	c.closing.Do(func() { go c.closer() })
}

// retire lets no further call in. The replies that are under way still come.
func (c *conn) retire() {
	c.retired.Store(true)
	if c.pending.Load() == 0 {
		c.close()
	}
}

// do sends commands that belong together and returns the reply to the last one.
func (c *conn) do(limit time.Duration, commands ...[]string) (rueidis.RedisMessage, error) {
	replies, err := c.doAll(limit, commands...)
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	return c.reply(replies[len(replies)-1])
}

// doAll sends commands one right behind the other. It fails if the connection does.
func (c *conn) doAll(limit time.Duration, commands ...[]string) ([]rueidis.RedisResult, error) {
	c.pending.Add(1)
	defer c.done()
	if c.socket.dead.Load() {
		return nil, unavailable(nil, "not connected")
	}
	ctx, cancel := context.Background(), func() {}
	if c.given {
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	watch := c.watch(limit, commands, cancel)
	defer watch.stop()
	built := make([]rueidis.Completed, len(commands))
	for i, words := range commands {
		built[i] = c.build(words)
	}
	var replies []rueidis.RedisResult
	if len(built) == 1 {
		replies = []rueidis.RedisResult{c.client.Do(ctx, built[0])}
	} else {
		replies = c.client.DoMulti(ctx, built...)
	}
	for _, each := range replies {
		if err := each.NonRedisError(); err != nil {
			return nil, c.lost(err, watch, commands)
		}
	}
	return replies, nil
}

func (c *conn) done() {
	if c.pending.Add(-1) == 0 && c.retired.Load() {
		c.close()
	}
}

func (c *conn) lost(err error, watch *replyWatch, commands [][]string) error {
	c.report()
	c.close()
	if errors.Is(err, errGone) {
		return unavailable(nil, "not connected")
	}
	if watch.late.Load() {
		return replyLost("no reply to %s within %v", commands[len(commands)-1][0], watch.limit)
	}
	return replyLost("the connection was lost: %v", err)
}

func (c *conn) report() {
	c.once.Do(func() {
		if c.broken != nil {
			c.broken()
		}
	})
}

// reply is the message of a reply, or its error. Nil is a message.
func (c *conn) reply(result rueidis.RedisResult) (rueidis.RedisMessage, error) {
	message, err := result.ToMessage()
	if err == nil || rueidis.IsRedisNil(err) {
		return message, nil
	}
	var refusal *rueidis.RedisError
	if errors.As(err, &refusal) {
		found := errorFromReply(refusal.Error())
		if found.Code == "READONLY" {
			// no longer the primary: the next call connects anew (LQ-CLIENT-25)
			c.retired.Store(true)
		}
		return message, found
	}
	return message, replyLost("the reply cannot be read: %v", err)
}

// replyWatch closes a connection whose reply is late (LQ-CLIENT-10). Bytes that flow renew the time (LQ-CLIENT-19).
type replyWatch struct {
	conn  *conn
	limit time.Duration
	begun time.Time
	moved int64
	late  atomic.Bool
	mu    sync.Mutex
	timer *time.Timer
	// cancel ends a call of a client that was given: its connection is not ours to close.
	cancel func()
}

func (c *conn) watch(limit time.Duration, commands [][]string, cancel func()) *replyWatch {
	size := 0
	for _, words := range commands {
		for _, word := range words {
			size += len(word)
		}
	}
	w := &replyWatch{conn: c, limit: limit + transfer(int64(size)), begun: time.Now(), moved: c.socket.moved.Load(), cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.limit, w.check)
	return w
}

func (w *replyWatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

func (w *replyWatch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	latest := w.begun.Add(w.limit + transfer(w.conn.socket.moved.Load()-w.moved))
	renewed := time.Unix(0, w.conn.socket.last.Load()).Add(w.limit)
	if left := min(time.Until(latest), time.Until(renewed)); left > 0 {
		w.timer.Reset(left)
		return
	}
	w.late.Store(true)
	w.cancel()
	w.conn.socket.Close()
}

// transfer is the longest time that bytes may take.
func transfer(bytes int64) time.Duration {
	return time.Duration(bytes) * time.Second / slowestBytes
}

// run makes a call of a script: with EVALSHA, after NOSCRIPT with EVAL (LQ-SCRIPT-2). With asking, ASKING goes before each.
func (c *conn) run(call *call, limit time.Duration, asking bool) (rueidis.RedisMessage, error) {
	message, err := c.do(limit, call.commands("EVALSHA", call.script.sha1, asking)...)
	if Code(err) == "NOSCRIPT" {
		message, err = c.do(limit, call.commands("EVAL", call.script.source, asking)...)
	}
	if Code(err) == "ERR" {
		// Texts of servers differ: whether this one runs scripts is asked with a script of no commands (LQ-ERROR-6).
		if _, refusal := c.do(limit, []string{"EVAL", "return 1", "0"}); Code(refusal) == "ERR" {
			return message, &Error{Code: ErrNoScripts.Code, Definite: true, message: noScripts}
		}
	}
	return message, err
}

const noScripts = "leaseq: the server runs no Lua scripts, nothing was done: load the Lua module of Valkey, start Garnet with --lua, " +
	"do not rename EVAL and EVALSHA, or take Redis 6.2 or later"

// call is a call of a script that has not been sent.
type call struct {
	script *script
	keys   []string
	args   []string
}

func (c *call) commands(name, source string, asking bool) [][]string {
	words := make([]string, 0, 3+len(c.keys)+len(c.args))
	words = append(words, name, source, itoa(len(c.keys)))
	words = append(append(words, c.keys...), c.args...)
	if asking {
		return [][]string{{"ASKING"}, words}
	}
	return [][]string{words}
}

// String names the call without its arguments, which hold data.
func (c *call) String() string { return fmt.Sprintf("%s of %d keys", c.script.name, len(c.keys)) }
