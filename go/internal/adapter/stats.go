package main

import "strings"

// counts are those of the adapter protocol. The client returns every count of the script, new ones too.
const counts = "now items ready delayed leased dead kept overdue due waited added leases completed promoted reclaimed released died " +
	"expired revived purged removed dropped largest max_data max_items max_attempts paused"

func stats(c *methodCall) (any, error) {
	found, err := c.queue().Stats(c.ctx)
	if err != nil {
		return nil, err
	}
	form := object{}
	for _, name := range strings.Fields(counts) {
		if count, there := found[name]; there {
			form[name] = count
		}
	}
	for _, name := range []string{"now", "waited"} {
		form[name] = decimal(found[name])
	}
	form["paused"] = found["paused"] == 1
	return form, nil
}
