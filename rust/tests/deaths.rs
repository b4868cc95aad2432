//! The log of items that died where no handler ran.

mod common;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Server, eventually, queue};
use leaseq::{AddOptions, NewItem, Wait};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const MINUTE: Duration = Duration::from_secs(60);

/// What was logged, a line for each event.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn have(&self, text: &str) -> bool {
        self.0.lock().unwrap().iter().any(|line| line.contains(text))
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("leaseq")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn what_dies_where_no_handler_ran_is_logged() {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    let short = AddOptions::new().expires_in(Duration::from_millis(1)).expires_to().keep(MINUTE);
    queue.add(NewItem::new("a", "").with(short)).await.unwrap();
    eventually("it expires", async || queue.light_clean().await.unwrap().died == 1).await;
    assert!(lines.have("reason=expired") && lines.have("first=a"), "{:?}", lines.0);

    queue.add(NewItem::new("b", "").with(AddOptions::new().max_attempts(1).keep(MINUTE))).await.unwrap();
    queue.lease(Duration::from_millis(1), Wait::No).await.unwrap().unwrap().forget();
    eventually("the next lease finds it dead", async || {
        assert!(queue.lease(MINUTE, Wait::No).await.unwrap().is_none());
        lines.have("first=b reason=its attempts are used up")
    })
    .await;
    client.close().await;
}
