package leaseq_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	leaseq "leaseq.dev/go"
)

// spawned is a separate server on a port of the loopback; its process ends with the test.
type spawned struct {
	process *exec.Cmd
	port    string
	raw     rueidis.Client
}

func spawn(t *testing.T, options ...string) *spawned {
	t.Helper()
	name := os.Getenv("LEASEQ_TEST_SERVER")
	if name == "" {
		name = "valkey-9.1.2"
	}
	folder := os.Getenv("LEASEQ_SERVERS_DIR")
	if folder == "" {
		folder = filepath.Join("..", ".servers")
	}
	program, err := filepath.Abs(filepath.Join(folder, "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	all := append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"}, options...)
	process := exec.Command(program, all...)
	process.Dir = t.TempDir()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	s := &spawned{process: process, port: port}
	eventually(t, "the server answers", func() bool {
		s.raw, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:" + port}, DisableCache: true, AlwaysRESP2: true})
		return err == nil
	})
	t.Cleanup(s.raw.Close)
	return s
}

func (s *spawned) info(t *testing.T, section string) string {
	t.Helper()
	text, err := s.raw.Do(context.Background(), s.raw.B().Arbitrary("INFO").Args(section).Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (s *spawned) evals(t *testing.T) int {
	t.Helper()
	sum := 0
	for _, line := range strings.Split(s.info(t, "commandstats"), "\n") {
		var count int
		name, rest, _ := strings.Cut(line, ":")
		if name == "cmdstat_eval" || name == "cmdstat_evalsha" {
			_, _ = fmt.Sscanf(rest, "calls=%d", &count)
			sum += count
		}
	}
	return sum
}

func (s *spawned) client(t *testing.T) *leaseq.Client {
	t.Helper()
	client, err := leaseq.Open("redis://127.0.0.1:" + s.port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// pair is a primary and a replica that is in step.
func pair(t *testing.T) (*spawned, *spawned) {
	t.Helper()
	primary := spawn(t)
	replica := spawn(t, "--replicaof", "127.0.0.1", primary.port)
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(replica.info(t, "replication"), "master_link_status:up")
	})
	return primary, replica
}

// pause makes a server stand still until the end of the test.
func pause(t *testing.T, server *spawned) {
	t.Helper()
	_ = server.process.Process.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { _ = server.process.Process.Signal(syscall.SIGCONT) })
}

func durable(t *testing.T, queue *leaseq.Queue, wait leaseq.Durability) *leaseq.Queue {
	t.Helper()
	found, err := queue.Durable(wait)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func notDurable(t *testing.T, err error, reached, wanted int) {
	t.Helper()
	var found *leaseq.NotDurableError
	if !errors.As(err, &found) || !errors.Is(err, leaseq.ErrNotDurable) || !leaseq.IsDefinite(err) {
		t.Fatal(err)
	}
	if found.Reached != reached || found.Wanted != wanted {
		t.Fatal(found.Reached, found.Wanted, err)
	}
}

func TestDurableReplicas(t *testing.T) {
	primary, replica := pair(t)
	client := primary.client(t)
	plain := queueOf(t, client)
	queue := durable(t, plain, leaseq.Replicas(1, time.Minute))
	held := func() int64 {
		count, err := replica.raw.Do(t.Context(), replica.raw.B().Hlen().Key("leaseq:{"+plain.Name()+"}:"+plain.Name()+":items").Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	if added, err := queue.Add(t.Context(), "a", nil); err != nil || !added.OK() || held() != 1 {
		t.Fatal(added, err, held())
	}
	item := lease(t, queue)
	if done, err := item.HandOff(t.Context(), leaseq.Then(plain, leaseq.NewItem{ID: "b"})); err != nil || !done.Completed || held() != 1 {
		t.Fatal(done, err, held())
	}
	if done, err := lease(t, queue).Complete(t.Context()); err != nil || !done || held() != 0 {
		t.Fatal(done, err, held())
	}
}

func TestTooFewReplicas(t *testing.T) {
	primary, replica := pair(t)
	plain := queueOf(t, primary.client(t))
	add(t, plain, "a", "b")
	queue := durable(t, plain, leaseq.Replicas(1, 50*time.Millisecond))
	items, err := plain.LeaseAll(t.Context(), time.Minute, leaseq.Count(2))
	if err != nil {
		t.Fatal(err)
	}
	pause(t, replica)
	added, err := queue.Add(t.Context(), "c", nil)
	notDurable(t, err, 0, 1)
	if !added.OK() {
		t.Fatal(added)
	}
	before := primary.evals(t)
	all, err := queue.AddAll(t.Context(), []leaseq.NewItem{{ID: "c"}, {ID: "d"}})
	notDurable(t, err, 0, 1)
	if len(all) != 2 || all[0].OK() || !all[1].OK() {
		t.Fatal(all)
	}
	if count := primary.evals(t) - before; count != 1 {
		t.Fatal(count)
	}
	done, err := queue.CompleteAll(t.Context(), []leaseq.Completion{items[0].Completion()})
	notDurable(t, err, 0, 1)
	if len(done) != 1 || !done[0] {
		t.Fatal(done)
	}
	handed, err := queue.HandOffAll(t.Context(), []leaseq.Completion{items[1].Completion(leaseq.Then(plain, leaseq.NewItem{ID: "e"}))})
	notDurable(t, err, 0, 1)
	if len(handed) != 1 || !handed[0].Completed {
		t.Fatal(handed)
	}
	many := make([]leaseq.NewItem, 600)
	for i := range many {
		many[i].ID = fmt.Sprint("many-", i)
	}
	all, err = queue.AddAll(t.Context(), many)
	notDurable(t, err, 0, 1)
	if len(all) != 256 {
		t.Fatal(len(all), "later calls are not sent")
	}
	stats, err := plain.Stats(t.Context())
	if err != nil || stats["items"] != 3+256 {
		t.Fatal(stats["items"], err)
	}
}

func TestAFullQueueIsNotDurableOrOtherwise(t *testing.T) {
	primary, replica := pair(t)
	plain := queueOf(t, primary.client(t))
	one := 1
	if err := plain.Configure(t.Context(), leaseq.ConfigureOptions{MaxItems: &one}); err != nil {
		t.Fatal(err)
	}
	queue := durable(t, plain, leaseq.Replicas(1, 50*time.Millisecond))
	pause(t, replica)
	_, err := queue.Add(t.Context(), "a", nil)
	notDurable(t, err, 0, 1)
	if _, err := queue.Add(t.Context(), "b", nil); !errors.Is(err, leaseq.ErrFull) {
		t.Fatal(err)
	}
}

func TestAConnectionThatBreaksDuringTheWait(t *testing.T) {
	primary, replica := pair(t)
	client := primary.client(t)
	plain := queueOf(t, client)
	queue := durable(t, plain, leaseq.Replicas(1, time.Minute))
	pause(t, replica)
	ended := make(chan error, 1)
	go func() {
		added, err := queue.Add(context.Background(), "a", nil)
		if !added.OK() {
			err = fmt.Errorf("no answer: %w", err)
		}
		ended <- err
	}()
	eventually(t, "the wait is under way", func() bool {
		return strings.Contains(primary.info(t, "clients"), "blocked_clients:1")
	})
	client.Close()
	err := <-ended
	notDurable(t, err, -1, 1)
	if strings.Contains(err.Error(), "no answer") {
		t.Fatal(err)
	}
	if _, err := queue.Add(t.Context(), "b", nil); !errors.Is(err, leaseq.ErrClosed) {
		t.Fatal(err)
	}
}

func TestDisk(t *testing.T) {
	server := spawn(t, "--appendonly", "yes", "--appendfsync", "always")
	plain := queueOf(t, server.client(t))
	if added, err := durable(t, plain, leaseq.Disk(time.Minute, 0)).Add(t.Context(), "a", nil); err != nil || !added.OK() {
		t.Fatal(added, err)
	}
	_, err := durable(t, plain, leaseq.Disk(50*time.Millisecond, 1)).Add(t.Context(), "b", nil)
	notDurable(t, err, 1, 2)
	other := queueOf(t, spawn(t).client(t))
	_, err = durable(t, other, leaseq.Disk(time.Minute, 0)).Add(t.Context(), "a", nil)
	if !errors.Is(err, leaseq.ErrNoDurability) || !leaseq.IsDefinite(err) || !strings.Contains(err.Error(), "appendonly yes") {
		t.Fatal(err)
	}
	if stateOf(t, other, "a") != "absent" {
		t.Fatal("it was added")
	}
}

func TestAUserWithoutTheRightToWait(t *testing.T) {
	server := spawn(t)
	words := []string{"SETUSER", "producer", "on", ">p", "~*", "+@all", "-wait"}
	if err := server.raw.Do(t.Context(), server.raw.B().Arbitrary("ACL").Args(words...).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	place := url.URL{Scheme: "redis", User: url.UserPassword("producer", "p"), Host: "127.0.0.1:" + server.port}
	client, err := leaseq.Open(place.String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	plain := queueOf(t, client)
	_, err = durable(t, plain, leaseq.Replicas(1, time.Second)).Add(t.Context(), "a", nil)
	if leaseq.Code(err) != "NOPERM" || !leaseq.IsDefinite(err) || stateOf(t, plain, "a") != "absent" {
		t.Fatal(err)
	}
}

func TestAWorkerDoesNotWait(t *testing.T) {
	primary, replica := pair(t)
	client := primary.client(t)
	plain := queueOf(t, client)
	add(t, plain, "a")
	pause(t, replica)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	handler := func(context.Context, *leaseq.LeasedItem) error { return nil }
	worker, err := client.Worker([]*leaseq.Queue{durable(t, plain, leaseq.Replicas(1, time.Hour))}, handler)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := worker.Run(ctx)
		ended <- err
	}()
	eventually(t, "the item is completed", func() bool { return stateOf(t, plain, "a") == "absent" })
	cancel()
	<-ended
}

func TestWhatIsNoDurability(t *testing.T) {
	queue := queueOf(t, open(t))
	for _, each := range []leaseq.Durability{
		{}, leaseq.Replicas(0, time.Second), leaseq.Replicas(1001, time.Second), leaseq.Replicas(1, 0), leaseq.Disk(0, 0), leaseq.Disk(time.Second, -1),
	} {
		if _, err := queue.Durable(each); !errors.Is(err, leaseq.ErrBadArgument) {
			t.Fatal(each, err)
		}
	}
}
