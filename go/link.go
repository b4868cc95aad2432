package leaseq

import (
	"sync"
	"time"
)

// link is the connection to one node: opened when it is needed, and again after it broke.
type link struct {
	node  *node
	limit time.Duration
	// own: of a client that is given, a connection of its own.
	own bool
	// broken is called when a connection broke or a reply was late.
	broken func(*node)

	mu      sync.Mutex
	conn    *conn
	opening *opening
	closed  bool
}

// opening is a connection that is being opened, for all that wait for it.
type opening struct {
	ended chan struct{}
	err   error
}

// ready is the connection if the next command is written at once.
func (l *link) ready() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && l.conn.alive() {
		return l.conn
	}
	return nil
}

// open connects within the limit, once for all calls that wait for it.
func (l *link) open(limit time.Duration) (*conn, error) {
	until := time.NewTimer(limit)
	defer until.Stop()
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, closedError()
		}
		if l.conn != nil && l.conn.alive() {
			defer l.mu.Unlock()
			return l.conn, nil
		}
		if l.opening == nil {
			l.opening = &opening{ended: make(chan struct{})}
			go l.dial(l.opening)
		}
		waited := l.opening
		l.mu.Unlock()
		select {
		case <-waited.ended:
			if waited.err != nil {
				return nil, waited.err
			}
		case <-until.C:
			return nil, unavailable(nil, "not connected within %v", limit)
		}
	}
}

func (l *link) dial(opening *opening) {
	l.reportDead()
	opened, err := l.node.dial(l.limit, l.own)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opening = nil
	switch {
	case err != nil:
		opening.err = err
	case l.closed:
		opened.close()
		opening.err = closedError()
	default:
		opened.broken = func() { l.broken(l.node) }
		if l.conn != nil {
			l.conn.retire()
		}
		l.conn = opened
	}
	close(opening.ended)
}

// reportDead reports a connection that broke while no call was under way: the others may have the same fault (LQ-CLIENT-21).
func (l *link) reportDead() {
	l.mu.Lock()
	last := l.conn
	if last == nil || !last.socket.dead.Load() {
		l.mu.Unlock()
		return
	}
	l.conn = nil
	l.mu.Unlock()
	last.report()
	last.close()
}

// closeIfIdle closes the connection if no reply is expected on it.
func (l *link) closeIfIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && l.conn.pending.Load() == 0 {
		l.conn.close()
		l.conn = nil
	}
}

// close closes the connection for good.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		l.conn.close()
	}
}

func closedError() error {
	return &Error{Code: ErrClosed.Code, Definite: true, message: "leaseq: the client is closed"}
}
