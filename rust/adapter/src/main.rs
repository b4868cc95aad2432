//! Speaks the adapter protocol of the conformance suite for the Rust client (conformance-tests/ADAPTER.md).

mod arguments;
mod forms;
mod job_worker;
mod jobs;
mod looping;
mod methods;
mod pipeline;
mod session;

use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_util::sync::CancellationToken;

use arguments::Arguments;
use forms::Failure;
use session::Session;

const CAPABILITIES: &str = "core blocking many fused heartbeat schedule expiry headers outcome handoff dead_letters limits many_queues cancel \
                            look registry clean configure delete promote pipeline cluster live_workers worker jobs job_chains job_worker job_schedules";

struct Program {
    url: Mutex<String>,
    session: Mutex<Option<Arc<Session>>>,
    running: Mutex<HashMap<i64, CancellationToken>>,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let words: Vec<String> = std::env::args().collect();
    if let [_, name, config] = &words[..]
        && name == "job-worker"
    {
        runtime.block_on(job_worker::run(config)).expect("the worker ends well");
        std::process::exit(0);
    }
    let program = Rc::new(Program { url: Mutex::default(), session: Mutex::default(), running: Mutex::default() });
    tokio::task::LocalSet::new().block_on(&runtime, program.serve());
    std::process::exit(0);
}

fn answer(id: &Value, mut reply: Value) {
    reply["id"] = id.clone();
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{reply}").and_then(|()| out.flush());
}

impl Program {
    async fn serve(self: Rc<Self>) {
        let mut lines = BufReader::with_capacity(1 << 20, tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = match serde_json::from_str(&arguments::without_halves(&line)) {
                Ok(request) => request,
                Err(error) => {
                    answer(&json!(0), json!({"harness": error.to_string()}));
                    continue;
                }
            };
            if request["op"] == "call" {
                let ended = CancellationToken::new();
                self.running.lock().unwrap().insert(request["id"].as_i64().unwrap_or_default(), ended.clone());
                tokio::task::spawn_local(self.clone().call(request, ended));
            } else if request["op"] == "close_client" {
                tokio::task::spawn_local(self.clone().handle(request));
            } else {
                self.clone().handle(request).await;
            }
        }
        let session = self.session.lock().unwrap().take();
        if let Some(session) = session {
            session.client.close().await;
        }
    }

    async fn handle(self: Rc<Self>, request: Value) {
        let reply = match self.op(&request).await {
            Ok(found) => json!({"ok": found}),
            Err(failure) => failure.into_message(),
        };
        answer(&request["id"], reply);
    }

    async fn op(&self, request: &Value) -> Result<Value, Failure> {
        let text = |name: &str| request[name].as_str().unwrap_or_default();
        match text("op") {
            "hello" => {
                *self.url.lock().unwrap() = text("url").to_owned();
                self.begin()?;
                let capabilities: Vec<&str> = CAPABILITIES.split_whitespace().collect();
                let client = json!({"name": "leaseq", "version": leaseq::VERSION, "language": "Rust"});
                let own = std::env::current_exe().map_err(|error| Failure::harness(error.to_string()))?;
                Ok(json!({
                    "protocol": 3, "client": client, "capabilities": capabilities, "scripts": leaseq::script_digests(),
                    "job_worker": [own.to_string_lossy(), "job-worker"],
                }))
            }
            "open" => {
                self.session()?.open(text("queue"), text("name"), request["group"].as_str())?;
                Ok(json!({}))
            }
            "close" => {
                self.session()?.close(text("queue"))?;
                Ok(json!({}))
            }
            "close_client" => {
                let before = self.session()?;
                self.begin()?;
                before.client.close().await;
                Ok(json!({}))
            }
            "cancel" => {
                if let Some(ended) = self.running.lock().unwrap().get(&request["call"].as_i64().unwrap_or_default()) {
                    ended.cancel();
                }
                Ok(json!({}))
            }
            other => Err(Failure::harness(format!("there is no op {other}"))),
        }
    }

    fn begin(&self) -> Result<(), Failure> {
        let session = Session::new(leaseq::Client::open(&self.url.lock().unwrap())?);
        *self.session.lock().unwrap() = Some(Arc::new(session));
        Ok(())
    }

    fn session(&self) -> Result<Arc<Session>, Failure> {
        self.session.lock().unwrap().clone().ok_or_else(|| Failure::harness("hello comes first"))
    }

    async fn call(self: Rc<Self>, request: Value, ended: CancellationToken) {
        let reply = match self.run(&request, &ended).await {
            Ok(found) => json!({"ok": found}),
            Err(failure) => failure.into_message(),
        };
        self.running.lock().unwrap().remove(&request["id"].as_i64().unwrap_or_default());
        answer(&request["id"], reply);
    }

    /// A call that is cancelled, or whose queue is closed, is dropped.
    async fn run(&self, request: &Value, ended: &CancellationToken) -> Result<Value, Failure> {
        let session = self.session()?;
        let args = Arguments(&request["args"]);
        let handle = request["queue"].as_str().unwrap_or_default();
        let closed = session.closing(&[&args.texts("queues")[..], &[handle]].concat());
        let url = self.url.lock().unwrap().clone();
        let call = methods::Call { session: &session, handle, args, url: &url };
        tokio::select! {
            biased;
            found = call.run(request["method"].as_str().unwrap_or_default()) => found,
            () = ended.cancelled() => Err(Failure::Cancelled),
            () = closed => Err(Failure::Cancelled),
        }
    }
}
