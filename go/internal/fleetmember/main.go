// Command fleetmember is Go's part of python/tests/fleets/test_four_languages.py: `fleetmember produce URL COUNT`, or `work URL`. The same program
// is in python/tests/programs/fleet_member.py, which says more.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	leaseq "leaseq.dev/go"
)

const (
	language = "go"

	factor, shared, directed = 5, 7, 11

	// leaseFor: items that a worker is late with, or held when it was killed, are made to expire by the test.
	leaseFor = time.Minute
)

var languages = []string{"python", "typescript", "go", "rust"}

type task struct {
	A    int    `json:"a"`
	B    int    `json:"b"`
	From string `json:"from"`
}

type result struct {
	A      int    `json:"a"`
	Sum    int    `json:"sum"`
	Prod   int    `json:"prod"`
	Worker string `json:"worker"`
}

type member struct {
	client        *leaseq.Client
	shared, own   *leaseq.Queue
	directed      []*leaseq.Queue
	leases, moved int
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(role, url string, rest []string) error {
	client, err := leaseq.Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	open := func(name string) *leaseq.Queue { return client.MustQueue(name, leaseq.Group("fleet")) }
	if role == "produce" {
		count, err := strconv.Atoi(rest[0])
		if err != nil {
			return err
		}
		return produce(open, count)
	}
	m := &member{client: client, shared: open("shared"), own: open(language)}
	for _, each := range languages {
		m.directed = append(m.directed, open("to-"+each))
	}
	return m.work(context.Background())
}

// produce adds items to the queue of each language.
func produce(open func(string) *leaseq.Queue, count int) error {
	for _, each := range languages {
		var items []leaseq.NewItem
		for number := range count {
			items = append(items, leaseq.Item(fmt.Sprintf("%s-%s-%d", each, language, number), []byte{byte(number)}))
		}
		added, err := open(each).AddAll(context.Background(), items)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(added, func(a leaseq.Added) bool { return !a.OK() }) {
			return fmt.Errorf("an item was there already")
		}
	}
	return nil
}

// work works until killed.
func (m *member) work(ctx context.Context) error {
	var late []*leaseq.LeasedItem
	queues := []*leaseq.Queue{m.directed[slices.Index(languages, language)], m.own, m.shared}
	for {
		queues = append(queues[1:], queues[0]) // each lease starts with another queue
		items, err := m.client.LeaseAny(ctx, queues, leaseFor, leaseq.Wait(leaseq.Forever))
		if err != nil {
			return err
		}
		if m.leases++; m.leases%7 == 0 {
			items, late = late, items // in its place an older one, which another worker may have by now
		}
		for _, item := range items {
			if err := m.handle(ctx, item); err != nil {
				return err
			}
		}
	}
}

func (m *member) handle(ctx context.Context, item *leaseq.LeasedItem) error {
	if item.Queue() == m.own {
		return m.handOff(ctx, item)
	}
	var given task
	if err := json.Unmarshal(item.Data, &given); err != nil {
		return err
	}
	made, err := json.Marshal(result{given.A, given.A + given.B, given.A * given.B, language})
	if err != nil {
		return err
	}
	completed, err := item.Complete(ctx, leaseq.Result(made))
	if completed {
		report(item)
	}
	return err
}

func (m *member) handOff(ctx context.Context, item *leaseq.LeasedItem) error {
	made := int(item.Data[0] * factor)
	target := m.directed[int(item.Data[0])%len(languages)]
	first, err := followUp(item, "shared", task{shared, made, language})
	if err != nil {
		return err
	}
	second, err := followUp(item, "directed", task{directed, made, language})
	if err != nil {
		return err
	}
	then := []leaseq.CompleteOption{leaseq.Then(m.shared, first), leaseq.Then(target, second)}
	done, err := item.HandOff(ctx, then...)
	if err != nil || !done.Completed {
		return err
	}
	report(item)
	if m.moved++; m.moved%6 != 0 {
		return nil
	}
	again, err := item.HandOff(ctx, then...)
	if err == nil && again.Completed {
		return fmt.Errorf("%s was completed twice", item.ID)
	}
	return err
}

func followUp(item *leaseq.LeasedItem, step string, given task) (leaseq.NewItem, error) {
	data, err := json.Marshal(given)
	return leaseq.Item(leaseq.DerivedID(item.ID, step), data, leaseq.Keep(time.Hour)), err
}

// report writes a line in one call, so that a kill leaves it whole or absent.
func report(item *leaseq.LeasedItem) {
	fmt.Fprintf(os.Stdout, "completed %s %s %d\n", item.Queue().Name(), item.ID, item.Token)
}
