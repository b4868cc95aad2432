package leaseq_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var programPattern = regexp.MustCompile("(?s)```go\n(package main.*?)```(?:\n\n```output\n(.*?)```)?")

// TestProgramsOfThePagesRun runs each program of the pages, with the server of the tests in place of localhost, and compares what it prints. One
// without an output is stopped after a moment: it is a worker.
func TestProgramsOfThePagesRun(t *testing.T) {
	for _, page := range []string{"README.md", "../docs/go.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		programs := programPattern.FindAllStringSubmatch(string(text), -1)
		if len(programs) == 0 {
			t.Fatal("no program in " + page)
		}
		for _, each := range programs {
			runProgram(t, strings.ReplaceAll(each[1], "redis://localhost:6379", serverURL), each[2])
		}
	}
}

func runProgram(t *testing.T, source, want string) {
	t.Helper()
	folder := t.TempDir()
	file, program := filepath.Join(folder, "main.go"), filepath.Join(folder, "program")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if printed, err := exec.Command("go", "build", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", printed, source)
	}
	limit := time.Minute
	if want == "" {
		limit, want = 500*time.Millisecond, "0 <nil>\n"
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	running := exec.CommandContext(ctx, program)
	running.Cancel = func() error { return running.Process.Signal(os.Interrupt) }
	if printed, _ := running.CombinedOutput(); !running.ProcessState.Success() || string(printed) != want {
		t.Errorf("%v: %s, not %s", running.ProcessState, printed, want)
	}
}
