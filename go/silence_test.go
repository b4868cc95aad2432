package leaseq_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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

// TestAWorkerOutlivesRefusalsOfItsGreetingThatPass: too many clients were taken for a wrong setting (LQ-WORK-7).
func TestAWorkerOutlivesRefusalsOfItsGreetingThatPass(t *testing.T) {
	refusals := map[string]string{
		"SELECT": "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"CLIENT": "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"HELLO":  "ERR max number of clients reached",
	}
	for command, refusal := range refusals {
		t.Run(command, func(t *testing.T) {
			var passes atomic.Bool
			var refused atomic.Int32
			address := front(t, func(outer net.Conn) {
				defer outer.Close()
				if passes.Load() {
					inner, err := net.Dial("tcp", strings.TrimPrefix(serverURL, "redis://"))
					if err != nil {
						return
					}
					go func() { _, _ = io.Copy(outer, inner) }()
					_, _ = io.Copy(inner, outer)
					inner.Close()
					return
				}
				for lines := bufio.NewScanner(outer); lines.Scan(); {
					switch lines.Text() {
					case command:
						refused.Add(1)
						_, _ = io.WriteString(outer, "-"+refusal+"\r\n")
					case "HELLO":
						_, _ = io.WriteString(outer, "-ERR unknown command 'HELLO'\r\n")
					case "SELECT", "CLIENT":
						_, _ = io.WriteString(outer, "+OK\r\n")
					}
				}
			})
			option := rueidis.ClientOption{InitAddress: []string{address}, SelectDB: 3, ClientName: "shop"}
			client, err := leaseq.New(option, quiet)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			queue := queueOf(t, client)
			if _, err := queue.Stats(t.Context()); leaseq.Code(err) != "CONNECTION" || !leaseq.IsDefinite(err) {
				t.Error(err)
			}
			worked := make(chan string, 1)
			run(t, []*leaseq.Queue{queue}, client, func(_ context.Context, item *leaseq.LeasedItem) error {
				worked <- item.ID
				return nil
			})
			// the call above, the report of the worker and its first call
			eventually(t, "they are refused", func() bool { return refused.Load() >= 3 })
			passes.Store(true)
			direct, err := leaseq.Open(serverURL+"/3", quiet)
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close()
			add(t, direct.MustQueue(queue.Name()), "a")
			select {
			case <-worked:
			case <-time.After(10 * time.Second):
				t.Fatal("it does not go on")
			}
		})
	}
}
