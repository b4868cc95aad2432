package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	leaseq "leaseq.dev/go"
)

const (
	scheduleSuffix   = ".cron"
	maxScheduleBytes = 200
	// onTime: with MissedNone a slot that is seen later than this was missed.
	onTime = int64(60_000)
	// review is the longest time between two turns, so that a changed rule counts soon (LQ-JOB-32).
	review = int64(60_000)
	// maxSlots are those of one turn; if more were missed, the next turn is at once.
	maxSlots = 64
	// putOff is how long an unknown schedule is left to other workers, and forget how long it stays without a turn (LQ-JOB-33).
	putOff = time.Minute
	forget = int64(dayMs)
)

// Missed says which of several missed slots get a job.
type Missed string

// The last of the missed slots, all, or none that is more than a minute late.
const (
	MissedLast Missed = "last"
	MissedAll  Missed = "all"
	MissedNone Missed = "none"
)

// ScheduleOption is an option of a schedule.
type ScheduleOption func(*schedule)

// Name is the name of the schedule. Default: that of the function.
func Name(name string) ScheduleOption { return func(s *schedule) { s.name = name } }

// Zone is the time zone of a line of crontab. Default: UTC.
func Zone(name string) ScheduleOption { return func(s *schedule) { s.zone = name } }

// OnMissed says which slots get a job at which no worker ran. Default: the last.
func OnMissed(m Missed) ScheduleOption { return func(s *schedule) { s.missed = m } }

// schedule is a call that is enqueued at the slots of a timetable.
type schedule struct {
	name   string
	zone   string
	missed Missed
	call   *Call
	table  timetable
}

// Cron enqueues a call at the slots of a line of crontab: minute, hour, day of month, month and day of week. A worker of the App takes the turns. No
// results are kept, unless the call has a [Keep].
func (a *App) Cron(call *Call, line string, options ...ScheduleOption) error {
	s := newSchedule(call, options)
	var err error
	if s.table, err = newCrontab(line, s.zone); err != nil {
		return err
	}
	return a.addSchedule(s)
}

// Every enqueues a call at the multiples of an interval since 1970.
func (a *App) Every(call *Call, d time.Duration, options ...ScheduleOption) error {
	if d.Round(time.Millisecond) < time.Millisecond {
		return fmt.Errorf("jobs: an interval is at least 1 ms, not %v", d)
	}
	s := newSchedule(call, options)
	s.table = interval{millis(d)}
	return a.addSchedule(s)
}

func newSchedule(call *Call, options []ScheduleOption) *schedule {
	own := *call
	if !own.options.kept {
		own.options.keep = 0
	}
	s := &schedule{name: call.function, zone: "UTC", missed: MissedLast, call: &own}
	for _, each := range options {
		each(s)
	}
	return s
}

func (a *App) addSchedule(s *schedule) error {
	if s.call.options.id != "" || !s.call.options.at.IsZero() {
		return errors.New("jobs: the jobs of a schedule have neither an id nor a time: both come from their slots")
	}
	if s.call.options.once() {
		return errors.New("jobs: the jobs of a schedule are neither unique nor throttled, as their ids come from their slots: give its call Repeatable")
	}
	if !slices.Contains([]Missed{MissedLast, MissedAll, MissedNone}, s.missed) {
		return fmt.Errorf("jobs: missed slots are handled as MissedLast, MissedAll or MissedNone, not %q", s.missed)
	}
	if len(s.name) == 0 || len(s.name) > maxScheduleBytes {
		return fmt.Errorf("jobs: the name of a schedule is 1 to %d bytes long", maxScheduleBytes)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, each := range a.schedules {
		if each.name == s.name && each.call.options.queue == s.call.options.queue {
			return fmt.Errorf("jobs: there are two schedules %q", s.name)
		}
	}
	a.schedules = append(a.schedules, s)
	return nil
}

// turn is the work of one: these slots get jobs, and all up to until are over.
type turn struct {
	slots      []int64
	until, due int64
	next       int64
}

// turn is the one to take now, when all slots up to until are over. Times are the server's (LQ-JOB-30 to 32).
func (s *schedule) turn(until, now int64, paused bool) turn {
	var t turn
	if !paused {
		t.slots = s.slots(until, now)
	}
	t.until = max(now, until)
	if len(t.slots) == maxSlots {
		t.until = t.slots[maxSlots-1]
	}
	t.due = max(now, t.until) + review
	for slot := range s.table.after(t.until) {
		t.next, t.due = slot, min(slot, t.due)
		break
	}
	return t
}

func (s *schedule) slots(until, now int64) []int64 {
	if s.missed != MissedAll {
		last, found := s.last(until, now)
		if !found || s.missed == MissedNone && now-last > onTime {
			return nil
		}
		return []int64{last}
	}
	var slots []int64
	for slot := range s.table.after(until) {
		if slot > now || len(slots) == maxSlots {
			break
		}
		slots = append(slots, slot)
	}
	return slots
}

// last is the last slot later than until, up to now: looked for from now back, further and further.
func (s *schedule) last(until, now int64) (last int64, found bool) {
	for span := int64(1000); ; span *= 2 {
		from := max(until, now-span)
		for slot := range s.table.after(from) {
			if slot > now {
				break
			}
			last, found = slot, true
		}
		if found || from == until {
			return last, found
		}
	}
}

// item is the item of the schedule, after a turn or of a new one.
func (s *schedule) item(t turn, last int64) (leaseq.NewItem, error) {
	state := map[string]any{"v": version, "until": t.until, "rule": s.table.rule(), "missed": string(s.missed), "job": s.call.stage()}
	if last != 0 {
		state["last"] = last
	}
	if t.next != 0 {
		state["next"] = t.next
	}
	data, err := JSON.write(state)
	options := []leaseq.AddOption{leaseq.MaxAttempts(0)}
	if t.due != 0 {
		options = append(options, leaseq.NotBefore(time.UnixMilli(t.due)))
	}
	return leaseq.Item(s.name, data, options...), err
}

// scheduler takes the turns of the schedules whose jobs go to the queues of a worker.
type scheduler struct {
	app *App
	// byQueue has the schedules by the name of their queue, then by theirs.
	byQueue map[string]map[string]*schedule
}

func newScheduler(a *App, queues []string) (*scheduler, error) {
	found := &scheduler{a, map[string]map[string]*schedule{}}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, each := range a.schedules {
		if !slices.Contains(queues, each.call.options.queue) {
			continue
		}
		name := each.call.options.queue + scheduleSuffix
		if found.byQueue[name] == nil {
			found.byQueue[name] = map[string]*schedule{}
		}
		found.byQueue[name][each.name] = each
	}
	return found, nil
}

func (s *scheduler) queueNames() []string {
	var names []string
	for name := range s.byQueue {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *scheduler) has(item *leaseq.LeasedItem) bool { return s.byQueue[item.Queue().Name()] != nil }

// start adds the items of all schedules: a new one starts now, an existing one stays as it is (LQ-JOB-12).
func (s *scheduler) start(ctx context.Context) error {
	for _, name := range s.queueNames() {
		queue, err := s.app.Queue(name)
		if err != nil {
			return err
		}
		now, err := s.app.serverTime(ctx, queue)
		if err != nil {
			return err
		}
		var items []leaseq.NewItem
		for _, each := range s.byQueue[name] {
			item, err := each.item(turn{until: now.UnixMilli()}, 0)
			if err != nil {
				return err
			}
			items = append(items, item)
		}
		if _, err := queue.AddAll(ctx, items); err != nil {
			return err
		}
	}
	return nil
}

// turn takes one: the item is completed, and in the same step the jobs of its slots and the item are added (LQ-JOB-13).
func (s *scheduler) turn(ctx context.Context, item *leaseq.LeasedItem) error {
	state, ok := readSchedule(item.Data)
	if !ok {
		return leaseq.DeadLetter("this is no schedule that can be read here")
	}
	now := item.LeasedAt().UnixMilli()
	queue := item.Queue()
	known := s.byQueue[queue.Name()][item.ID]
	if known == nil {
		if now-*state.Until >= forget {
			return nil
		}
		reason := "this App has no such schedule"
		return &leaseq.VerdictError{Uncounted: true, Delay: putOff, Text: reason, Cause: errors.New(reason)}
	}
	key := queue.Key("paused")
	reply, err := s.app.client.Command(ctx, key, "SISMEMBER", key, item.ID)
	if err != nil {
		return err
	}
	paused, _ := reply.ToInt64()
	t := known.turn(*state.Until, now, paused == 1)
	last := state.Last
	for _, slot := range t.slots {
		last = slot
		job, on, err := s.job(known, slot, now)
		if err != nil {
			return err
		}
		item.CompleteWith(leaseq.Then(on, job))
	}
	next, err := known.item(t, last)
	if err != nil {
		return err
	}
	item.CompleteWith(leaseq.Then(queue, next))
	return nil
}

// job is the one of a slot (LQ-JOB-14).
func (s *scheduler) job(of *schedule, slot, now int64) (leaseq.NewItem, *leaseq.Queue, error) {
	queue, err := s.app.Queue(of.call.options.queue)
	if err != nil {
		return leaseq.NewItem{}, nil, err
	}
	job := of.call.written(time.Time{}, time.Time{})
	job.Enqueued, job.Due = now, slot
	data, err := s.app.format.write(job)
	item := leaseq.NewItem{ID: fmt.Sprintf("cron:%s:%d", of.name, slot), Data: data, Options: of.call.options.addOptions(time.Time{})}
	return item, queue, err
}
