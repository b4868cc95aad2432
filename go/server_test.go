package leaseq_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/internal/testserver"
)

// serverURL is the server of the tests, which TestMain starts.
var serverURL string

func TestMain(m *testing.M) {
	os.Exit(testserver.Run(m, &serverURL))
}

func open(t *testing.T, options ...leaseq.ClientOption) *leaseq.Client {
	t.Helper()
	client, err := leaseq.Open(serverURL, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// queueOf is a queue of the test alone.
func queueOf(t *testing.T, client *leaseq.Client, options ...leaseq.QueueOption) *leaseq.Queue {
	t.Helper()
	name := strings.NewReplacer("/", ".", "#", ".").Replace(t.Name())
	return client.MustQueue(name+"."+leaseq.RandomID()[:8], options...)
}

func add(t *testing.T, queue *leaseq.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if added, err := queue.Add(t.Context(), id, []byte("data of "+id)); err != nil || !added.OK() {
			t.Fatal(added, err)
		}
	}
}

func lease(t *testing.T, queue *leaseq.Queue) *leaseq.LeasedItem {
	t.Helper()
	item, err := queue.Lease(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func stateOf(t *testing.T, queue *leaseq.Queue, id string) leaseq.State {
	t.Helper()
	found, err := queue.Inspect(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return found[0].State
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 500 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("not in time: " + what)
}
