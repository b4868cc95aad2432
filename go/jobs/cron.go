package jobs

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// timetable has slots, in milliseconds since 1970; every program that knows the rule finds the same.
type timetable interface {
	// rule is for people.
	rule() string
	// after are the slots later than a time, in order.
	after(ms int64) iter.Seq[int64]
}

// interval has slots at multiples of a time since 1970.
type interval struct{ step int64 }

func (i interval) rule() string { return fmt.Sprintf("every %v s", float64(i.step)/1000) }

func (i interval) after(ms int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for slot := ms - ms%i.step + i.step; yield(slot); slot += i.step {
		}
	}
}

// crontab is a line of crontab, in a time zone. A line that names hours gives one slot for each time of the clock (LQ-JOB-40), a line for every
// hour one for each moment at which the clock shows a time of the line (LQ-JOB-41).
type crontab struct {
	line  string
	clock wallClock
	// the values of the fields
	minutes, hours, days, months, weekdays map[int]bool
	// bothDays: as in Debian's cron, a day has to be right by both fields if one of them starts with a star, else by one of them.
	bothDays bool
}

var nicknames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

var monthNames = strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")
var dayNames = strings.Fields("sun mon tue wed thu fri sat")

func newCrontab(line, zone string) (*crontab, error) {
	clock, err := newWallClock(zone)
	if err != nil {
		return nil, err
	}
	text := strings.ToLower(strings.TrimSpace(line))
	if long, known := nicknames[text]; known {
		text = long
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return nil, fmt.Errorf("jobs: %q is no line of crontab: it has minute, hour, day of month, month and day of week", line)
	}
	c := &crontab{line: line, clock: clock, bothDays: strings.HasPrefix(fields[2], "*") || strings.HasPrefix(fields[4], "*")}
	for i, each := range []struct {
		to          *map[int]bool
		least, most int
		names       []string
	}{
		{&c.minutes, 0, 59, nil}, {&c.hours, 0, 23, nil}, {&c.days, 1, 31, nil}, {&c.months, 1, 12, monthNames}, {&c.weekdays, 0, 7, dayNames},
	} {
		if *each.to, err = fieldOf(fields[i], each.least, each.most, each.names); err != nil {
			return nil, fmt.Errorf("jobs: %q is no line of crontab: %w", line, err)
		}
	}
	if c.weekdays[7] {
		c.weekdays[0] = true
	}
	if _, found := c.next(time.Unix(0, 0).UTC()); !found {
		return nil, fmt.Errorf("jobs: %q has no slot: no day is like that", line)
	}
	return c, nil
}

func (c *crontab) rule() string { return c.line + " " + c.clock.zone }

// fieldOf are the values of a field: parts with commas between, each a star, a value or a range, perhaps with a step.
func fieldOf(text string, least, most int, names []string) (map[int]bool, error) {
	found := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		from, to := least, most
		if span != "*" {
			fromText, toText, ranged := strings.Cut(span, "-")
			var err error
			if from, err = valueOf(fromText, least, names); err != nil {
				return nil, err
			}
			if to = from; stepped {
				to = most
			}
			if ranged {
				if to, err = valueOf(toText, least, names); err != nil {
					return nil, err
				}
			}
		}
		step := 1
		if stepped {
			var err error
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
				return nil, fmt.Errorf("no step: %q", part)
			}
		}
		if from < least || to > most || from > to {
			return nil, fmt.Errorf("%q is not within %d to %d", part, least, most)
		}
		for value := from; value <= to; value += step {
			found[value] = true
		}
	}
	return found, nil
}

func valueOf(text string, least int, names []string) (int, error) {
	if at := slices.Index(names, text); at >= 0 {
		return at + least, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("no value: %q", text)
	}
	return number, nil
}

// next is the next time that the line names, as if the zone were UTC.
func (c *crontab) next(shown time.Time) (time.Time, bool) {
	t := shown.Truncate(time.Minute).Add(time.Minute)
	for limit := shown.Year() + 60; t.Year() <= limit; {
		switch {
		case !c.months[int(t.Month())]:
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.isDay(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		case !c.hours[t.Hour()]:
			t = t.Truncate(time.Hour).Add(time.Hour)
		case !c.minutes[t.Minute()]:
			t = t.Add(time.Minute)
		default:
			return t, true
		}
	}
	return t, false
}

func (c *crontab) isDay(t time.Time) bool {
	day, weekday := c.days[t.Day()], c.weekdays[int(t.Weekday())]
	if c.bothDays {
		return day && weekday
	}
	return day || weekday
}

func (c *crontab) after(ms int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		var found []int64
		latest := ms
		shown, more := c.next(time.UnixMilli(c.clock.lowest(ms)).UTC())
		for ; more; shown, more = c.next(shown) {
			moments := c.moments(shown.UnixMilli())
			if len(moments) == 0 {
				continue
			}
			first := moments[0]
			found = append(found, moments...)
			slices.Sort(found)
			// The second moment of a time can be later than those of later times.
			for len(found) > 0 && found[0] <= first {
				slot := found[0]
				found = found[1:]
				if slot > latest {
					latest = slot
					if !yield(slot) {
						return
					}
				}
			}
		}
	}
}

func (c *crontab) moments(shown int64) []int64 {
	if len(c.hours) == 24 {
		return c.clock.moments(shown)
	}
	return []int64{c.clock.first(shown)}
}
