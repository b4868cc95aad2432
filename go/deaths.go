package leaseq

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// logDeaths logs the failures among the outcomes of a queue: a line for each reason, whatever their number.
func logDeaths(ctx context.Context, log *slog.Logger, queue string, ids []string, outcomes []Outcome) {
	var reasons []string
	died := map[string][]string{}
	for i, outcome := range outcomes {
		if outcome.State != OutcomeStateFailure {
			continue
		}
		reason, _, _ := strings.Cut(string(outcome.Content), "\n")
		if reason == "" {
			reason = "its attempts are used up"
		}
		if died[reason] == nil {
			reasons = append(reasons, reason)
		}
		died[reason] = append(died[reason], ids[i])
	}
	for _, reason := range reasons {
		items := died[reason]
		what := fmt.Sprintf("leaseq: %d items are dead letters", len(items))
		if len(items) == 1 {
			what = "leaseq: an item is a dead letter"
		}
		log.WarnContext(ctx, what, "queue", queue, "first", items[0], "reason", reason)
	}
}
