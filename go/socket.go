package leaseq

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// errGone is what rueidis gets in place of a second connection: a call of which it is unknown whether it was sent must not be sent on another
// one (LQ-CLIENT-1).
var errGone = errors.New("leaseq: the connection is gone")

// socket is a connection of the network that knows whether it is dead and how many bytes have passed.
type socket struct {
	net.Conn
	moved   atomic.Int64
	written atomic.Int64
	last    atomic.Int64
	dead    atomic.Bool
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	return n, s.noted(n, err)
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.written.Add(int64(n))
	return n, s.noted(n, err)
}

func (s *socket) Close() error {
	s.dead.Store(true)
	if s.Conn == nil { // of a client that was given
		return nil
	}
	return s.Conn.Close()
}

func (s *socket) noted(n int, err error) error {
	if n > 0 {
		s.moved.Add(int64(n))
		s.last.Store(time.Now().UnixNano())
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		s.dead.Store(true)
	}
	return err
}

// dialOnce is the function by which rueidis connects: once, as the given options say.
func dialOnce(given rueidis.ClientOption, opened **socket) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	var used atomic.Bool
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if used.Swap(true) {
			return nil, errGone
		}
		connected, err := dialAs(ctx, given, address, dialer, config)
		if err != nil {
			return nil, err
		}
		*opened = &socket{Conn: connected}
		return *opened, nil
	}
}

func dialAs(ctx context.Context, given rueidis.ClientOption, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	switch {
	case given.DialCtxFn != nil:
		return given.DialCtxFn(ctx, address, dialer, config)
	case given.DialFn != nil: //nolint:staticcheck // an option that applications still set
		return given.DialFn(address, dialer, config)
	case config != nil:
		return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// dialWith is a function for rueidis that connects by one of the application's, and puts TLS on top.
func dialWith(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialer.Timeout)
		defer cancel()
		connected, err := dial(ctx, "tcp", address)
		if err != nil || config == nil {
			return connected, err
		}
		secure := tls.Client(connected, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			connected.Close()
			return nil, err
		}
		return secure, nil
	}
}
