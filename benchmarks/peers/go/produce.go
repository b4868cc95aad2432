package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// atOnce is how many callers a crowd has, each with single calls.
const atOnce = 100

type job struct{ id, data string }

type order struct {
	How   string     `json:"how"`
	Count int        `json:"count"`
	First int        `json:"first"`
	Size  int        `json:"size"`
	GapMS [2]float64 `json:"gap_ms"`
}

type answer struct {
	Seconds float64  `json:"seconds"`
	CPU     float64  `json:"cpu"`
	Sent    []uint64 `json:"sent"`
}

func (o order) jobs() []job {
	made := make([]job, o.Count)
	for i := range made {
		number := fmt.Sprintf("%010d", o.First+i)
		made[i] = job{"item-" + number, number + strings.Repeat("x", max(0, o.Size-len(number)))}
	}
	return made
}

// produce enqueues as told on standard input, one order a line: one by one, by a crowd, in bulk, or one by one with pauses.
func produce(one func(job) error, bulk func([]job) error) error {
	of, err := newClock()
	if err != nil {
		return err
	}
	answers := json.NewEncoder(os.Stdout)
	if err := answers.Encode(map[string]bool{"ready": true, "bulk": true}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var told order
		if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
			return err
		}
		jobs, found := told.jobs(), answer{Sent: []uint64{}}
		began, spent := time.Now(), cpu()
		switch told.How {
		case "bulk":
			err = bulk(jobs)
		case "crowd":
			err = crowd(one)(jobs)
		case "paced":
			found.Sent, err = paced(told, jobs, of, one)
		default:
			err = each(jobs, one)
		}
		if err != nil {
			return err
		}
		found.Seconds, found.CPU = time.Since(began).Seconds(), (cpu() - spent).Seconds()
		if err := answers.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

func each(jobs []job, one func(job) error) error {
	for _, each := range jobs {
		if err := one(each); err != nil {
			return err
		}
	}
	return nil
}

func paced(told order, jobs []job, of clock, one func(job) error) ([]uint64, error) {
	var sent []uint64
	low, high := told.GapMS[0], told.GapMS[1]
	for _, each := range jobs {
		time.Sleep(time.Duration((low + rand.Float64()*(high-low)) * float64(time.Millisecond)))
		sent = append(sent, of.now())
		if err := one(each); err != nil {
			return nil, err
		}
	}
	return sent, nil
}

// crowd makes single calls by many callers at once. It stands in for bulk where a library has no call for many.
func crowd(one func(job) error) func([]job) error {
	return func(jobs []job) error {
		var all sync.WaitGroup
		failed := make([]error, atOnce)
		for at := range atOnce {
			all.Go(func() {
				for i := at; i < len(jobs) && failed[at] == nil; i += atOnce {
					failed[at] = one(jobs[i])
				}
			})
		}
		all.Wait()
		for _, err := range failed {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// inParts turns a call that takes at most so many jobs into one for any number.
func inParts(most int, call func([]job) error) func([]job) error {
	return func(jobs []job) error {
		for len(jobs) > 0 {
			part := jobs[:min(most, len(jobs))]
			if err := call(part); err != nil {
				return err
			}
			jobs = jobs[len(part):]
		}
		return nil
	}
}

// cpu is the CPU time of this process so far.
func cpu() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		fail(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
