//! The methods of the adapter protocol, one function each.

use std::sync::Arc;
use std::time::Duration;

use leaseq::{
    Completion, ConfigureOptions, Extension, LeasedItem, ListOrder, ListState, NewItem, PartialError, Queue, ReleaseOptions, Released, Wait,
};
use serde_json::{Value, json};

use crate::arguments::{Arguments, b64};
use crate::forms::{self, Failure};
use crate::jobs;
use crate::looping;
use crate::pipeline::pipeline;
use crate::session::Session;

type Answer = Result<Value, Failure>;

/// The counts of the protocol. The client returns every count of the script, new ones too.
const COUNTS: &str = "items ready delayed leased dead kept overdue due added leases completed promoted reclaimed released died expired \
                      revived purged removed dropped largest max_data max_items max_attempts";

pub struct Call<'a> {
    pub session: &'a Session,
    pub handle: &'a str,
    pub args: Arguments<'a>,
    pub url: &'a str,
}

fn listed<T: std::fmt::Debug>(found: Result<Vec<T>, PartialError<T>>, form: impl Fn(&T) -> Value) -> Answer {
    match found {
        Ok(all) => Ok(all.iter().map(form).collect()),
        Err(failed) => Err(Failure::of_list(failed, form)),
    }
}

impl Call<'_> {
    pub async fn run(&self, method: &str) -> Answer {
        match method {
            "add" => self.add().await,
            "lease" => self.lease().await,
            "lease_any" => self.lease_any().await,
            "complete" => self.complete().await,
            "hand_off" => listed(self.queue()?.hand_off_all(self.completions()?).await, forms::completed),
            "complete_and_lease" => self.complete_and_lease().await,
            "extend" => self.extend().await,
            "release" => {
                let options = self.release_options()?;
                listed(self.release_all(options).await?, |state| json!(state.as_str()))
            }
            "dead_letter" => {
                let options = self.release_options()?.dead();
                listed(self.release_all(options).await?, |state| json!(*state == Released::Dead))
            }
            "outcome" => self.outcome().await,
            "wait_outcome" => {
                let id = self.args.bytes("id")?;
                let found = self.queue()?.wait_outcome(&id, self.wait()?).await?;
                Ok(forms::outcome(&id, &found))
            }
            "promote" => listed(self.queue()?.promote(&self.args.ids()?).await, |each| json!(each)),
            "revive" => listed(self.queue()?.revive(&self.args.ids()?).await, |each| json!(each)),
            "purge" => {
                let older = if self.args.has("older_than_ms") { self.args.duration("older_than_ms")? } else { Duration::ZERO };
                listed(self.queue()?.purge(&self.args.ids()?, older).await, |each| json!(each))
            }
            "remove" => listed(self.queue()?.remove(&self.args.ids()?).await, |each| json!(each.as_str())),
            "hold" => {
                self.only()?.heartbeat();
                Ok(json!({}))
            }
            "held" => Ok(json!({"held": self.only()?.is_held()})),
            "lost" => {
                self.only()?.lost().await;
                Ok(json!({}))
            }
            "queues" => Ok(json!({"queues": self.session.client.queues().await?})),
            "pipeline" => pipeline(self).await,
            "enqueue" => jobs::enqueue(self).await,
            "job" => jobs::job(self).await,
            "job_result" => jobs::result(self).await,
            "cancel_job" => jobs::cancel(self).await,
            "work" => looping::work(self),
            "live_workers" => looping::live_workers(self).await,
            "steer" => looping::steer(self).await,
            "handed_out" | "end_handlers" | "leave_off" | "finish" => looping::control(self, method).await,
            other => self.look(other).await,
        }
    }

    async fn look(&self, method: &str) -> Answer {
        let queue = self.queue()?;
        match method {
            "stats" => self.stats().await,
            "inspect" => {
                let ids = self.args.ids()?;
                let found = queue.inspect(&ids).await.map_err(|failed| Failure::of_list(failed, |_| Value::Null))?;
                Ok(ids.iter().zip(&found).map(|(id, each)| forms::info(id, each)).collect())
            }
            "list" => self.list().await,
            "configure" => self.configure().await,
            "delete" => Ok(json!({"deleted": self.queue()?.delete().await?})),
            "pause" => Ok(queue.pause().await.map(|()| json!({}))?),
            "resume" => Ok(queue.resume().await.map(|()| json!({}))?),
            "light_clean" => {
                let found = queue.light_clean().await?;
                Ok(json!({
                    "promoted": found.promoted, "reclaimed": found.reclaimed, "died": found.died, "expired": found.expired,
                    "pruned": found.pruned,
                }))
            }
            "deep_clean" => {
                let mut found = queue.deep_clean(self.args.flag("dry_run")).await?;
                found.retain(|_, count| *count > 0);
                Ok(json!(found))
            }
            other => Err(Failure::harness(format!("there is no method {other}"))),
        }
    }

    pub fn queue(&self) -> Result<Queue, Failure> {
        self.session.queue(self.handle)
    }

    fn only(&self) -> Result<Arc<LeasedItem>, Failure> {
        self.session.held(self.handle, self.args)
    }

    fn held(&self) -> Result<Vec<Arc<LeasedItem>>, Failure> {
        self.args.list("items").iter().map(|each| self.session.held(self.handle, *each)).collect()
    }

    fn wait(&self) -> Result<Wait, Failure> {
        match self.args.0.get("wait_ms") {
            None => Ok(Wait::No),
            Some(Value::Null) => Ok(Wait::Forever),
            Some(_) => Ok(Wait::For(self.args.duration("wait_ms")?)),
        }
    }

    fn count(&self) -> Result<usize, Failure> {
        if !self.args.has("count") {
            return Ok(1);
        }
        usize::try_from(self.args.number("count")?).map_err(|_| Failure::harness("count is below 0"))
    }

    fn completion(&self, item: &LeasedItem, entry: Arguments) -> Result<Completion, Failure> {
        let mut found = item.completion();
        if self.args.flag("only_current") {
            found = found.only_current();
        }
        if entry.has("result") {
            found = found.result(entry.bytes("result")?);
        }
        if entry.has("keep_ms") {
            found = found.keep(entry.duration("keep_ms")?);
        }
        for each in entry.list("then") {
            found = found.then(&self.session.queue(each.text("queue"))?, each.get("item").item(each.get("options"))?);
        }
        Ok(found)
    }

    fn completions(&self) -> Result<Vec<Completion>, Failure> {
        let held = self.held()?;
        held.iter().zip(self.args.list("items")).map(|(item, entry)| self.completion(item, entry)).collect()
    }

    fn release_options(&self) -> Result<ReleaseOptions, Failure> {
        let mut options = ReleaseOptions::new();
        if self.args.has("delay_ms") {
            options = options.delay(self.args.duration("delay_ms")?);
        }
        if self.args.flag("uncounted") {
            options = options.uncounted();
        }
        if self.args.has("error") {
            options = options.error(self.args.text("error"));
        }
        Ok(options)
    }

    async fn add(&self) -> Answer {
        let options = self.args.get("options");
        let items = self.args.list("items").iter().map(|each| each.item(options)).collect::<Result<Vec<NewItem>, Failure>>()?;
        listed(self.queue()?.add_all(&items, self.wait()?).await, forms::added)
    }

    async fn lease(&self) -> Answer {
        let items = self.queue()?.lease_all(self.count()?, self.args.duration("duration_ms")?, self.wait()?).await?;
        Ok(self.session.leased(&[self.handle], items))
    }

    async fn lease_any(&self) -> Answer {
        let handles = self.args.texts("queues");
        let queues = handles.iter().map(|each| self.session.queue(each)).collect::<Result<Vec<Queue>, Failure>>()?;
        let duration = self.args.duration("duration_ms")?;
        let items = self.session.client.lease_any(&queues, self.count()?, duration, self.wait()?).await?;
        Ok(self.session.leased(&handles, items))
    }

    async fn complete(&self) -> Answer {
        let mut entries = self.completions()?;
        if entries.len() == 1 {
            let item = self.held()?.remove(0);
            let found = item.complete_with(entries.remove(0)).await?;
            return Ok(json!([found.completed]));
        }
        listed(self.queue()?.complete_all(entries).await, |each| json!(each))
    }

    async fn complete_and_lease(&self) -> Answer {
        let entry = self.completion(&*self.only()?, Arguments(&Value::Null))?;
        let found = self.queue()?.complete_and_lease(vec![entry], 1, self.args.duration("duration_ms")?).await;
        let (completed, items) = found.map_err(|failed| Failure::of_list(failed, |each| json!(each)))?;
        Ok(json!({"completed": completed[0], "leases": self.session.leased(&[self.handle], items)["leases"]}))
    }

    async fn extend(&self) -> Answer {
        let duration = self.args.duration("duration_ms")?;
        let held = self.held()?;
        if let [only] = &held[..] {
            return Ok(json!([forms::deadline(&only.extend(duration).await?)]));
        }
        let entries: Vec<Extension> = held.iter().map(|each| Extension::of(each, duration)).collect();
        listed(self.queue()?.extend_all(&entries).await, forms::deadline)
    }

    async fn release_all(&self, options: ReleaseOptions) -> Result<leaseq::ListResult<Released>, Failure> {
        let held = self.held()?;
        if let [only] = &held[..] {
            return Ok(Ok(vec![only.release(options).await?]));
        }
        let entries = held.iter().map(|each| each.releasing().with(options.clone())).collect();
        Ok(self.queue()?.release_all(entries).await)
    }

    async fn outcome(&self) -> Answer {
        let ids = self.args.ids()?;
        let form = |found: &[leaseq::Outcome]| -> Vec<Value> { ids.iter().zip(found).map(|(id, each)| forms::outcome(id, each)).collect() };
        match self.queue()?.outcomes(&ids).await {
            Ok(found) => Ok(form(&found).into()),
            Err(PartialError { answers, in_doubt, cause, .. }) => Err(Failure::Client { answers: form(&answers), in_doubt, error: cause }),
        }
    }

    async fn stats(&self) -> Answer {
        let found = self.queue()?.stats().await?;
        let mut form: serde_json::Map<String, Value> =
            COUNTS.split_whitespace().filter_map(|name| Some((name.to_owned(), json!(found.get(name)?)))).collect();
        for name in ["now", "waited"] {
            form.insert(name.into(), json!(found.get(name).copied().unwrap_or_default().to_string()));
        }
        form.insert("paused".into(), json!(found.get("paused") == Some(&1)));
        Ok(form.into())
    }

    async fn list(&self) -> Answer {
        let states = [ListState::Ready, ListState::Delayed, ListState::Leased, ListState::Dead, ListState::Kept];
        let state = states.into_iter().find(|each| each.as_str() == self.args.text("state"));
        let order = [ListOrder::Forward, ListOrder::Backward].into_iter().find(|each| each.as_str() == self.args.text("order"));
        let (Some(state), Some(order)) = (state, order) else { return Err(Failure::harness("no such state or order")) };
        let page = self.queue()?.list(state, self.args.number("offset")?, self.args.number("limit")?, order).await?;
        let items: Vec<Value> =
            page.items.iter().map(|each| json!({"id": b64(each.id.as_bytes()), "time": forms::micros(each.time)})).collect();
        Ok(json!({"total": page.total, "items": items}))
    }

    async fn configure(&self) -> Answer {
        let number = |name: &str| self.args.has(name).then(|| self.args.number(name)).transpose();
        let mut changes = ConfigureOptions::new();
        changes.max_data = number("max_data")?;
        changes.max_items = number("max_items")?;
        changes.max_attempts = number("max_attempts")?;
        self.queue()?.configure(&changes).await?;
        Ok(json!({}))
    }
}
