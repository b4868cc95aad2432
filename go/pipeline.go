package leaseq

import (
	"errors"

	"github.com/redis/rueidis"
)

// Pipeline collects calls for a pipeline or a transaction of the application's own rueidis client. What a queue does around a call is left to
// the caller: splitting long lists, reading the outcomes of items that died, choosing complete_with.
type Pipeline struct {
	loaded map[string]bool
	calls  [][]string
}

// Add appends an add and returns the function that reads its reply: the one of the same place in the replies to Commands.
func (p *Pipeline) Add(queue *Queue, items ...NewItem) (read func(rueidis.RedisResult) ([]Added, error), err error) {
	entries, err := allItemArgs(items)
	if err != nil {
		return nil, err
	}
	p.append(queueCall(addScript, queue.keys, encodeAddArguments(entries)))
	return func(result rueidis.RedisResult) ([]Added, error) {
		message, err := result.ToMessage()
		var refusal *rueidis.RedisError
		if errors.As(err, &refusal) {
			return nil, errorFromReply(refusal.Error())
		}
		if err != nil {
			return nil, replyLost("the reply did not come: %v", err)
		}
		return readAddReply(message)
	}, nil
}

// append sends the first use of each script whole: a NOSCRIPT would leave one call out in the middle (LQ-SCRIPT-3).
func (p *Pipeline) append(c *call) {
	if p.loaded[c.script.name] {
		p.calls = append(p.calls, c.commands("EVALSHA", c.script.sha1, false)[0])
		return
	}
	if p.loaded == nil {
		p.loaded = map[string]bool{}
	}
	p.loaded[c.script.name] = true
	p.calls = append(p.calls, c.commands("EVAL", c.script.source, false)[0])
}

// Commands are the calls, for DoMulti of the client. For a transaction put MULTI before and EXEC behind them; the replies are then the elements
// of the reply to EXEC.
func (p *Pipeline) Commands(client rueidis.CoreClient) []rueidis.Completed {
	var found []rueidis.Completed
	for _, words := range p.calls {
		found = append(found, client.B().Arbitrary(words[0]).Args(words[1:]...).Build())
	}
	return found
}
