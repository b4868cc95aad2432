package leaseq_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	leaseq "leaseq.dev/go"
)

// TestTheLogOfDeaths has a line for each reason for which items died where no handler ran.
func TestTheLogOfDeaths(t *testing.T) {
	var mu sync.Mutex
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(writerFunc(func(data []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return lines.Write(data)
	}), nil))
	has := func(want string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(lines.String(), want)
		}
	}
	client := open(t, leaseq.Logger(log))
	queue := queueOf(t, client)
	for _, id := range []string{"a", "b"} {
		options := []leaseq.AddOption{leaseq.ExpiresIn(time.Millisecond), leaseq.DeadOnExpiry(), leaseq.Keep(time.Minute)}
		if _, err := queue.Add(t.Context(), id, nil, options...); err != nil {
			t.Fatal(err)
		}
	}
	died := 0
	eventually(t, "both have expired", func() bool {
		done, err := queue.LightClean(context.Background())
		died += done.Died
		return err == nil && died == 2
	})
	eventually(t, "it is logged", has("reason=expired"))

	if _, err := queue.Add(t.Context(), "c", nil, leaseq.MaxAttempts(1), leaseq.Keep(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Lease(t.Context(), time.Millisecond, leaseq.Wait(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the next lease finds it dead", func() bool {
		_, _ = queue.Lease(t.Context(), time.Minute, leaseq.Wait(0))
		return has("first=c reason=\"its attempts are used up\"")()
	})
}
