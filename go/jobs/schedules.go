package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	leaseq "leaseq.dev/go"
)

// ErrNoSchedule: the server has no schedule of this name in this queue. A worker adds those of its App when it starts.
var ErrNoSchedule = errors.New("there is no such schedule")

// listed is how many schedules a look finds in each state.
const listed = 256

// ScheduleInfo is a schedule as the server has it.
type ScheduleInfo struct {
	// Name is its name, and Queue that of its jobs.
	Name, Queue string
	// Rule is a line of crontab and its time zone, or an interval.
	Rule string
	// Missed says which missed slots get a job.
	Missed Missed
	// Function is the name of the function that its jobs call.
	Function string
	// Paused is true while its slots pass without jobs.
	Paused bool
	// Last is the last slot that got a job, and Next the next one; zero if there is none.
	Last, Next time.Time
}

// Schedules are those on the server: [App.Schedules]. A worker writes those of its App there when it starts. The queue is that of their jobs: by
// default that of the App's one schedule of this name, else the App's. Pause, Resume and Trigger return [ErrNoSchedule] if there is none.
type Schedules struct{ app *App }

// Schedules are those that the server has.
func (a *App) Schedules() *Schedules { return &Schedules{a} }

// scheduleState is the data of the item of a schedule.
type scheduleState struct {
	Version *int           `json:"v"`
	Until   *int64         `json:"until"`
	Last    int64          `json:"last"`
	Next    int64          `json:"next"`
	Rule    string         `json:"rule"`
	Missed  Missed         `json:"missed"`
	Job     map[string]any `json:"job"`
}

// readSchedule reads the data of a schedule; false if they are none, or those of a later version.
func readSchedule(data []byte) (scheduleState, bool) {
	var state scheduleState
	err := JSON.read(data, &state)
	return state, err == nil && state.Until != nil && (state.Version == nil || *state.Version == version)
}

// List returns the schedules of one queue of jobs, or of all that the App knows, by name; up to 768 of each queue.
func (s *Schedules) List(ctx context.Context, queue ...string) ([]ScheduleInfo, error) {
	if len(queue) == 0 {
		queue = s.queues()
	}
	var found []ScheduleInfo
	for _, jobs := range queue {
		of, err := s.app.Queue(jobs + scheduleSuffix)
		if err != nil {
			return nil, err
		}
		names, err := namesOf(ctx, of)
		if err != nil {
			return nil, err
		}
		infos, err := s.infos(ctx, of, jobs, names)
		if err != nil {
			return nil, err
		}
		found = append(found, infos...)
	}
	return found, nil
}

// Pause lets the slots of a schedule pass without jobs, on all workers.
func (s *Schedules) Pause(ctx context.Context, name string, queue ...string) error {
	return s.mark(ctx, "SADD", name, queue)
}

// Resume resumes a schedule with its next slot.
func (s *Schedules) Resume(ctx context.Context, name string, queue ...string) error {
	return s.mark(ctx, "SREM", name, queue)
}

// Trigger enqueues a job of a schedule now, in addition to its slots. Its result is kept for a day, unless the schedule says for how long.
func (s *Schedules) Trigger(ctx context.Context, name string, queue ...string) (*Handle[any], error) {
	_, state, err := s.one(ctx, name, queue)
	if err != nil {
		return nil, err
	}
	job, _ := state.Job["job"].(map[string]any)
	jobs, _ := state.Job["queue"].(string)
	if job == nil || jobs == "" {
		return nil, fmt.Errorf("jobs: schedule %q does not say what its jobs are", name)
	}
	options, delay, err := addOptionsOf(state.Job)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	job["enqueued"] = now.UnixMilli()
	if delay > 0 {
		job["due"] = now.Add(delay).UnixMilli()
	}
	data, err := JSON.write(job)
	if err != nil {
		return nil, err
	}
	on, err := s.app.Queue(jobs)
	if err != nil {
		return nil, err
	}
	id := leaseq.RandomID()
	// its id was asked for
	kept := append([]leaseq.AddOption{leaseq.Keep(day)}, options...)
	_, err = on.Add(ctx, id, data, kept...)
	return &Handle[any]{ID: id, Queue: jobs, Added: err == nil, app: s.app}, err
}

// queues are those of the App and of its schedules.
func (s *Schedules) queues() []string {
	found := s.app.ownQueues()
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	for _, each := range s.app.schedules {
		if !slices.Contains(found, each.call.options.queue) {
			found = append(found, each.call.options.queue)
		}
	}
	return found
}

// queueOf is the queue of the schedule of a name: the given one, that of the one schedule of the App with this name, or the App's.
func (s *Schedules) queueOf(name string, given []string) string {
	if len(given) > 0 {
		return given[0]
	}
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	var found []string
	for _, each := range s.app.schedules {
		if each.name == name {
			found = append(found, each.call.options.queue)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return s.app.queue
}

func (s *Schedules) mark(ctx context.Context, command, name string, queue []string) error {
	of, _, err := s.one(ctx, name, queue)
	if err == nil {
		key := of.Key("paused")
		_, err = s.app.client.Command(ctx, key, command, key, name)
	}
	return err
}

// one is the schedule of a name, and the queue that its item is in.
func (s *Schedules) one(ctx context.Context, name string, queue []string) (*leaseq.Queue, scheduleState, error) {
	of, err := s.app.Queue(s.queueOf(name, queue) + scheduleSuffix)
	if err != nil {
		return nil, scheduleState{}, err
	}
	data, err := s.data(ctx, of, []string{name})
	if err != nil {
		return nil, scheduleState{}, err
	}
	if state, ok := readSchedule([]byte(data[0])); ok {
		return of, state, nil
	}
	names, err := namesOf(ctx, of)
	if err == nil {
		err = fmt.Errorf("jobs: %w: %q in queue %s, which has: %s", ErrNoSchedule, name, of.Name(), strings.Join(names, ", "))
	}
	return nil, scheduleState{}, err
}

// namesOf are the names of the schedules in their queue.
func namesOf(ctx context.Context, of *leaseq.Queue) ([]string, error) {
	var names []string
	// In the order of a turn: a schedule that has one meanwhile is in one of the lists when it is looked at.
	for _, state := range []leaseq.ListState{
		leaseq.ListStateDelayed, leaseq.ListStateReady, leaseq.ListStateLeased, leaseq.ListStateDelayed,
	} {
		page, err := of.List(ctx, state, 0, listed, leaseq.ListOrderForward)
		if err != nil {
			return nil, err
		}
		for _, each := range page.Items {
			names = append(names, each.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (s *Schedules) infos(ctx context.Context, of *leaseq.Queue, jobs string, names []string) ([]ScheduleInfo, error) {
	if len(names) == 0 {
		return nil, nil
	}
	data, err := s.data(ctx, of, names)
	if err != nil {
		return nil, err
	}
	key := of.Key("paused")
	reply, err := s.app.client.Command(ctx, key, append([]string{"SMISMEMBER", key}, names...)...)
	if err != nil {
		return nil, err
	}
	paused, err := reply.AsIntSlice()
	if err != nil {
		return nil, err
	}
	var found []ScheduleInfo
	for i, name := range names {
		state, ok := readSchedule([]byte(data[i]))
		if !ok {
			continue
		}
		job, _ := state.Job["job"].(map[string]any)
		function, _ := job["function"].(string)
		found = append(found, ScheduleInfo{
			Name: name, Queue: jobs, Rule: state.Rule, Missed: state.Missed, Function: function, Paused: paused[i] == 1,
			Last: timeOf(state.Last), Next: timeOf(state.Next),
		})
	}
	return found, nil
}

// data are those of items, each empty if there is no such item.
func (s *Schedules) data(ctx context.Context, of *leaseq.Queue, names []string) ([]string, error) {
	key := of.Key("items")
	reply, err := s.app.client.Command(ctx, key, append([]string{"HMGET", key}, names...)...)
	if err != nil {
		return nil, err
	}
	return reply.AsStrSlice()
}
