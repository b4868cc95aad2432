package main

import (
	"context"
	"sync"

	leaseq "leaseq.dev/go"
)

// session is the state of an actor: its queues, leased items and worker loops.
type session struct {
	client *leaseq.Client
	mu     sync.Mutex
	queues map[string]*opened
	leases map[string]*leaseq.LeasedItem
	loops  map[string]*loop
}

// opened is a queue that the actor has opened, and what ends when it is closed.
type opened struct {
	queue   *leaseq.Queue
	closing context.Context
	close   context.CancelFunc
}

func (s *session) open(handle, name string, group *string) error {
	var options []leaseq.QueueOption
	if group != nil {
		options = append(options, leaseq.Group(*group))
	}
	queue, err := s.client.Queue(name, options...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	s.queues[handle] = &opened{queue, ctx, cancel}
	return nil
}

func (s *session) close(handle string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.queues[handle]
	if found == nil {
		return harnessError("queue " + handle + " is not open")
	}
	delete(s.queues, handle)
	found.close()
	return nil
}

// closing calls cancel when one of the queues is closed.
func (s *session) closing(handles []string, cancel context.CancelFunc) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var stops []func() bool
	for _, each := range handles {
		if found := s.queues[each]; found != nil {
			stops = append(stops, context.AfterFunc(found.closing, cancel))
		}
	}
	return func() {
		for _, each := range stops {
			each()
		}
	}
}

func (s *session) queue(handle string) *leaseq.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.queues[handle]
	if found == nil {
		panic(harnessError("queue " + handle + " is not open"))
	}
	return found.queue
}

// leased notes leases and returns their form in messages.
func (s *session) leased(items []*leaseq.LeasedItem) object {
	if len(items) == 0 {
		return object{"queue": nil, "leases": []any{}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	handle := ""
	for name, each := range s.queues {
		if each.queue == items[0].Queue() {
			handle = name
		}
	}
	leases := make([]object, len(items))
	for i, each := range items {
		s.leases[leaseKey(handle, each.ID, decimal(each.Token))] = each
		leases[i] = leaseForm(each)
	}
	return object{"queue": handle, "leases": leases}
}

func leaseKey(handle, id, token string) string { return token + " " + handle + " " + id }

// held is the item of a lease that this actor was given.
func (s *session) held(handle string, entry arguments) *leaseq.LeasedItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, _ := entry["token"].(string)
	found := s.leases[leaseKey(handle, entry.id("id"), token)]
	if found == nil {
		panic(harnessError("this actor was not given the lease " + token))
	}
	return found
}
