package leaseq

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"time"
)

// reportMembers are those that a report must have; a missing one makes it one of another form.
var reportMembers = []string{"version", "host", "pid", "client", "started", "stopping", "concurrency", "completed", "queues", "held", "items"}

// maxNumber is the largest number of a report: the integers up to here are the same in every language.
const maxNumber = 1<<53 - 1

// areCounts is false for numbers that no clock and no count reaches.
func areCounts(numbers ...int64) bool {
	return slices.Min(numbers) >= 0 && slices.Max(numbers) <= maxNumber
}

// readReport reads a report; false if it is invalid or of another version. Unknown members are dropped (LQ-WORKER-5).
func readReport(id, text string, now int64) (WorkerInfo, bool) {
	var members map[string]json.RawMessage
	var report struct {
		workerReport
		Reported any `json:"reported"`
	}
	if json.Unmarshal([]byte(text), &members) != nil || json.Unmarshal([]byte(text), &report) != nil {
		return WorkerInfo{}, false
	}
	for _, name := range reportMembers {
		if value := members[name]; value == nil || bytes.Equal(value, []byte("null")) {
			return WorkerInfo{}, false
		}
	}
	counts := []int64{int64(report.Process), int64(report.Concurrency), int64(report.Completed), int64(report.Held), report.Started}
	if report.Version != 1 || !areCounts(counts...) {
		return WorkerInfo{}, false
	}
	for _, each := range report.Queues {
		if !registryEntryPattern.MatchString(each) {
			return WorkerInfo{}, false
		}
	}
	// Workers of earlier clients do not say when they reported.
	var age int64
	if reported, ok := report.Reported.(float64); ok && reported >= 0 && reported <= maxNumber && reported == math.Trunc(reported) {
		age = max(0, now-int64(reported))
	}
	items := make([]HeldItem, len(report.Items))
	for i, each := range report.Items {
		if each.Queue == "" || !areCounts(int64(each.Attempt), each.Ms) {
			return WorkerInfo{}, false
		}
		each.Ms += age
		items[i] = each
	}
	return WorkerInfo{
		ID: id, Host: report.Host, Process: report.Process, Client: report.Client, Started: time.UnixMilli(report.Started),
		Stopping: report.Stopping, Quiet: report.Quiet, Concurrency: report.Concurrency, Completed: report.Completed, Queues: report.Queues,
		Held: report.Held, Items: items,
	}, true
}
