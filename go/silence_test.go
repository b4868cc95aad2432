package leaseq_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	leaseq "leaseq.dev/go"
)

// front listens, and gives each connection to a function.
func front(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			connected, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { serve(connected) })
		}
	})
	return listener.Addr().String()
}

// silent is a server that takes connections and says nothing.
func silent(connected net.Conn) {
	_, _ = io.Copy(io.Discard, connected)
	connected.Close()
}

func TestSilentNodesLeaveTimeForTheOthers(t *testing.T) {
	nodes := []string{front(t, silent), front(t, silent), strings.TrimPrefix(serverURL, "redis://")}
	client, err := leaseq.New(rueidis.ClientOption{InitAddress: nodes}, leaseq.ReplyTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	add(t, queueOf(t, client), "a")
}

func TestErrorOfARefusedLoginHasOnlyTheCodeOfTheServer(t *testing.T) {
	address := front(t, func(connected net.Conn) {
		defer connected.Close()
		lines := bufio.NewReader(connected)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if line[0] == '*' {
				_, _ = io.WriteString(connected, "-WRONGPASS hunter2 is no password of shop\r\n")
			}
		}
	})
	client, err := leaseq.Open("redis://shop:hunter2@"+address, leaseq.ReplyTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.MustQueue("q").Add(t.Context(), "a", nil)
	for found := err; found != nil; found = errors.Unwrap(found) {
		if strings.Contains(found.Error(), "hunter2") {
			t.Error(found)
		}
	}
	if !strings.Contains(err.Error(), "WRONGPASS") || !leaseq.IsDefinite(err) {
		t.Error(err)
	}
}

// TestIdleConnectionsAreClosedWhenOneBreaks: the connection of heartbeats is idle when that of calls breaks, and the next extension opens another.
func TestIdleConnectionsAreClosedWhenOneBreaks(t *testing.T) {
	var mu sync.Mutex
	var opened []net.Conn
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(opened)
	}
	address := front(t, func(outer net.Conn) {
		inner, err := net.Dial("tcp", strings.TrimPrefix(serverURL, "redis://"))
		if err != nil {
			return
		}
		mu.Lock()
		opened = append(opened, outer)
		mu.Unlock()
		go func() {
			_, _ = io.Copy(outer, inner)
			outer.Close()
		}()
		_, _ = io.Copy(inner, outer)
		inner.Close()
	})
	client, err := leaseq.Open("redis://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queue := queueOf(t, client)
	add(t, queue, "a")
	item, err := queue.Lease(t.Context(), 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer item.Heartbeat()()
	eventually(t, "there is a connection for heartbeats", func() bool { return count() == 2 })
	time.Sleep(50 * time.Millisecond) // its reply is there
	mu.Lock()
	opened[0].Close()
	mu.Unlock()
	eventually(t, "the other one is closed too", func() bool {
		_, _ = queue.Stats(context.Background())
		return count() >= 4
	})
	if !item.Held() {
		t.Error("the lease is lost")
	}
}
