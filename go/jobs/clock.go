package jobs

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // a machine may have no time zones
)

const dayMs = 86_400_000

// wallClock is the clock of a time zone, which is changed at most once within two days. Moments are milliseconds since 1970 UTC; times, as the
// clock shows them, are the milliseconds of the same time in UTC.
type wallClock struct {
	zone     string
	location *time.Location
}

func newWallClock(zone string) (wallClock, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "Local" {
		return wallClock{}, fmt.Errorf("jobs: there is no time zone %q: names are like \"Europe/Berlin\"", zone)
	}
	return wallClock{zone, location}, nil
}

// offset is the milliseconds that it is ahead of UTC.
func (c wallClock) offset(moment int64) int64 {
	_, seconds := time.UnixMilli(moment).In(c.location).Zone()
	return int64(seconds) * 1000
}

// lowest is a time that it does not go below from this moment on.
func (c wallClock) lowest(moment int64) int64 {
	now, later := c.offset(moment), c.offset(moment+dayMs)
	if later < now {
		later = c.offset(moment + now - later) // it is set back below the time of now if that is soon
	}
	return moment + min(now, later)
}

// moments are those at which it shows a time: one, two if it is set back, none if it is set forward.
func (c wallClock) moments(shown int64) []int64 {
	before, after := c.offset(shown-dayMs), c.offset(shown+dayMs)
	if before == after {
		return []int64{shown - before}
	}
	var found []int64
	for _, offset := range []int64{before, after} {
		if moment := shown - offset; c.offset(moment) == offset {
			found = append(found, moment)
		}
	}
	slices.Sort(found)
	return found
}

// first is the first moment at which it shows a time, or a later one.
func (c wallClock) first(shown int64) int64 {
	if found := c.moments(shown); len(found) > 0 {
		return found[0]
	}
	before, after := c.offset(shown-dayMs), c.offset(shown+dayMs)
	// The time is skipped: the clock is set forward between these.
	low, high := shown-after, shown-before
	for low < high {
		if middle := (low + high) / 2; c.offset(middle) == after {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
