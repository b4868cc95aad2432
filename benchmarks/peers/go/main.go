// The adapters in Go: one program, whose first argument says which. The same as adapters/common.py, which explains the protocol.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// orders are what an adapter is to do: see Orders in adapters/common.py.
type orders struct {
	Role         string  `json:"role"`
	Port         int     `json:"port"`
	Folder       string  `json:"folder"`
	Handler      string  `json:"handler"`
	WaitMS       float64 `json:"wait_ms"`
	Concurrency  int     `json:"concurrency"`
	Variant      string  `json:"variant"`
	Database     int     `json:"database"`
	PostgresPort int     `json:"postgres_port"`
}

func (o orders) produces() bool { return o.Role == "produce" }

func (o orders) concurrency(best int) int {
	if o.Concurrency > 0 {
		return o.Concurrency
	}
	return best
}

func main() {
	adapters := map[string]func(orders) error{"asynq.go": runAsynq, "river.go": runRiver, "leaseq.go": runLeaseq}
	var given orders
	if err := json.Unmarshal([]byte(os.Getenv("LEASEQ_BENCH")), &given); err != nil {
		fail(err)
	}
	if err := adapters[os.Args[1]](given); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// work handles one item: it takes the time that it is ordered to take, and leaves traces.
func work(o orders, t *traces, data string) error {
	if o.Handler == "wait" {
		time.Sleep(time.Duration(o.WaitMS * float64(time.Millisecond)))
	}
	return t.leave(o.Handler, data)
}
