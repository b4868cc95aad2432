package leaseq

import (
	"slices"
	"sync"
)

// slots are the places for running handlers, given in the order in which they were asked for.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{}
}

// ask returns a channel that is closed when the place is there.
func (s *slots) ask() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := make(chan struct{})
	if s.free > 0 {
		s.free--
		close(place)
	} else {
		s.waiting = append(s.waiting, place)
	}
	return place
}

// leave gives the place to the next, or leaves the line.
func (s *slots) leave(place chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.waiting, place); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
		return
	}
	if len(s.waiting) > 0 {
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
		return
	}
	s.free++
}
