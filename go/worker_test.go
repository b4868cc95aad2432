package leaseq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	leaseq "leaseq.dev/go"
)

var quiet = leaseq.Logger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// run runs a worker until the test ends, and returns a function that stops it and tells how many items it completed.
func run(t *testing.T, queues []*leaseq.Queue, client *leaseq.Client, handler leaseq.Handler, options ...leaseq.WorkerOption) (stop func() int) {
	t.Helper()
	worker, err := client.Worker(queues, handler, options...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		completed, err := worker.Run(ctx)
		if err != nil {
			t.Error(err)
		}
		ended <- completed
	}()
	t.Cleanup(cancel)
	return func() int {
		cancel()
		select {
		case completed := <-ended:
			return completed
		case <-time.After(10 * time.Second):
			t.Fatal("the worker does not stop")
			return 0
		}
	}
}

func TestWorkerEndsItemsAsItsHandlerEnds(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "well", "failed", "panicked", "dead", "back")
	stop := run(t, []*leaseq.Queue{queue}, client, func(_ context.Context, item *leaseq.LeasedItem) error {
		switch item.ID {
		case "failed":
			return errors.New("no such order")
		case "panicked":
			panic("oh")
		case "dead":
			return leaseq.DeadLetter("never")
		case "back":
			return leaseq.GiveBack("later", leaseq.Delay(time.Hour), leaseq.Uncounted())
		}
		return nil
	}, leaseq.Concurrency(2), leaseq.LeaseAhead(2), leaseq.Backoff(func(int) time.Duration { return time.Hour }))
	want := map[string]leaseq.State{
		"well": leaseq.StateAbsent, "failed": leaseq.StateDelayed, "panicked": leaseq.StateDelayed, "dead": leaseq.StateDead, "back": leaseq.StateDelayed,
	}
	for id, state := range want {
		eventually(t, id+" is "+string(state), func() bool { return stateOf(t, queue, id) == state })
	}
	infos, err := queue.Inspect(t.Context(), "failed", "panicked", "dead", "back")
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"no such order", "panic: oh", "never", "later"} {
		if string(infos[i].Error) != text {
			t.Errorf("%q, not %q", infos[i].Error, text)
		}
	}
	if infos[3].Attempt != 0 {
		t.Error("the attempt counts", infos[3].Attempt)
	}
	if completed := stop(); completed != 1 {
		t.Error(completed)
	}
}

func TestStopGivesBackWhatWasLeasedAhead(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "a", "b", "c")
	begun := make(chan struct{}, 3)
	finish := make(chan struct{})
	stop := run(t, []*leaseq.Queue{queue}, client, func(context.Context, *leaseq.LeasedItem) error {
		begun <- struct{}{}
		<-finish
		return nil
	}, leaseq.LeaseAhead(2))
	<-begun
	eventually(t, "two are leased ahead", func() bool { return stateOf(t, queue, "c") == leaseq.StateLeased })
	time.AfterFunc(200*time.Millisecond, func() { close(finish) })
	if completed := stop(); completed != 1 {
		t.Error(completed)
	}
	infos, err := queue.Inspect(t.Context(), "b", "c")
	if err != nil || infos[0].State != leaseq.StateReady || infos[0].Attempt != 0 || infos[1].State != leaseq.StateReady {
		t.Fatal(infos, err)
	}
}

func TestGraceEndsHandlers(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "a")
	begun := make(chan struct{})
	var cause atomic.Value
	stop := run(t, []*leaseq.Queue{queue}, client, func(ctx context.Context, _ *leaseq.LeasedItem) error {
		close(begun)
		<-leaseq.Stopping(ctx)
		<-ctx.Done()
		cause.Store(context.Cause(ctx))
		return nil
	}, leaseq.Grace(50*time.Millisecond))
	<-begun
	stop()
	eventually(t, "the handler has ended", func() bool { return cause.Load() != nil })
	var stopped *leaseq.StoppedError
	if err, _ := cause.Load().(error); !errors.As(err, &stopped) {
		t.Error(err)
	}
	if state := stateOf(t, queue, "a"); state != leaseq.StateReady {
		t.Error(state)
	}
}

func TestTimeLimitFailsTheAttempt(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "a")
	run(t, []*leaseq.Queue{queue}, client, func(ctx context.Context, _ *leaseq.LeasedItem) error {
		<-ctx.Done()
		return nil
	}, leaseq.TimeLimit(50*time.Millisecond), leaseq.Attempts(1))
	eventually(t, "it is dead", func() bool { return stateOf(t, queue, "a") == leaseq.StateDead })
}

func TestHandlerOfALostLeaseIsTold(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	add(t, queue, "a")
	told := make(chan error, 1)
	lost := make(chan string, 1)
	begun := make(chan struct{})
	run(t, []*leaseq.Queue{queue}, client, func(ctx context.Context, _ *leaseq.LeasedItem) error {
		close(begun)
		<-ctx.Done()
		told <- context.Cause(ctx)
		return ctx.Err()
	}, leaseq.LeaseFor(600*time.Millisecond), leaseq.WithHooks(leaseq.Hooks{Lost: func(item *leaseq.LeasedItem) { lost <- item.ID }}))
	<-begun
	if _, err := queue.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	var reason *leaseq.LostError
	if err := <-told; !errors.As(err, &reason) {
		t.Error(err)
	}
	if id := <-lost; id != "a" {
		t.Error(id)
	}
}

func TestLiveWorkerIsListed(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	stop := run(t, []*leaseq.Queue{queue}, client, func(context.Context, *leaseq.LeasedItem) error { return nil }, leaseq.WorkerID("w:"+t.Name()))
	listed := func() bool {
		all, err := client.LiveWorkers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range all {
			if each.ID == "w:"+t.Name() {
				return each.Queues[0] == queue.Group()+":"+queue.Name()
			}
		}
		return false
	}
	eventually(t, "it is listed", listed)
	stop()
	if listed() {
		t.Error("it is still listed")
	}
}

// TestLiveWorkersOfSeveralPages: ranks shift when another worker renews its place while the pages are read (LQ-WORKER-5).
func TestLiveWorkersOfSeveralPages(t *testing.T) {
	server := spawn(t)
	ctx := t.Context()
	const last = "w:1000" // it is the first of the second page
	report := `{"version":1,"reported":1,"host":"h","pid":1,"client":"c","started":1,"stopping":false,"concurrency":1,"completed":0,` +
		`"queues":["g:n"],"held":0,"items":[]}`
	for _, step := range []float64{1, 0} { // 0: all have the same score
		place := server.raw.B().Zadd().Key("leaseq:workers").ScoreMember()
		for number := range 1001 {
			place = place.ScoreMember(2e12+step*float64(number), fmt.Sprintf("w:%04d", number))
		}
		set := server.raw.B().Set().Key("leaseq:worker:" + last).Value(report).Build()
		for _, reply := range server.raw.DoMulti(ctx, place.Build(), set) {
			if err := reply.Error(); err != nil {
				t.Fatal(err)
			}
		}
		var renewed sync.Once
		address := front(t, func(outer net.Conn) {
			defer outer.Close()
			inner, err := net.Dial("tcp", "127.0.0.1:"+server.port)
			if err != nil {
				return
			}
			defer inner.Close()
			go func() { _, _ = io.Copy(outer, inner) }()
			for data := make([]byte, 1<<16); ; {
				count, err := outer.Read(data)
				if err != nil {
					return
				}
				if step > 0 && bytes.Contains(data[:count], []byte("leaseq:worker:")) { // the first page was read
					renewed.Do(func() {
						place := server.raw.B().Zadd().Key("leaseq:workers").ScoreMember().ScoreMember(3e12, "w:0000").Build()
						if err := server.raw.Do(ctx, place).Error(); err != nil {
							t.Error(err)
						}
					})
				}
				_, _ = inner.Write(data[:count])
			}
		})
		client, err := leaseq.Open("redis://"+address, quiet)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if found, err := client.LiveWorkers(ctx); err != nil || len(found) != 1 || found[0].ID != last {
			t.Error(step, found, err)
		}
	}
}

func TestAWorkerWhoseClientIsClosedEndsWell(t *testing.T) {
	for round := range 20 {
		client, err := leaseq.Open(serverURL, quiet)
		if err != nil {
			t.Fatal(err)
		}
		queue := client.MustQueue(fmt.Sprintf("closed-%d", round))
		done := make(chan struct{})
		worker, err := client.Worker([]*leaseq.Queue{queue}, func(context.Context, *leaseq.LeasedItem) error {
			close(done)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := queue.Add(t.Context(), "a", []byte("x")); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := worker.Run(t.Context())
			ended <- err
		}()
		<-done
		client.Close()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrongPasswordEndsAWorker(t *testing.T) {
	client, err := leaseq.Open("redis://user:wrong@"+serverURL[len("redis://"):], quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	worker, err := client.Worker([]*leaseq.Queue{client.MustQueue("q")}, func(context.Context, *leaseq.LeasedItem) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := worker.Run(ctx); !errors.Is(err, leaseq.ErrConnection) {
		t.Fatal(err)
	}
}

func TestAnIdleWorkerOutlivesARightTakenAway(t *testing.T) {
	admin, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{serverURL[len("redis://"):]}})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	setUser := func(rules ...string) {
		t.Helper()
		if err := admin.Do(t.Context(), admin.B().AclSetuser().Username("idle").Rule(rules...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	setUser("reset", "on", ">pw", "~*", "&*", "+@all")
	client, err := leaseq.Open("redis://idle:pw@"+serverURL[len("redis://"):], quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queue := queueOf(t, client)
	away, worked := make(chan error, 1), make(chan string, 1)
	handler := func(_ context.Context, item *leaseq.LeasedItem) error {
		worked <- item.ID
		return nil
	}
	before := calls(t)
	run(t, []*leaseq.Queue{queue}, client, handler, leaseq.WithHooks(leaseq.Hooks{ServerAway: func(err error) { away <- err }}))
	eventually(t, "the first wait, which is short, is over", func() bool { return calls(t) >= before+3 })
	setUser("-eval", "-evalsha")
	add(t, open(t, quiet).MustQueue(queue.Name()), "a")
	select {
	case <-away:
	case <-time.After(10 * time.Second):
		t.Fatal("it did not notice")
	}
	setUser("+eval", "+evalsha")
	select {
	case <-worked:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not go on")
	}
}

// calls is how many scripts the server has run.
func calls(t *testing.T) int {
	t.Helper()
	admin, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{serverURL[len("redis://"):]}})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	text, err := admin.Do(t.Context(), admin.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, each := range regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`).FindAllStringSubmatch(text, -1) {
		count, _ := strconv.Atoi(each[1])
		total += count
	}
	return total
}

// together returns a handler that ends when count of its calls are under way.
func together(count int, result func(id string) []byte) leaseq.Handler {
	var mu sync.Mutex
	running, all := 0, make(chan struct{})
	return func(_ context.Context, item *leaseq.LeasedItem) error {
		mu.Lock()
		running++
		own := all
		if running%count == 0 {
			close(all)
			all = make(chan struct{})
		}
		mu.Unlock()
		<-own
		if data := result(item.ID); data != nil {
			item.CompleteWith(leaseq.Result(data))
		}
		return nil
	}
}

func TestItemsThatEndTogetherAreCompletedInFewCalls(t *testing.T) {
	const count = 50
	client := open(t, quiet)
	queue, other := queueOf(t, client), client.MustQueue("other")
	var completed atomic.Int32
	hooks := leaseq.Hooks{Completed: func(*leaseq.LeasedItem) { completed.Add(1) }}
	queues := []*leaseq.Queue{queue, other}
	stop := run(t, queues, client, together(2*count, func(string) []byte { return nil }), leaseq.Concurrency(2*count), leaseq.WithHooks(hooks))
	for round := int32(1); round <= 2; round++ {
		before := calls(t)
		for _, each := range queues {
			var items []leaseq.NewItem
			for i := range count {
				items = append(items, leaseq.Item(fmt.Sprint(i), nil))
			}
			if _, err := each.AddAll(t.Context(), items); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "all are completed", func() bool { return completed.Load() == 2*count*round })
		if made := calls(t) - before; made > 2*count/2 {
			t.Errorf("%d calls of scripts for %d items", made, 2*count)
		}
	}
	if completed := stop(); completed != 4*count {
		t.Error(completed)
	}
}

func TestAResultThatIsRefusedFailsItsItemAlone(t *testing.T) {
	client := open(t, quiet)
	queue := queueOf(t, client)
	most := 10
	if err := queue.Configure(t.Context(), leaseq.ConfigureOptions{MaxData: &most}); err != nil {
		t.Fatal(err)
	}
	items := []leaseq.NewItem{}
	for _, id := range []string{"a", "b", "c"} {
		items = append(items, leaseq.Item(id, nil, leaseq.Keep(time.Hour)))
	}
	handler := together(3, func(id string) []byte {
		if id == "b" {
			return []byte("more than ten bytes")
		}
		return []byte("short")
	})
	stop := run(t, []*leaseq.Queue{queue}, client, handler, leaseq.Concurrency(3), leaseq.Attempts(1))
	if _, err := queue.AddAll(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	want := map[string]leaseq.OutcomeState{"a": leaseq.OutcomeStateResult, "b": leaseq.OutcomeStateFailure, "c": leaseq.OutcomeStateResult}
	for id, state := range want {
		eventually(t, id+" is a "+string(state), func() bool {
			found, err := queue.Outcomes(t.Context(), id)
			return err == nil && found[0].State == state
		})
	}
	if completed := stop(); completed != 2 {
		t.Error(completed)
	}
}

// TestTheLogOfAWorker has a line for each end of an item, with its attributes, at the default logger that the program set behind Open.
func TestTheLogOfAWorker(t *testing.T) {
	client := open(t)
	var mu sync.Mutex
	var lines bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(writerFunc(func(data []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return lines.Write(data)
	}), nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	queue := queueOf(t, client)
	for _, id := range []string{"again", "panics", "back", "slow"} {
		if _, err := queue.Add(t.Context(), id, nil, leaseq.MaxAttempts(1)); err != nil {
			t.Fatal(err)
		}
	}
	stop := run(t, []*leaseq.Queue{queue}, client, func(ctx context.Context, item *leaseq.LeasedItem) error {
		switch item.ID {
		case "again":
			return errors.New("no such order")
		case "panics":
			panic("out of luck")
		case "back":
			return leaseq.GiveBack("stopping", leaseq.Uncounted(), leaseq.Delay(time.Hour))
		}
		<-ctx.Done()
		return nil
	}, leaseq.Concurrency(4), leaseq.TimeLimit(50*time.Millisecond))
	for id, state := range map[string]leaseq.State{"again": "dead", "panics": "dead", "back": "delayed", "slow": "dead"} {
		eventually(t, id+" is "+string(state), func() bool { return stateOf(t, queue, id) == state })
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{
		`level=ERROR msg="leaseq worker: an item failed and is dead" queue=%s id=again attempt=1 error="no such order"`,
		`level=ERROR msg="leaseq worker: an item failed and is dead" queue=%s id=panics attempt=1 error="panic: out of luck" stack=`,
		`level=INFO msg="leaseq worker: an item is given back by its handler" queue=%s id=back attempt=1 error=stopping delay=1h0m0s`,
		`level=WARN msg="leaseq worker: a handler ran longer than its time limit" queue=%s id=slow attempt=1 limit=50ms`,
		`level=ERROR msg="leaseq worker: an item failed and is dead" queue=%s id=slow attempt=1 error="the handler ran longer than 50ms"`,
	} {
		if want = fmt.Sprintf(want, queue.Name()); !strings.Contains(lines.String(), want) {
			t.Errorf("no line\n%s\nin\n%s", want, lines.String())
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

func TestADatabaseThatIsNotThereEndsTheWorker(t *testing.T) {
	client, err := leaseq.Open(serverURL+"/99", quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	worker, err := client.Worker([]*leaseq.Queue{client.MustQueue("q")}, func(context.Context, *leaseq.LeasedItem) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no database 99") {
		t.Error(err)
	}
}
