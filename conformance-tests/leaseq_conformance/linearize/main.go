// Linearize checks the calls of a history, item by item, for linearizability with Porcupine.
//
// It reads one JSON object from standard input, {"timeout_ms": n, "items": {name: [operation, ...]}}, and writes one to
// standard output, {"items": {name: "ok" | "illegal" | "unknown"}, "checked": operations}. With an argument it writes a
// page (HTML) of the first item that is illegal to that path. A time-out is "unknown" and no "ok".
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

type input struct {
	TimeoutMS int64                  `json:"timeout_ms"`
	Items     map[string][]operation `json:"items"`
}

type output struct {
	Items   map[string]string `json:"items"`
	Checked int               `json:"checked"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "linearize:", err)
		os.Exit(2)
	}
}

func run() error {
	var in input
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return err
	}
	if in.TimeoutMS <= 0 {
		return fmt.Errorf("timeout_ms must be above 0")
	}
	out := output{Items: map[string]string{}}
	deadline := time.Now().Add(time.Duration(in.TimeoutMS) * time.Millisecond)
	names := make([]string, 0, len(in.Items))
	for name := range in.Items {
		names = append(names, name)
	}
	sort.Strings(names)
	shown := false
	for _, name := range names {
		left := time.Until(deadline)
		if left <= 0 { // Porcupine takes 0 for no limit at all
			out.Items[name] = "unknown"
			continue
		}
		history := operations(in.Items[name])
		out.Checked += len(history)
		result, info := porcupine.CheckOperationsVerbose(itemModel, history, left)
		switch result {
		case porcupine.Ok:
			out.Items[name] = "ok"
		case porcupine.Illegal:
			out.Items[name] = "illegal"
			if len(os.Args) > 1 && !shown {
				shown = true
				if err := porcupine.VisualizePath(itemModel, info, os.Args[1]); err != nil {
					return err
				}
			}
		default:
			out.Items[name] = "unknown"
		}
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// operations gives each operation without an outcome an end that never comes, and a client of its own.
func operations(of []operation) []porcupine.Operation {
	history := make([]porcupine.Operation, 0, len(of))
	for _, one := range of {
		end := one.Return
		if end == 0 {
			end = math.MaxInt64
		}
		history = append(history, porcupine.Operation{ClientId: one.Client, Input: one, Call: one.Call, Output: one, Return: end})
	}
	return history
}
