//! Spans join producers and workers.
#![cfg(all(feature = "otel", feature = "jobs"))]

mod common;

use common::{Server, eventually, queue};
use leaseq::jobs::{App, Call, Context as JobContext};
use leaseq::{AddOptions, HandlerError, NewItem, Task};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, global};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

fn named(spans: &[SpanData], name: &str) -> SpanData {
    spans.iter().find(|each| each.name == name).unwrap_or_else(|| panic!("no span {name}")).clone()
}

#[tokio::test]
async fn a_handler_runs_in_a_child_of_the_span_in_which_its_item_was_added() {
    let exporter = InMemorySpanExporter::default();
    global::set_tracer_provider(SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build());
    global::set_text_map_propagator(TraceContextPropagator::new());
    let server = Server::start();
    let client = server.client();
    let (queue, app) = (queue(&client), App::new(&client, "shop", "jobs").function("fail", fail));

    let producing = Context::new().with_span(global::tracer("test").start("produce"));
    let options = AddOptions::new().traced(&producing);
    assert_eq!(options.headers.iter().map(|each| each.name.as_str()).collect::<Vec<_>>(), ["traceparent"]);
    queue.add(NewItem::new("a", "data").with(options.clone())).await.unwrap();
    app.enqueue(Call::new("fail").options(options.max_attempts(1))).await.unwrap();
    producing.span().end();

    let builder = client.worker([queue.clone()]).traced();
    let items = builder
        .build(|_: Task| async {
            tokio::task::yield_now().await;
            global::tracer("test").start("within"); // ends at once, in the span of the handler
            Ok(())
        })
        .unwrap();
    let jobs = app.worker(client.worker([app.queue().unwrap()]).traced()).unwrap();
    for worker in [items.clone(), jobs.clone()] {
        tokio::spawn(async move { worker.run().await.unwrap() });
    }
    eventually("all have ended", || async { exporter.get_finished_spans().unwrap().len() == 4 }).await;
    items.stop();
    jobs.stop();

    let spans = exporter.get_finished_spans().unwrap();
    let produce = named(&spans, "produce").span_context;
    let process = named(&spans, &format!("process {}", queue.name()));
    assert_eq!((process.parent_span_id, process.span_context.trace_id()), (produce.span_id(), produce.trace_id()));
    assert_eq!((&process.span_kind, &process.status), (&SpanKind::Consumer, &Status::Unset));
    assert!(process.attributes.iter().any(|each| each.key.as_str() == "messaging.message.id" && each.value.as_str() == "a"));
    assert_eq!(named(&spans, "within").parent_span_id, process.span_context.span_id());
    let failed = named(&spans, "process jobs");
    assert_eq!(failed.parent_span_id, produce.span_id());
    assert!(matches!(&failed.status, Status::Error { description } if description.starts_with("Error: no such order")));
}

async fn fail(_: JobContext, (): ()) -> Result<(), HandlerError> {
    Err(HandlerError::failed("no such order"))
}
