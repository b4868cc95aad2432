//! Calls of one kind on one queue, for all their callers. An entry that comes while as many calls are under way as are made at a time waits, and
//! goes along with the others in the next one: many callers at once cost few calls, and a single one does not wait.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::error::{Error, Result};
use crate::generated::scripts::MAX_ENTRIES;
use crate::health::is_server_away;
use crate::home::Home;
use crate::lease::first;
use crate::queue::Queue;

/// How many bytes one call for several callers has at most, unless one entry alone is longer.
const MAX_BYTES: usize = 4 << 20;

/// An entry of a call that takes several.
pub(crate) trait Entry: Clone + Send + 'static {
    type Answer: Send + 'static;
    /// How many calls are under way at a time.
    const AT_ONCE: usize;
    /// How long it waits at most, without limit if there is none. Behind a server that does not answer, it is not sent.
    fn limit(_queue: &Queue) -> Option<Duration> {
        None
    }
    /// How many bytes it has.
    fn size(&self) -> usize;
    /// Makes one call, and returns an answer for each entry.
    fn call(queue: &Queue, entries: Vec<Self>) -> impl Future<Output = Result<Vec<Self::Answer>>> + Send;
}

pub(crate) struct Gatherer<E: Entry>(Mutex<State<E>>);

struct State<E: Entry> {
    calls: usize,
    waiting: Vec<Waiting<E>>,
    /// Where the calls that are under way were made.
    home: Option<Home>,
}

/// An entry of one caller.
struct Waiting<E: Entry> {
    entry: E,
    answer: oneshot::Sender<Result<E::Answer>>,
    /// When it is too late to send it.
    until: Option<Instant>,
}

impl<E: Entry> Default for Gatherer<E> {
    fn default() -> Self {
        Gatherer(Mutex::new(State { calls: 0, waiting: Vec::new(), home: None }))
    }
}

/// What an entry that comes gets.
enum Turn<E: Entry> {
    /// It is sent at once.
    Now(E),
    /// It is sent in the next call.
    Next(oneshot::Receiver<Result<E::Answer>>),
}

impl<E: Entry> Gatherer<E> {
    /// Makes a call with the entry and returns its answer. If the future is dropped before the entry is sent, it is not sent.
    pub(crate) async fn run(self: &Arc<Self>, queue: &Queue, entry: E) -> Result<E::Answer> {
        match self.turn(queue, entry)? {
            Turn::Now(entry) => {
                let _place = Place { gatherer: self.clone(), queue: queue.clone() };
                first(E::call(queue, vec![entry]).await?)
            }
            Turn::Next(answered) => answered.await.unwrap_or_else(|_| Err(Error::closed())),
        }
    }

    fn turn(&self, queue: &Queue, entry: E) -> Result<Turn<E>> {
        let mut state = self.state();
        if state.calls < E::AT_ONCE {
            state.calls += 1;
            state.home = Some(Home::here());
            return Ok(Turn::Now(entry));
        }
        // the next call is made where these are
        state.home.as_ref().map_or(Ok(()), Home::check)?;
        let (answer, answered) = oneshot::channel();
        let until = E::limit(queue).map(|limit| Instant::now() + limit);
        state.waiting.push(Waiting { entry, answer, until });
        Ok(Turn::Next(answered))
    }

    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the calls under way.
struct Place<E: Entry> {
    gatherer: Arc<Gatherer<E>>,
    queue: Queue,
}

impl<E: Entry> Drop for Place<E> {
    /// Makes the next call in the place of the one that has ended, or was dropped.
    fn drop(&mut self) {
        let group = {
            let mut state = self.gatherer.state();
            let group = state.next(Instant::now());
            if group.is_empty() {
                state.calls -= 1;
                return;
            }
            group
        };
        let place = Place { gatherer: self.gatherer.clone(), queue: self.queue.clone() };
        // without a runtime the place and the group are dropped, and with them those that wait
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                send(&place.queue, group).await;
                yield_now().await; // callers that go on at once with the next entry go along
            });
        }
    }
}

impl<E: Entry> State<E> {
    /// Takes what one call takes. A caller that is gone has taken its entry back.
    fn next(&mut self, now: Instant) -> Vec<Waiting<E>> {
        self.waiting.retain(|each| !each.answer.is_closed());
        for late in self.waiting.extract_if(.., |each| each.until.is_some_and(|until| until < now)) {
            let error = Error::unavailable("the server did not answer earlier calls in time, and this one was not sent");
            drop(late.answer.send(Err(error)));
        }
        let mut total = 0;
        let fits = self.waiting.iter().take(MAX_ENTRIES).take_while(|each| {
            total += each.entry.size();
            total <= MAX_BYTES
        });
        let count = fits.count().max(1).min(self.waiting.len());
        let rest = self.waiting.split_off(count);
        std::mem::replace(&mut self.waiting, rest)
    }
}

/// Makes a call for a group. If it is refused, each half goes alone, until the error reaches the entry that caused it. If the server is away, all get
/// the error.
async fn send<E: Entry>(queue: &Queue, group: Vec<Waiting<E>>) {
    let mut groups = vec![group];
    while let Some(mut group) = groups.pop() {
        match E::call(queue, group.iter().map(|each| each.entry.clone()).collect()).await {
            // a caller whose future was dropped does not wait
            Ok(answers) => group.into_iter().zip(answers).for_each(|(each, answer)| drop(each.answer.send(Ok(answer)))),
            Err(error) if group.len() == 1 || is_server_away(&error) => {
                group.into_iter().for_each(|each| drop(each.answer.send(Err(error.clone()))));
            }
            Err(_) => {
                groups.push(group.split_off(group.len() / 2));
                groups.push(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Word;

    impl Entry for Word {
        type Answer = ();
        const AT_ONCE: usize = 1;

        fn size(&self) -> usize {
            1
        }

        async fn call(_: &Queue, entries: Vec<Word>) -> Result<Vec<()>> {
            Ok(vec![(); entries.len()])
        }
    }

    fn waiting(until: Option<Instant>) -> (Waiting<Word>, oneshot::Receiver<Result<()>>) {
        let (answer, answered) = oneshot::channel();
        (Waiting { entry: Word, answer, until }, answered)
    }

    #[test]
    fn what_waits_longer_than_a_reply_may_take_is_not_sent() {
        let now = Instant::now();
        let (late, mut refused) = waiting(Some(now));
        let (timely, _timely) = waiting(Some(now + Duration::from_secs(60)));
        let (unlimited, _unlimited) = waiting(None);
        let (gone, answered) = waiting(None);
        drop(answered);
        let mut state = State { calls: 1, waiting: vec![late, timely, unlimited, gone], home: None };
        assert_eq!(state.next(now + Duration::from_secs(1)).len(), 2);
        assert!(state.waiting.is_empty());
        let error = refused.try_recv().expect("it is answered").expect_err("it is refused");
        assert!(is_server_away(&error) && error.is_definite(), "{error}");
    }
}
