//! The sessions of a worker, one at a time: each goes on with the tasks of the one before (docs/gateway.md, "A worker").

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_nats::{HeaderMap, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, status};
use crate::link::{PAUSE_MIN, connected, host, pause, request};
use crate::task::{Shared, Task};
use crate::wire::{Notice, Told, encode};
use crate::worker::{Worker, failure};

const OPEN: Duration = Duration::from_secs(5);
const COMPLETE: Duration = Duration::from_secs(10);
const CLOSE_MORE: Duration = Duration::from_secs(10);
const NEXT_MORE: Duration = Duration::from_secs(5);
const DETAILS: usize = 16 * 1024; // of a gateway that does not say
const REFUSED: &str = "outcome_refused";
const DONE_MAX: usize = 1_000; // claims that are remembered so that a task which comes again is known

#[derive(Clone)]
struct Session {
    id: String,
    subject: String,
    lease: Duration,
    renew: Duration,
    grace: Duration,
    payload_max: usize,
    details_max: usize,
}

impl Session {
    fn subject(&self, operation: &str) -> String {
        format!("{}.{operation}", self.subject)
    }

    /// How long a renewal, or an open that goes on with it, may take: others can be asked within the lease.
    fn answer(&self) -> Duration {
        (self.lease / 5).clamp(Duration::from_secs(1), OPEN)
    }
}

/// What is there for all sessions of a worker.
pub struct Sessions {
    worker: Worker,
    stop: CancellationToken,
    slots: Arc<Semaphore>, // taken until an outcome is answered, and by a handler whose task is lost until it ends
    state: Mutex<State>,
    ended: Notify, // there are outcomes to send
}

#[derive(Default)]
struct State {
    session: Option<Session>,    // to go on with, until its lease is over
    lease_end: Option<Instant>,  // by our clock
    opens: u32,                  // since a renewal was answered
    hand: HashMap<String, Held>, // by claim, until the outcome is answered, or the task is lost
    done: VecDeque<String>,      // claims that were in hand
    ended: Vec<String>,          // claims whose outcomes are to be sent
    limit_end: Option<Instant>,  // of a graceful stop
}

struct Held {
    shared: Arc<Shared>,
    outcome: Option<(Arc<Value>, Option<OwnedSemaphorePermit>)>, // when its handler has ended: the request, and the slot
    sent: bool,                                                  // the outcome may be stored, although no answer came
}

impl State {
    fn cancel(&self, notice: &Notice) {
        if let Some(held) = self.hand.get(&notice.claim) {
            held.shared.cancel(&notice.kind, &notice.reason, notice.grace_ms);
        }
    }

    /// They may run elsewhere, or nowhere: their handlers are to end, and how they end is not sent.
    fn lose(&mut self, claims: &[String], kind: &str, reason: &str) {
        for claim in claims {
            if let Some(held) = self.remove(claim) {
                tracing::warn!(claim, reason, "a task is lost");
                held.shared.cancel(kind, reason, 0);
            }
        }
    }

    fn lose_all(&mut self, kind: &str, reason: &str) {
        self.lose(&self.claims(), kind, reason);
        (self.session, self.lease_end) = (None, None);
        self.done.clear(); // a new session may have claims of the same names
    }

    fn remove(&mut self, claim: &str) -> Option<Held> {
        let held = self.hand.remove(claim)?;
        self.done.truncate(DONE_MAX - 1);
        self.done.push_front(claim.into());
        Some(held)
    }

    fn claims(&self) -> Vec<String> {
        self.hand.keys().cloned().collect()
    }

    /// The request that completes a task whose handler has ended, while it is in hand.
    fn outcome(&self, claim: &str) -> Option<Arc<Value>> {
        Some(self.hand.get(claim)?.outcome.as_ref()?.0.clone())
    }
}

impl Sessions {
    /// Works until `stop` is cancelled, and then until nothing is in hand any more.
    pub async fn run(worker: Worker, stop: CancellationToken) -> Result<(), Error> {
        let slots = Arc::new(Semaphore::new(worker.slots));
        let own = Arc::new(Self { worker, stop, slots, state: Mutex::default(), ended: Notify::new() });
        let result = own.serve_all().await;
        own.state().lose_all("shutdown", "the worker ends");
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn take_notices(&self, mut notices: Subscriber) {
        while let Some(message) = notices.next().await {
            self.state().cancel(&serde_json::from_slice(&message.payload).unwrap_or_default());
        }
    }

    async fn serve_all(self: &Arc<Self>) -> Result<(), Error> {
        let nats = &self.worker.nats;
        loop {
            // Of its own: of a task that was moved the gateway before says that it is lost.
            let inbox = nats.new_inbox();
            let notices = nats.subscribe(inbox.clone()).await.map_err(Error::unavailable)?;
            let served = tokio::select! {
                served = self.serve(&inbox) => served,
                () = self.take_notices(notices) => return Err(Error::unavailable("the NATS connection is closed")),
            };
            let Err(err) = served else { return Ok(()) };
            if matches!(err.status, status::INVALID | status::DENIED) {
                return Err(err);
            }
            tracing::info!(%err, "the session is interrupted");
            if self.is_lease_over() {
                self.state().lose_all("lease_lost", "no renewal was answered for a lease");
            }
        }
    }

    /// Opens a session, and serves it until it is closed, or an error says that another one has to go on with it.
    async fn serve(self: &Arc<Self>, inbox: &str) -> Result<(), Error> {
        let session = tokio::select! {
            ended = self.watch_lease() => return ended,
            () = self.stopped_without_tasks() => return Ok(()),
            opened = self.open(inbox) => opened?,
        };
        tokio::select! {
            ended = self.watch_lease() => ended,
            ended = self.renew(&session) => ended,
            ended = self.complete(&session) => ended,
            ended = self.next(&session) => ended,
            ended = self.close(&session) => ended,
        }
    }

    async fn stopped_without_tasks(&self) {
        self.stop.cancelled().await;
        if !self.state().hand.is_empty() {
            pending::<()>().await;
        }
    }

    async fn open(&self, inbox: &str) -> Result<Session, Error> {
        let Worker { nats, namespace, queue, name, slots, activities, .. } = &self.worker;
        let (before, wait) = {
            let mut state = self.state();
            (state.session.clone(), pause(&mut state.opens) - PAUSE_MIN) // at once, unless the last one was of no use
        };
        sleep(wait.min(before.as_ref().map_or(OPEN, |session| session.lease / 10))).await;
        connected(nats).await;
        let ask = json!({"worker": name, "slots": slots, "activities": activities.keys().collect::<Vec<_>>(),
            "inbox": inbox, "host": host(), "resume": before.as_ref().map_or("", |session| &session.id),
            "claims": self.state().claims()});
        let sent_at = Instant::now();
        let subject = format!("thole.{namespace}.gateway.open.{queue}");
        let told = self.ask(&subject, &ask, before.as_ref().map_or(OPEN, Session::answer)).await?;
        if told.status != status::OK || told.subject.is_empty() {
            return Err(Error::unavailable(told.text));
        }
        let session = Session {
            id: told.session,
            subject: told.subject,
            lease: Duration::from_millis(told.lease_ms),
            renew: Duration::from_millis(told.renew_ms),
            grace: Duration::from_millis(told.grace_ms),
            payload_max: (told.payload_max as usize).min(nats.max_payload() / 2),
            details_max: if told.details_max == 0 { DETAILS } else { told.details_max },
        };
        let mut state = self.state();
        state.session = Some(session.clone());
        state.lease_end = Some(sent_at + session.lease);
        state.lose(&told.gone, "lease_lost", "the claim is gone");
        state.ended = state.claims(); // those that have ended are completed again
        Ok(session)
    }

    /// One request, of a session or to open one. An answer has a status that allows to go on.
    async fn ask(&self, subject: &str, ask: &Value, time: Duration) -> Result<Told, Error> {
        if self.is_lease_over() {
            return Err(Error::unavailable("the lease is over")); // if all was stopped, nobody has looked at it yet
        }
        let told = request(&self.worker.nats, subject, ask, time, HeaderMap::new()).await?;
        match told.status {
            status::INVALID | status::DENIED | status::NOT_FOUND => Err(Error::new(told.status, told.text)),
            _ => Ok(told),
        }
    }

    // ---- lease ----

    fn is_lease_over(&self) -> bool {
        self.state().lease_end.is_some_and(|end| Instant::now() >= end)
    }

    /// Fails when the lease is over.
    async fn watch_lease(&self) -> Result<(), Error> {
        while !self.is_lease_over() {
            let Some(end) = self.state().lease_end else { return pending().await };
            sleep_until(end).await;
        }
        Err(Error::unavailable("no renewal was answered for a lease"))
    }

    async fn renew(&self, session: &Session) -> Result<(), Error> {
        let (mut wait, mut tries) = (session.renew, 0);
        loop {
            sleep(wait).await;
            let (running, beats) = self.running();
            let sent_at = Instant::now();
            let told = self.ask(&session.subject("renew"), &json!({"running": running}), session.answer()).await?;
            if told.status != status::OK {
                wait = pause(&mut tries).min(session.renew);
                continue;
            }
            (wait, tries) = (session.renew.saturating_sub(sent_at.elapsed()), 0);
            let mut state = self.state();
            state.lease_end = Some(sent_at + session.lease);
            state.opens = 0;
            for (shared, sent) in beats {
                shared.beat.lock().unwrap().take_if(|newest| *newest == sent);
            }
            told.cancelled.iter().for_each(|notice| state.cancel(notice));
            state.lose(&told.gone, "lease_lost", "the claim is gone");
        }
    }

    /// What is in hand, with heartbeats as far as they fit into a message, and these.
    fn running(&self) -> (Vec<Value>, Vec<(Arc<Shared>, Bytes)>) {
        let (mut running, mut beats) = (Vec::new(), Vec::new());
        let mut room = self.worker.nats.max_payload() / 4 * 3;
        for (claim, Held { shared, .. }) in &self.state().hand {
            let beat = shared.beat.lock().unwrap().clone().filter(|details| details.len() * 4 / 3 <= room);
            running.push(match &beat {
                Some(details) => json!({"claim": claim, "heartbeat": true, "details": encode(details)}),
                None => json!({"claim": claim}),
            });
            room = room.saturating_sub(claim.len() + 64 + beat.as_ref().map_or(0, |details| details.len() * 4 / 3));
            beats.extend(beat.map(|details| (Arc::clone(shared), details)));
        }
        (running, beats)
    }

    // ---- tasks ----

    /// Asks for tasks until the worker stops. What still comes then is taken all the same.
    async fn next(self: &Arc<Self>, session: &Session) -> Result<(), Error> {
        let (wait, mut tries) = (self.worker.wait, 0);
        loop {
            let free = tokio::select! {
                biased;
                () = self.stop.cancelled() => return pending().await,
                slot = self.slots.acquire() => slot.map_or(0, |_| self.slots.available_permits() + 1),
            };
            let ask = json!({"max": free, "waitMs": wait.as_millis() as u64});
            let told = self.ask(&session.subject("next"), &ask, wait + NEXT_MORE).await?;
            match told.status {
                status::OK => {
                    tries = 0;
                    told.tasks.into_iter().for_each(|task| self.take(session, task));
                }
                status::UNAVAILABLE => return Err(Error::unavailable(told.text)),
                _ => sleep(pause(&mut tries)).await,
            }
        }
    }

    fn take(self: &Arc<Self>, session: &Session, mut task: Task) {
        let claim = task.claim.clone();
        let mut state = self.state();
        if claim.is_empty() || state.hand.contains_key(&claim) || state.done.contains(&claim) {
            return;
        }
        let (payload_max, details_max) = (session.payload_max, session.details_max);
        let shared = Arc::new(Shared { payload_max, details_max, ..Shared::default() });
        task.shared = Arc::clone(&shared);
        state.hand.insert(claim.clone(), Held { shared: Arc::clone(&shared), outcome: None, sent: false });
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
        let own = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = json!({"outcomes": [own.worker.outcome(task).await]});
            let mut state = own.state();
            // It may be lost, and another one have its name.
            if let Some(held) = state.hand.get_mut(&claim).filter(|held| Arc::ptr_eq(&held.shared, &shared)) {
                held.outcome = Some((Arc::new(outcome), slot));
                state.ended.push(claim);
                own.ended.notify_one();
            }
        });
    }

    /// Sends the outcomes.
    async fn complete(&self, session: &Session) -> Result<(), Error> {
        let mut sending = FuturesUnordered::new();
        loop {
            let ended = std::mem::take(&mut self.state().ended);
            sending.extend(ended.into_iter().map(|claim| self.complete_one(session, claim)));
            tokio::select! {
                () = self.ended.notified() => {}
                Some(completed) = sending.next() => completed?,
            }
        }
    }

    /// Sends an outcome until it is answered, or the task is lost.
    async fn complete_one(&self, session: &Session, claim: String) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let Some(outcome) = self.state().outcome(&claim) else { return Ok(()) };
            let again = self.state().hand.get_mut(&claim).is_some_and(|held| std::mem::replace(&mut held.sent, true));
            match self.ask(&session.subject("complete"), &outcome, COMPLETE).await {
                Err(_) if self.state().outcome(&claim).is_none() => {}
                Err(Error { status: status::INVALID, text }) => self.refuse(&claim, &outcome, text)?,
                Ok(Told { status: status::OK, results, .. })
                    if results.first().is_some_and(|result| result.status == status::INVALID) =>
                {
                    self.refuse(&claim, &outcome, results.into_iter().next().unwrap_or_default().text)?;
                }
                Ok(told) if is_settled(&claim, &told, again) => drop(self.state().remove(&claim)),
                Ok(_) => sleep(pause(&mut tries)).await,
                Err(end) => return Err(end),
            }
        }
    }

    /// The gateway cannot take the outcome: the try has failed. Fails when it cannot take that either.
    fn refuse(&self, claim: &str, told: &Value, why: String) -> Result<(), Error> {
        let err = Error::new(status::INVALID, format!("the gateway cannot take an outcome: {why}"));
        tracing::error!(claim, %err, "a failed try");
        if told["outcomes"][0]["failure"]["type"] == REFUSED {
            return Err(err);
        }
        if let Some((outcome, _)) = self.state().hand.get_mut(claim).and_then(|held| held.outcome.as_mut()) {
            *outcome = Arc::new(json!({"outcomes": [failure(claim, &err.text, REFUSED, false)]}));
        }
        Ok(())
    }

    // ---- the end ----

    /// When the worker stops: closes the session. What runs after the limit is told to end.
    async fn close(&self, session: &Session) -> Result<(), Error> {
        self.stop.cancelled().await;
        let limit_end = *self.state().limit_end.get_or_insert(Instant::now() + self.worker.stop_limit);
        let mut tries = 0;
        while Instant::now() < limit_end + CLOSE_MORE || !self.state().hand.is_empty() {
            let left = limit_end.saturating_duration_since(Instant::now());
            let grace = if self.state().hand.is_empty() { Duration::ZERO } else { session.grace };
            let ask = json!({"limitMs": left.as_micros().div_ceil(1000) as u64});
            match self.ask(&session.subject("close"), &ask, left + CLOSE_MORE + grace).await {
                Ok(told) if told.status != status::OK => sleep(pause(&mut tries)).await,
                Err(end) if !self.state().hand.is_empty() => return Err(end),
                _ => break,
            }
        }
        Ok(())
    }
}

/// Whether the outcome is stored, or refused for good.
fn is_settled(claim: &str, told: &Told, again: bool) -> bool {
    let status = match told.results.first() {
        Some(result) if told.status == status::OK => result.status,
        _ => return told.status == status::FENCED,
    };
    if status == status::FENCED && again {
        tracing::info!(claim, "an outcome was sent before, and may be stored: its claim is gone");
    } else if !matches!(status, status::OK | status::UNAVAILABLE | status::TIMEOUT) {
        tracing::warn!(claim, status, "an outcome was refused");
    }
    !matches!(status, status::UNAVAILABLE | status::TIMEOUT)
}
