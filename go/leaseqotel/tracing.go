// Package leaseqotel joins producer and worker by spans of OpenTelemetry, through the headers of an item.
//
// Where an item is added, inside a span: queue.Add(ctx, id, data, leaseqotel.Headers(ctx)). Where it is worked on:
// client.Worker(queues, leaseqotel.Traced(handler)); the handler runs in a child of that span.
package leaseqotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	leaseq "leaseq.dev/go"
)

// Headers is an option of an item to add: the headers that carry the span of the context, `traceparent` by default.
func Headers(ctx context.Context) leaseq.AddOption {
	carrier := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, carrier)
	var headers []leaseq.AddOption
	for _, name := range carrier.Keys() {
		headers = append(headers, leaseq.WithHeader(name, []byte(carrier.Get(name))))
	}
	return leaseq.Options(headers...)
}

// Option is an option of Traced.
type Option func(*settings)

type settings struct{ provider trace.TracerProvider }

// Provider is the provider of the tracer. Default: the global one.
func Provider(p trace.TracerProvider) Option { return func(s *settings) { s.provider = p } }

// Traced is a handler that runs another in a span `process QUEUE` of kind consumer, whose parent is the span that the headers carry. An error or a
// panic of the handler is recorded in it.
func Traced(next leaseq.Handler, options ...Option) leaseq.Handler {
	s := settings{otel.GetTracerProvider()}
	for _, each := range options {
		each(&s)
	}
	tracer := s.provider.Tracer("leaseq.dev/go")
	return func(ctx context.Context, item *leaseq.LeasedItem) error {
		carrier := propagation.MapCarrier{}
		for _, each := range item.Headers {
			carrier.Set(each.Name, string(each.Value))
		}
		ctx = otel.GetTextMapPropagator().Extract(ctx, carrier)
		name := item.Queue().Name()
		ctx, span := tracer.Start(ctx, "process "+name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attribute.String("messaging.system", "leaseq"),
			attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.destination.name", name),
			attribute.String("messaging.message.id", item.ID),
			attribute.Int("messaging.message.body.size", len(item.Data)),
			attribute.Int("leaseq.attempt", item.Attempt),
		))
		defer span.End() // a panic is recorded by the end of the span
		err := next(ctx, item)
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		return err
	}
}
