// asynq.
//
// Settings:
// - `Concurrency: 100`; the default is the number of CPUs, which would be 1 here
// - `TaskCheckInterval: 10 * time.Millisecond`: how often an idle worker polls; the default is 1 s
// - finished tasks are not kept, which is the default
// - bulk: there is no call for many; single calls, 100 at a time, over the pool of connections
//
// Reference: https://pkg.go.dev/github.com/hibiken/asynq, https://github.com/hibiken/asynq/wiki

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// sent is the argument of a function, as libraries of functions write it.
type sent struct {
	Data string `json:"data"`
}

func runAsynq(o orders) error {
	server := asynq.RedisClientOpt{Addr: fmt.Sprintf("127.0.0.1:%d", o.Port), DB: o.Database}
	if o.produces() {
		client := asynq.NewClient(server)
		one := func(j job) error {
			content, err := json.Marshal(sent{j.data})
			if err != nil {
				return err
			}
			_, err = client.Enqueue(asynq.NewTask("handle", content, asynq.TaskID(j.id)))
			return err
		}
		return produce(one, crowd(one))
	}
	left, err := newTraces(o)
	if err != nil {
		return err
	}
	mux := asynq.NewServeMux()
	mux.HandleFunc("handle", func(_ context.Context, task *asynq.Task) error {
		var given sent
		if err := json.Unmarshal(task.Payload(), &given); err != nil {
			return err
		}
		return work(o, left, given.Data)
	})
	worker := asynq.NewServer(server, asynq.Config{
		Concurrency: o.concurrency(100), TaskCheckInterval: 10 * time.Millisecond, LogLevel: asynq.WarnLevel,
	})
	return worker.Run(mux)
}
