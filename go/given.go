package leaseq

import (
	"time"

	"github.com/redis/rueidis"
)

// NewFrom returns a client that uses a rueidis client of the application, of one server, a cluster or Sentinel. It sends calls on its connections, and
// waits on dedicated ones of its pool. Close leaves it open. rueidis repeats no call of a script. Four
// things are then as rueidis does them: it keeps a connection whose reply is late (LQ-CLIENT-10) or READONLY (LQ-CLIENT-25), follows the redirections
// of a cluster by its own rules, and does not follow one to the bare address of an IPv6 node (LQ-CLUSTER-4). If that matters to you, use [Open] or
// [New].
func NewFrom(client rueidis.Client, options ...ClientOption) (*Client, error) {
	settings := clientSettings{limit: 10 * time.Second, log: defaultLog()}
	for _, each := range options {
		each(&settings)
	}
	if settings.limit <= 0 {
		return nil, refused("the reply timeout is above 0")
	}
	if settings.dial != nil {
		return nil, refused("a client that is given connects by itself: leave out Dial")
	}
	return &Client{newPool([]*node{{name: "given", given: client}}, settings.limit, settings.log)}, nil
}

// takeConn is a connection of a client that was given: its shared ones, or one of its own from the pool.
func takeConn(client rueidis.Client, own bool) *conn {
	if !own {
		return &conn{client: client, given: true, closer: func() {}, socket: &socket{}}
	}
	dedicated, release := client.Dedicate()
	return &conn{client: dedicated, given: true, socket: &socket{}, closer: func() {
		dedicated.Close() // a block may be under way: nobody else is to get this connection
		release()
	}}
}

// build makes a command. rueidis finds the node of a cluster by the key.
func (c *conn) build(words []string) rueidis.Completed {
	at := keyOf(words)
	if c.given && (words[0] == "WAIT" || words[0] == "WAITAOF") {
		return c.client.B().Arbitrary(words[0]).Args(words[1:]...).Blocking()
	}
	if !c.given || at < 0 {
		return c.client.B().Arbitrary(words[0]).Args(words[1:]...).Build()
	}
	command := c.client.B().Arbitrary(words[:at]...).Keys(words[at]).Args(words[at+1:]...)
	if words[0] == "BLPOP" || words[0] == "BLMOVE" {
		return command.Blocking()
	}
	return command.Build()
}

// keyOf is the place of the first key of a command, -1 without one.
func keyOf(words []string) int {
	at := 1
	switch words[0] {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO":
		at = 3
		if len(words) > 2 && words[2] == "0" {
			return -1
		}
	case "OBJECT", "MEMORY", "DEBUG", "XGROUP", "XINFO", "LMPOP", "ZMPOP", "SINTERCARD", "ZINTERCARD", "ZDIFF", "ZINTER", "ZUNION":
		at = 2
	case "MULTI", "EXEC", "TIME", "ASKING", "ROLE", "SENTINEL":
		return -1
	}
	if at >= len(words) {
		return -1
	}
	return at
}
