package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// operation is one call as far as it concerns one item. What an answer does not have is left out, and with Unknown there is
// no answer: the call may have taken effect at any time after Call, or never.
type operation struct {
	Client      int    `json:"client"`
	Call        int64  `json:"call"`
	Return      int64  `json:"return"` // 0: never
	Kind        string `json:"kind"`
	Token       int64  `json:"token"` // 0 in a call: one that no lease ever gave
	Attempt     int64  `json:"attempt"`
	Data        string `json:"data"`
	Delayed     bool   `json:"delayed"`
	Uncounted   bool   `json:"uncounted"`
	OnlyCurrent bool   `json:"only_current"`
	Answer      string `json:"answer"` // "yes" or "no", or the word of the protocol
	Unknown     bool   `json:"unknown"`
}

// The states of an item. One that is expired or due is leased or delayed until somebody looks, and can be leased at once.
const (
	absent  = "absent"
	ready   = "ready"
	delayed = "delayed"
	leased  = "leased"
	expired = "expired"
	due     = "due"
)

// item is what is known of an item between two calls.
type item struct {
	where   string
	data    string
	attempt int64
	current int64 // the token of the last lease; -1 where its answer was lost
	floor   int64 // tokens up to this one are of earlier items of the id
	highest int64 // the highest token that was told of this item
	last    int64 // the highest token that was told of this id, ever
}

func (i item) free() bool { return i.where == ready || i.where == due || i.where == expired }

func (i item) held(token int64) bool {
	return (i.where == leased || i.where == expired) && token != 0 && token == i.current
}

func (i item) had(token int64) bool {
	return i.where != absent && token > i.floor && token <= i.highest
}

func (i item) gone() item { return item{where: absent, last: i.last} }

// reclaimed is what becomes of an item that a call finds no longer held, though nobody was told that it went back.
func (i item) reclaimed() item {
	i.where = ready
	return i
}

func (i item) put(op operation) item {
	next := item{where: ready, data: op.Data, floor: i.last, last: i.last}
	if op.Delayed {
		next.where = delayed
	}
	return next
}

func (i item) take(token int64) item {
	i.where = leased
	i.attempt++
	i.current = token
	if token > 0 {
		i.highest, i.last = token, token
	}
	return i
}

func (i item) back(op operation) item {
	i.where = ready
	if op.Delayed {
		i.where = delayed
	}
	if op.Uncounted {
		i.attempt--
	}
	return i
}

// seen is the word of the protocol for where an item is.
func (i item) seen() string {
	switch i.where {
	case expired:
		return leased
	case due:
		return delayed
	}
	return i.where
}

var itemModel = (&porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{item{where: absent}} },
	Step: func(state, input, output interface{}) []interface{} {
		return step(state.(item), input.(operation))
	},
	Equal:             func(a, b interface{}) bool { return a == b },
	DescribeOperation: func(input, output interface{}) string { return describe(input.(operation)) },
	DescribeState:     func(state interface{}) string { return fmt.Sprintf("%+v", state) },
}).ToModel()

func step(before item, op operation) []interface{} {
	if op.Unknown {
		states := []interface{}{before}
		if after, ok := effect(before, op); ok {
			states = append(states, after)
		}
		return states
	}
	if after, ok := answered(before, op); ok {
		return []interface{}{after}
	}
	return nil
}

// effect is what a call does that has one.
func effect(i item, op operation) (item, bool) {
	switch op.Kind {
	case "add":
		return i.put(op), i.where == absent
	case "lease":
		return i.take(-1), i.free()
	case "extend":
		ok := i.held(op.Token)
		i.where = leased
		return i, ok
	case "complete":
		return i.gone(), i.had(op.Token) && (!op.OnlyCurrent || i.held(op.Token))
	case "release":
		ok := i.held(op.Token)
		return i.back(op), ok
	case "remove":
		return i.gone(), i.where != absent
	}
	return i, false
}

// answered is what a call leaves behind, and whether it can have been answered as it was.
func answered(i item, op operation) (item, bool) {
	switch op.Kind {
	case "add":
		if op.Answer == "no" {
			return i, i.where != absent
		}
		return i.put(op), i.where == absent
	case "lease":
		right := i.free() && op.Token > i.last && op.Attempt == i.attempt+1 && op.Data == i.data
		return i.take(op.Token), right
	case "nothing": // a lease that found nothing
		return i, !i.free()
	case "extend", "release":
		return endOrKeep(i, op)
	case "complete":
		after, can := effect(i, op)
		if op.Answer == "yes" {
			return after, can
		}
		return refused(i, op, can)
	case "remove":
		return i.gone(), i.seen() == op.Answer || (i.where == expired || i.where == due) && op.Answer == ready
	case "expire": // by the harness: its time is over from now on
		return expire(i, op)
	case "final":
		same := i.seen() == op.Answer || (i.where == expired || i.where == due) && op.Answer == ready
		return i, same && (i.where == absent || op.Attempt == i.attempt && op.Data == i.data)
	}
	return i, false
}

func endOrKeep(i item, op operation) (item, bool) {
	after, can := effect(i, op)
	if op.Answer == "no" || op.Answer == "lost" {
		return refused(i, op, can)
	}
	fits := op.Kind == "extend" || op.Answer == after.where
	return after, can && fits
}

// refused: a call that would have had an effect was refused, which is right only where the lease had expired and somebody
// reclaimed it meanwhile.
func refused(i item, op operation, can bool) (item, bool) {
	if !can {
		return i, true
	}
	return i.reclaimed(), i.where == expired && (op.Kind != "complete" || op.OnlyCurrent)
}

func expire(i item, op operation) (item, bool) {
	found := i.seen()
	switch {
	case op.Answer == leased && found == leased:
		i.where = expired
		return i, true
	case op.Answer == delayed && found == delayed:
		i.where = due
		return i, true
	case op.Answer == "no":
		if i.where == expired || i.where == due {
			return i.reclaimed(), true
		}
		return i, i.where == absent || i.where == ready
	}
	return i, false
}

func describe(op operation) string {
	if op.Unknown {
		return fmt.Sprintf("%s %d -> ?", op.Kind, op.Token)
	}
	switch op.Kind {
	case "lease":
		return fmt.Sprintf("lease -> token %d, attempt %d", op.Token, op.Attempt)
	case "add":
		return "add -> " + op.Answer
	}
	return fmt.Sprintf("%s %d -> %s", op.Kind, op.Token, op.Answer)
}
