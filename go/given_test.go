package leaseq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/internal/testserver"
)

// cluster starts a cluster of one node.
func cluster(t *testing.T) (address string) {
	t.Helper()
	port := testserver.FreePort()
	t.Cleanup(testserver.Start(t.TempDir(), "--port", port, "--cluster-enabled", "yes"))
	address = "127.0.0.1:" + port
	testserver.Await(address)
	admin, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, slots := range [][]string{{"0", "9999"}, {"10000", "16383"}} {
		command := admin.B().Arbitrary("CLUSTER", "ADDSLOTSRANGE").Args(slots...).Build()
		if err := admin.Do(t.Context(), command).Error(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the cluster is up", func() bool {
		return admin.Do(t.Context(), admin.B().Arbitrary("GET", "x").Build()).NonRedisError() == nil &&
			admin.Do(t.Context(), admin.B().Arbitrary("SET", "x", "1").Build()).Error() == nil
	})
	return address
}

// TestCommandsWhoseKeyIsNotTheSecondWord: those without a key, and those with a word before it.
func TestCommandsWhoseKeyIsNotTheSecondWord(t *testing.T) {
	given, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{cluster(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	client, err := leaseq.NewFrom(given)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, words := range [][]string{
		{"SET", "k", "1"}, {"OBJECT", "ENCODING", "k"}, {"MEMORY", "USAGE", "k"}, {"EVAL_RO", "return 1", "1", "k"}, {"DBSIZE"}, {"EVAL"},
	} {
		_, err := client.Command(t.Context(), "k", words...)
		if (err != nil) != (len(words) == 1 && words[0] == "EVAL") {
			t.Errorf("%v: %v", words, err)
		}
	}
}

// TestGroupsOfAClusterOnAClientOfTheApplication: rueidis panics when a connection of its pool is used for two slots.
func TestGroupsOfAClusterOnAClientOfTheApplication(t *testing.T) {
	given, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{cluster(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	if given.Mode() != rueidis.ClientModeCluster {
		t.Fatal("this is no client of a cluster")
	}
	client, err := leaseq.NewFrom(given)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 3 {
		queue := queueOf(t, client)
		if _, err := queue.Lease(t.Context(), time.Minute, leaseq.Wait(30*time.Millisecond)); !errors.Is(err, leaseq.ErrNoItem) || !leaseq.IsDefinite(err) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the connection is idle again
		add(t, queue, "a")
		item, err := queue.Lease(t.Context(), 1500*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		item.Heartbeat()
		time.Sleep(700 * time.Millisecond)
		if completed, err := item.Complete(context.Background()); err != nil || !completed {
			t.Fatal(completed, err)
		}
		key := queue.Key("note")
		if replies, err := client.Transaction(t.Context(), key, []string{"SET", key, "1"}, []string{"DEL", key}); err != nil || len(replies) != 2 {
			t.Fatal(replies, err)
		}
	}
	worker, err := client.Worker([]*leaseq.Queue{queueOf(t, client), queueOf(t, client)}, func(context.Context, *leaseq.LeasedItem) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = worker.Run(ctx)
	}()
	eventually(t, "the worker is listed", func() bool {
		found, err := client.LiveWorkers(t.Context())
		return err == nil && len(found) == 1
	})
	cancel()
	<-ended
}
