package leaseqotel_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/internal/testserver"
	"leaseq.dev/go/leaseqotel"
)

var serverURL string

func TestMain(m *testing.M) {
	os.Exit(testserver.Run(m, &serverURL))
}

func TestHandlerRunsInASpanOfTheProducer(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	client, err := leaseq.Open(serverURL, leaseq.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queue := client.MustQueue("traced")
	ctx, span := provider.Tracer("test").Start(t.Context(), "enqueue")
	if _, err := queue.Add(ctx, "a", nil, leaseqotel.Headers(ctx)); err != nil {
		t.Fatal(err)
	}
	span.End()
	running, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	worker, err := client.Worker([]*leaseq.Queue{queue}, leaseqotel.Traced(func(context.Context, *leaseq.LeasedItem) error {
		stop()
		return errors.New("no such order")
	}, leaseqotel.Provider(provider)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Run(running); err != nil {
		t.Fatal(err)
	}
	spans := recorder.Ended()
	if len(spans) != 2 || spans[1].Name() != "process traced" || spans[1].Status().Code != codes.Error {
		t.Fatal(spans)
	}
	if spans[1].Parent().SpanID() != span.SpanContext().SpanID() {
		t.Error("the span of the producer is not the parent")
	}
}
