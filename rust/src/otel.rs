//! Spans of OpenTelemetry that join producer and worker through the headers of an item.

use opentelemetry::global;
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::generated::codecs::AddOptions;
use crate::item_run::Task;
use crate::leased_item::LeasedItem;
use crate::worker::Handler;
use crate::worker_settings::WorkerBuilder;

impl AddOptions {
    /// Adds the headers that carry the span of a context, `traceparent` by default, by the global propagator. Needs the feature `otel`.
    pub fn traced(mut self, context: &Context) -> Self {
        global::get_text_map_propagator(|propagator| propagator.inject_context(context, &mut self));
        self
    }
}

impl Injector for AddOptions {
    fn set(&mut self, key: &str, value: String) {
        if !value.is_empty() {
            self.headers.push(crate::Header { name: key.into(), value: value.into() });
        }
    }
}

impl Extractor for LeasedItem {
    fn get(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.header(key)?).ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.headers().iter().map(|each| each.name.as_str()).collect()
    }
}

impl WorkerBuilder {
    /// Runs each handler in a span `process QUEUE` of kind consumer, by the global tracer. Its parent is the span that the headers of the item
    /// carry: see [`AddOptions::traced`]. Needs the feature `otel`.
    pub fn traced(mut self) -> Self {
        self.settings.traced = true;
        self
    }
}

/// A handler that runs another in a span. An error or a panic is recorded in it.
pub(crate) fn traced(handler: Handler) -> Handler {
    Box::new(move |task| {
        let context = begin(&task);
        let _current = context.clone().attach();
        let running = handler(task).with_context(context.clone());
        Box::pin(async move {
            let _panic = Panic(&context);
            let ended = running.await;
            if let Err(error) = &ended {
                fail(&context, error.text());
            }
            context.span().end();
            ended
        })
    })
}

fn begin(task: &Task) -> Context {
    let parent = global::get_text_map_propagator(|propagator| propagator.extract(&**task));
    let tracer = global::tracer("leaseq");
    let name = task.queue().name();
    let span = tracer.span_builder(format!("process {name}")).with_kind(SpanKind::Consumer).with_attributes([
        KeyValue::new("messaging.system", "leaseq"),
        KeyValue::new("messaging.operation.type", "process"),
        KeyValue::new("messaging.destination.name", name.to_owned()),
        KeyValue::new("messaging.message.id", task.id().to_owned()),
        KeyValue::new("messaging.message.body.size", task.data().len() as i64),
        KeyValue::new("leaseq.attempt", task.attempt()),
    ]);
    parent.with_span(span.start_with_context(&tracer, &parent))
}

fn fail(context: &Context, text: &str) {
    let span = context.span();
    span.add_event("exception", vec![KeyValue::new("exception.message", text.to_owned())]);
    span.set_status(Status::error(text.to_owned()));
}

/// Notes that a handler panicked.
struct Panic<'a>(&'a Context);

impl Drop for Panic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            fail(self.0, "the handler panicked");
        }
    }
}
