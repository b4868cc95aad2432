package jobs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	leaseq "leaseq.dev/go"
)

const day = 24 * time.Hour

// Forever is an expiry, a time limit or a number of retries without limit.
const Forever = leaseq.Forever

// Unlimited is a number of retries without limit.
const Unlimited = -1

// Option is an option of a call, of all calls of a function, or of the jobs of a schedule.
type Option func(*options)

type options struct {
	id          string
	named       bool
	unique      bool
	throttle    time.Duration // the length of a slot, 0 for none
	queue       string
	priority    int
	delay       time.Duration
	at          time.Time
	expires     time.Duration
	dropped     bool
	timeLimit   time.Duration
	limited     bool
	retries     int
	backoff     []time.Duration // the first and the longest
	delays      []time.Duration
	repeated    bool // the call itself says how its attempts are repeated
	keep        time.Duration
	kept        bool // the call itself says how long
	description string
	headers     []leaseq.Header
	attempt     int
	// of functions
	spread bool
	final  func(error) bool
}

func defaults(queue string) options {
	return options{
		queue: queue, expires: day, timeLimit: 5 * time.Minute, retries: 4, backoff: []time.Duration{time.Second, 5 * time.Minute},
		keep: day, attempt: 1,
	}
}

func (o options) with(given []Option) options {
	o.limited, o.repeated, o.kept = false, false, false
	o.headers = append([]leaseq.Header{}, o.headers...)
	for _, each := range given {
		each(&o)
	}
	return o
}

// ID is the id of the job: while a job with it is in its queue, a second one is not enqueued. Default: a random one.
func ID(id string) Option { return func(o *options) { o.id, o.named = id, true } }

// Unique makes the id of the function and its arguments, as JSON: while a job with the same ones is in its queue, or its result is kept, a second
// one is not enqueued. It goes neither with ID nor with Throttle.
func Unique() Option { return func(o *options) { o.unique = true } }

// Throttle is the length of a slot: of jobs with the same function and arguments, one is enqueued in each slot, by the server's clock. It goes neither
// with ID nor with Unique.
func Throttle(d time.Duration) Option { return func(o *options) { o.throttle = d } }

// Repeatable undoes the Unique and the Throttle of a function, for a call with another of them, with an ID, or with neither.
func Repeatable() Option { return func(o *options) { o.unique, o.throttle = false, 0 } }

// OnQueue is the queue in which the job waits. Default: that of the App.
func OnQueue(name string) Option { return func(o *options) { o.queue = name } }

// Priority is -7 to 7, higher first.
func Priority(p int) Option { return func(o *options) { o.priority = p } }

// Delay is the time before the job can run.
func Delay(d time.Duration) Option { return func(o *options) { o.delay, o.at = d, time.Time{} } }

// At is the time from which the job can run, in place of Delay.
func At(t time.Time) Option { return func(o *options) { o.at, o.delay = t, 0 } }

// Expires is the time after it was due in which a worker must start the job; otherwise it is dead. Default: a day.
func Expires(d time.Duration) Option { return func(o *options) { o.expires = d } }

// DeadOnExpiry says whether a job that expires is dead, as by default. If not, it is deleted, and its id is free.
func DeadOnExpiry(dead bool) Option { return func(o *options) { o.dropped = !dead } }

// TimeLimit is the time that one attempt may take; Forever or 0 is without limit. Default: 5 min.
func TimeLimit(d time.Duration) Option {
	return func(o *options) { o.timeLimit, o.limited = d, true }
}

// Retries is the number of attempts after the first, or Unlimited. Default: 4.
func Retries(n int) Option { return func(o *options) { o.retries = n } }

// Backoff is the delay between attempts: it doubles from the first to the last, less up to half at random. Default: 1 s to 5 min.
func Backoff(first, last time.Duration) Option {
	return func(o *options) { o.backoff, o.delays, o.repeated = []time.Duration{first, last}, nil, true }
}

// Delays are those after each failed attempt; the last one repeats.
func Delays(delays ...time.Duration) Option {
	return func(o *options) { o.delays, o.backoff, o.repeated = delays, nil, true }
}

// Keep is the time for which the result or the failure is kept; 0 is not at all. Default: a day.
func Keep(d time.Duration) Option { return func(o *options) { o.keep, o.kept = d, true } }

// Description is a text for people. Default: the call.
func Description(text string) Option { return func(o *options) { o.description = text } }

// WithHeader adds a header for other programs.
func WithHeader(name, value string) Option {
	return func(o *options) { o.headers = append(o.headers, leaseq.Header{Name: name, Value: []byte(value)}) }
}

// FirstAttempt is the number of the first attempt: more than 1 if earlier attempts, made elsewhere, count.
func FirstAttempt(n int) Option { return func(o *options) { o.attempt = n } }

// Spread: the input of the function is a struct whose fields are its arguments, by position or by name, by their names in JSON. A field with
// omitempty or of a pointer type is optional. It is an option of Define.
func Spread() Option { return func(o *options) { o.spread = true } }

// FinalIf names errors that allow no other attempt, as leaseq.DeadLetter does. It is an option of Define.
func FinalIf(is func(error) bool) Option { return func(o *options) { o.final = is } }

// check refuses what no job can have.
func (o options) check() error {
	switch {
	case o.named && o.id == "":
		return fmt.Errorf("jobs: an id is 1 to 256 bytes of UTF-8; leave ID out for a random one")
	case o.throttle != 0 && millis(o.throttle) < 1:
		return fmt.Errorf("jobs: Throttle is 1 ms or more, or 0 for as often as it is enqueued, not %v", o.throttle)
	case o.unique && o.throttle != 0:
		return errors.New("jobs: a job is unique or throttled, not both: give one of Unique and Throttle, behind Repeatable if the function has the other")
	case o.named && o.once():
		return errors.New("jobs: the id of a job that is unique or throttled is made of its arguments: leave out ID, or give Repeatable with it")
	case o.retries < Unlimited:
		return fmt.Errorf("jobs: Retries is 0 or more, or Unlimited, not %d", o.retries)
	case o.attempt < 1 || o.retries != Unlimited && o.attempt > o.retries+1:
		return fmt.Errorf("jobs: FirstAttempt is 1 to %d, not %d", o.retries+1, o.attempt)
	case o.delay < 0 || o.keep < 0:
		return fmt.Errorf("jobs: Delay and Keep are 0 or more, not %v and %v", o.delay, o.keep)
	}
	return nil
}

// addOptions are those of the item. now is the server's time, which an expiry of a job with a time needs.
func (o options) addOptions(now time.Time) leaseq.AddOptions {
	attempts := o.maxAttempts()
	found := leaseq.AddOptions{MaxAttempts: &attempts, Headers: o.headers}
	wait := o.delay
	if !o.at.IsZero() {
		wait = max(0, o.at.Sub(now))
		found.NotBefore = &o.at
	} else if o.delay != 0 {
		found.Delay = &o.delay
	}
	if o.priority != 0 {
		found.Priority = &o.priority
	}
	if o.expires != Forever {
		expires := wait + o.expires
		found.ExpiresIn, found.ExpiresTo = &expires, !o.dropped
	}
	if o.keep != 0 {
		found.Keep = &o.keep
	}
	return found
}

// maxAttempts are those of the item: an attempt before it counts.
func (o options) maxAttempts() int {
	if o.retries < 0 {
		return 0
	}
	return o.retries + 2 - o.attempt
}

// stageOptions are those of a stage, by their names in the protocol.
func (o options) stageOptions() map[string]any {
	found := map[string]any{"max_attempts": o.maxAttempts()}
	if o.delay != 0 {
		found["delay"] = millis(o.delay)
	}
	if o.priority != 0 {
		found["priority"] = o.priority
	}
	if o.expires != Forever {
		found["expires_in"] = millis(o.delay + o.expires)
		if !o.dropped {
			found["expires_to"] = "dead"
		}
	}
	if o.keep != 0 {
		found["keep"] = millis(o.keep)
	}
	return found
}

// addOptionsOf are the options of a stage that was read.
func addOptionsOf(stage map[string]any) ([]leaseq.AddOption, time.Duration, error) {
	var found []leaseq.AddOption
	var delay time.Duration
	all, _ := stage["add"].(map[string]any)
	for name, value := range all {
		number, _ := integer(value)
		duration := time.Duration(number) * time.Millisecond
		switch name {
		case "delay":
			delay = duration
			found = append(found, leaseq.Delay(duration))
		case "priority":
			found = append(found, leaseq.Priority(int(number)))
		case "max_attempts":
			found = append(found, leaseq.MaxAttempts(int(number)))
		case "expires_in":
			found = append(found, leaseq.ExpiresIn(duration))
		case "expires_to":
			found = append(found, leaseq.DeadOnExpiry())
		case "keep":
			found = append(found, leaseq.Keep(duration))
		case "content_type":
			text, _ := value.(string)
			found = append(found, leaseq.ContentType(text))
		default:
			return nil, 0, badEnvelope("an item has no option %q", name)
		}
	}
	headers, _ := stage["headers"].(map[string]any)
	for _, name := range sortedKeys(headers) {
		text, _ := headers[name].(string)
		found = append(found, leaseq.WithHeader(name, []byte(text)))
	}
	return found, delay, nil
}

func millis(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }

func allMillis(all []time.Duration) []int64 {
	found := make([]int64, len(all))
	for i, each := range all {
		found[i] = millis(each)
	}
	return found
}

// delayAfter is the delay after an attempt that failed: by the envelope, else by the function (LQ-JOB-5).
func delayAfter(attempt int64, job envelope, of options) time.Duration {
	if delays := durations(job.all["delays"]); len(delays) > 0 {
		return nth(delays, attempt)
	}
	if backoff := durations(job.all["backoff"]); len(backoff) == 2 {
		return growing(backoff, attempt)
	}
	if len(of.delays) > 0 {
		return nth(of.delays, attempt)
	}
	return growing(of.backoff, attempt)
}

func durations(value any) []time.Duration {
	all, _ := value.([]any)
	found := make([]time.Duration, len(all))
	for i, each := range all {
		number, _ := integer(each)
		found[i] = time.Duration(number) * time.Millisecond
	}
	return found
}

func nth(delays []time.Duration, attempt int64) time.Duration {
	return delays[min(max(attempt, 1), int64(len(delays)))-1]
}

func growing(backoff []time.Duration, attempt int64) time.Duration {
	first, last := backoff[0], max(backoff[0], backoff[1])
	full := min(float64(first)*float64(uint64(1)<<min(max(attempt-1, 0), 30)), float64(last))
	return time.Duration(full * (0.5 + rand.Float64()/2))
}
