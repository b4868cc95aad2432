package leaseq

import (
	"bytes"
	"encoding/json"
	"time"
)

// reportMembers are those that a report must have; a missing one makes it one of another form.
var reportMembers = []string{"version", "host", "pid", "client", "started", "stopping", "concurrency", "completed", "queues", "held", "items"}

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
	if report.Version != 1 || min(report.Process, report.Concurrency, report.Completed, report.Held) < 0 || report.Started < 0 {
		return WorkerInfo{}, false
	}
	for _, each := range report.Queues {
		if !registryEntryPattern.MatchString(each) {
			return WorkerInfo{}, false
		}
	}
	// Workers of earlier clients do not say when they reported.
	var age int64
	if reported, ok := report.Reported.(float64); ok && reported == float64(int64(reported)) && reported >= 0 {
		age = max(0, now-int64(reported))
	}
	items := make([]HeldItem, len(report.Items))
	for i, each := range report.Items {
		if each.Queue == "" || each.Attempt < 0 || each.Ms < 0 {
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
