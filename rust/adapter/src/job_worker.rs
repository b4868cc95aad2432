//! The job worker program: its functions are those of conformance-tests/ADAPTER.md.

use std::io::Write;
use std::time::Duration;

use leaseq::jobs::{App, Call, Context, Missed};
use leaseq::{AddOptions, Client, HandlerError, Queue};
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

#[derive(Deserialize)]
struct Config {
    url: String,
    group: String,
    queues: Vec<String>,
    concurrency: usize,
    lease_ms: u64,
    schedules: bool,
}

pub async fn run(text: &str) -> Result<(), Box<dyn std::error::Error>> {
    let config: Config = serde_json::from_str(text)?;
    let client = Client::open(&config.url)?;
    let queues = config.queues.iter().map(|name| client.queue_in(&config.group, name)).collect::<leaseq::Result<Vec<Queue>>>()?;
    let builder = client
        .worker(queues)
        .concurrency(config.concurrency)
        .lease_for(Duration::from_millis(config.lease_ms))
        .grace(Duration::from_millis(500));
    let mut app = app(&client, &config.group, &config.queues[0]);
    if config.schedules {
        app = scheduled(app)?;
    }
    let worker = app.worker(builder)?;
    let mut term = signal(SignalKind::terminate())?;
    let stopped = worker.clone();
    tokio::spawn(async move {
        term.recv().await;
        stopped.stop();
    });
    worker.run().await?;
    client.close().await;
    Ok(())
}

#[derive(Deserialize)]
struct Echo {
    value: rmpv::Value,
}

#[derive(Deserialize)]
struct Sum {
    a: i64,
    #[serde(default)]
    b: i64,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

#[derive(Deserialize)]
struct Times {
    times: i64,
}

#[derive(Deserialize)]
struct Sleep {
    ms: u64,
}

#[derive(Deserialize)]
struct Mark {
    path: String,
}

#[derive(Deserialize)]
struct Late {
    ms: u64,
    how: String,
}

#[derive(Deserialize)]
struct Progress {
    done: f64,
    total: f64,
    ms: u64,
}

async fn sleep_for(_: Context, given: Sleep) -> Result<u64, HandlerError> {
    sleep(Duration::from_millis(given.ms)).await;
    Ok(given.ms)
}

async fn fail_late(context: Context, given: Late) -> Result<u64, HandlerError> {
    tokio::select! {
        () = sleep(Duration::from_millis(given.ms)) => Ok(given.ms),
        () = context.time_over() => match given.how.as_str() {
            "never_again" => Err(HandlerError::DeadLetter("late".into())),
            _ => Err(HandlerError::failed("late")),
        },
    }
}

/// Appends a byte to a file every 20 ms, until the worker ends it.
async fn mark(_: Context, given: Mark) -> Result<(), HandlerError> {
    loop {
        std::fs::OpenOptions::new().append(true).create(true).open(&given.path)?.write_all(b"x")?;
        sleep(Duration::from_millis(20)).await;
    }
}

async fn progress(context: Context, given: Progress) -> Result<(), HandlerError> {
    context.progress(given.done, Some(given.total));
    sleep(Duration::from_millis(given.ms)).await;
    Ok(())
}

async fn fail_times(context: Context, given: Times) -> Result<i64, HandlerError> {
    let attempt = context.attempt();
    if attempt > given.times { Ok(attempt) } else { Err(HandlerError::failed(format!("attempt {attempt}"))) }
}

fn scheduled(mut app: App) -> leaseq::Result<App> {
    let schedules = [
        ("hourly", "0 * * * *", "UTC"),
        ("skipped", "30 2 30 3 *", "Europe/Berlin"),
        ("skipped-several", "*/15 2 30 3 *", "Europe/Berlin"),
        ("twice", "30 2 26 10 *", "Europe/Berlin"),
        ("skipped-each-hour", "*/30 * 30 3 *", "Europe/Berlin"),
        ("twice-several", "*/30 2,3 26 10 *", "Europe/Berlin"),
        ("twice-each-hour", "*/30 * 26 10 *", "Europe/Berlin"),
    ];
    for (name, line, zone) in schedules {
        let tick = Call::new("tick").options(AddOptions::new().keep(Duration::from_secs(3600)));
        app = app.cron(name, line, zone, Missed::All, tick)?;
    }
    Ok(app)
}

fn app(client: &Client, group: &str, queue: &str) -> App {
    App::new(client, group, queue)
        .function("echo", |_, given: Echo| async move { Ok(given.value) })
        .function("add", |_, given: Sum| async move { Ok(given.a + given.b) })
        .function("fail", |_, given: Message| async move { Err::<(), _>(HandlerError::failed(given.message)) })
        .function("fail_for_good", |_, given: Message| async move { Err::<(), _>(HandlerError::DeadLetter(given.message)) })
        .function("never_again", |_, given: Message| async move { Err::<(), _>(HandlerError::DeadLetter(given.message)) })
        .function("fail_times", fail_times)
        .function("not_a_number", |_, (): ()| async { Ok(f64::NAN) })
        .function("sleep", sleep_for)
        .function("mark", mark)
        .limited("limited", Duration::from_millis(300), sleep_for)
        .function("fail_late", fail_late)
        .function("progress", progress)
        .function("tick", |_, (): ()| async { Ok("tick") })
}
