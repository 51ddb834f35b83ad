//! A worker and its sessions, one at a time: each goes on with the tasks of the one before (docs/gateway.md,
//! "A worker").

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_nats::{HeaderMap, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SetOnce, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::gateway::{Error, Told, check_name, encode, host, other_connection, pause, request, status};
use crate::task::{ActivityError, Held, Task, failure};

const ANSWER: Duration = Duration::from_secs(5); // to open and renew; no more than a third of the lease
const COMPLETE: Duration = Duration::from_secs(10);
const CLOSE_MORE: Duration = Duration::from_secs(10); // than the limit and the grace
const NEXT_MORE: Duration = Duration::from_secs(5); // than it waits
const FAR: Duration = Duration::from_secs(24 * 3600);
const DETAILS: usize = 16 * 1024; // of a gateway that does not say
const REFUSED: &str = "outcome_refused"; // type of the failure that a task has whose outcome the gateway cannot take

type Running = BoxFuture<'static, Result<Bytes, ActivityError>>;
type Activity = Arc<dyn Fn(Task) -> Running + Send + Sync>;

/// Runs activities of one queue. Made with [`Worker::new`] and the methods that follow it.
pub struct Worker {
    nats: async_nats::Client,
    namespace: String,
    queue: String,
    name: String,
    slots: usize,
    wait: Duration,
    stop_limit: Duration,
    activities: HashMap<String, Activity>,
    stop: CancellationToken,
    over: SetOnce<Result<(), Error>>, // how the worker ends
    free: Arc<Semaphore>, // slots: all but those of tasks in hand, and of handlers that run on for lost ones
    session: watch::Sender<Session>, // the last one that was opened
    state: Mutex<State>,
}

/// One with one gateway. When that does not answer, or does not go on, the session ends, and the next one takes its
/// tasks over.
#[derive(Clone, Default)]
struct Session {
    subject: String, // its operations are below
    ended: CancellationToken,
    lease: Duration,
    renew: Duration,
    grace: Duration,
    payload_max: usize,
    details_max: usize,
}

#[derive(Default)]
struct State {
    tasks: HashMap<String, Arc<Held>>, // in hand, by claim
    done: HashMap<String, Instant>,    // claims that were in hand: a task may come twice
    ended: CancellationToken,          // of the newest session, which may not be open yet, or not any more
    used: bool,                        // it has answered more than its open
    resume: String,                    // the last session that was opened, until its lease is over
    lease_end: Option<Instant>,
    stop_by: Option<Instant>, // when what still runs is to end, once the worker stops
}

/// A worker that runs. When that ends, also by dropping it, all is lost.
struct Run(Arc<Worker>);

impl Drop for Run {
    fn drop(&mut self) {
        self.0.state().lose_all("the worker ends");
    }
}

impl Worker {
    pub fn new(nats: async_nats::Client, queue: impl Into<String>) -> Self {
        Self {
            nats,
            namespace: "default".into(),
            queue: queue.into(),
            name: "rust-worker".into(),
            slots: 10,
            wait: Duration::from_secs(10),
            stop_limit: Duration::from_secs(30),
            activities: HashMap::new(),
            stop: CancellationToken::new(),
            over: SetOnce::new(),
            free: Arc::new(Semaphore::new(0)),
            session: watch::Sender::new(Session { lease: 10 * ANSWER, ..Session::default() }),
            state: Mutex::default(),
        }
    }

    /// `default` if it is not set.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// `[A-Za-z0-9_-]{1,64}`, shown in logs and lists.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Tasks at a time: 10 if it is not set.
    pub fn slots(self, slots: usize) -> Self {
        Self { slots, ..self }
    }

    /// How long a request for tasks waits at the gateway: 10 s if it is not set, at most 60 s.
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait: wait.min(Duration::from_secs(60)), ..self }
    }

    /// How long tasks may go on when the worker stops: 30 s if it is not set.
    pub fn stop_limit(self, limit: Duration) -> Self {
        Self { stop_limit: limit, ..self }
    }

    /// What to do for tasks of this name. A panic is a failed try.
    pub fn activity<F, Fut, Out>(mut self, name: impl Into<String>, run: F) -> Self
    where
        F: Fn(Task) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, ActivityError>> + Send + 'static,
        Out: Into<Bytes>,
    {
        let boxed = move |task| -> Running {
            let running = run(task);
            Box::pin(async move { running.await.map(Into::into) })
        };
        self.activities.insert(name.into(), Arc::new(boxed));
        self
    }

    /// Works until `stop` is cancelled, and then until the gateway holds nothing of this worker any more. A gateway or
    /// NATS server that is away is no error: it is tried again for ever. To end at once, drop the future: what is in
    /// hand is lost.
    ///
    /// # Errors
    /// A name is none, or the gateway refuses this worker: [`status::INVALID`] or [`status::DENIED`].
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        for (what, name) in [("namespace", &self.namespace), ("queue", &self.queue), ("worker", &self.name)] {
            check_name(what, name)?;
        }
        self.activities.keys().try_for_each(|name| check_name("activity", name))?;
        self.free.add_permits(self.slots);
        self.stop = stop;
        let Run(worker) = &Run(Arc::new(self));
        tokio::select! {
            biased;
            over = worker.over.wait() => over.clone(),
            never = worker.watch_lease() => never,
            () = worker.serve() => Ok(()),
        }
    }

    /// Ends the worker; the first reason counts.
    fn end(&self, how: Result<(), Error>) {
        let _ = self.over.set(how);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    // ---- sessions ----

    /// Opens sessions, one after the other, until the worker stops with nothing in hand.
    async fn serve(self: &Arc<Self>) {
        let (mut wait, mut tries) = (Duration::ZERO, 0);
        loop {
            let idle = self.state().tasks.is_empty(); // then it may stop before a session is open
            let until = if idle { self.stop.clone() } else { CancellationToken::new() };
            let Some(opened) = until.run_until_cancelled(self.open(wait)).await else { return };
            if let Some((session, notices)) = opened {
                session.ended.run_until_cancelled(self.work(&session, notices)).await;
            }
            let used = std::mem::take(&mut self.state().used); // then the next one at once
            tries = if used { 0 } else { tries };
            wait = if used { Duration::ZERO } else { pause(&mut tries).min(self.session.borrow().lease / 10) };
        }
    }

    /// Opens a session, which goes on with the tasks of the one before it unless the lease of that is over.
    async fn open(&self, wait: Duration) -> Option<(Session, Subscriber)> {
        sleep(wait).await;
        let inbox = self.nats.new_inbox(); // its own: of a task that was moved the old gateway says that it is lost
        let closed = |err| self.end(Err(Error::new(status::UNAVAILABLE, err)));
        let mut notices = self.nats.subscribe(inbox.clone()).await.map_err(closed).ok()?;
        tokio::select! {
            () = self.listen(&mut notices) => return None,
            _ = other_connection(&self.nats, None) => {}
        }
        let subject = format!("thole.{}.gateway", self.namespace);
        let session = Session { subject, ended: CancellationToken::new(), ..self.session.borrow().clone() };
        let ask = {
            let mut state = self.state();
            state.ended = session.ended.clone();
            json!({"worker": self.name, "slots": self.slots, "inbox": inbox, "host": host(),
                "activities": self.activities.keys().collect::<Vec<_>>(),
                "resume": state.resume, "claims": state.tasks.keys().collect::<Vec<_>>()})
        };
        let sent = Instant::now();
        let told = self.call(&session, &format!("open.{}", self.queue), &ask, ANSWER.min(session.lease / 3)).await;
        self.check_lease(); // an answer that comes later is not used
        let mut state = self.state();
        state.used = false;
        let complete = !told.subject.is_empty() && !told.session.is_empty() && told.lease_ms > 0;
        if told.status != status::OK || !complete || session.ended.is_cancelled() {
            return None;
        }
        let (lease, renew) = (Duration::from_millis(told.lease_ms), Duration::from_millis(told.renew_ms));
        let session = Session {
            subject: told.subject.clone(),
            lease,
            renew: if renew.is_zero() || renew > lease / 2 { lease / 3 } else { renew },
            grace: Duration::from_millis(told.grace_ms),
            payload_max: (told.payload_max as usize).min(self.nats.max_payload() / 2),
            details_max: if told.details_max == 0 { DETAILS } else { told.details_max },
            ..session
        };
        state.renewed(&session, sent, &told);
        state.resume = told.session;
        self.session.send_replace(session.clone());
        Some((session, notices))
    }

    /// Makes a request of a session, and ends the session if that has no answer or the gateway does not go on.
    async fn call(&self, session: &Session, operation: &str, ask: &Value, time: Duration) -> Told {
        self.check_lease();
        let subject = format!("{}.{operation}", session.subject);
        let told = tokio::select! {
            biased; // an answer that comes after the end is not looked at
            () = session.ended.cancelled() => return Told::unanswered("the session has ended"),
            told = request(&self.nats, &subject, ask, time, HeaderMap::new()) => told,
        };
        match told.status {
            status::OK => self.state().used = true,
            status::INVALID if operation == "complete" => {} // it is about the outcome
            status::INVALID | status::DENIED => self.end(Err(Error::new(told.status, &told.text))),
            status => {
                tracing::info!(operation, status, text = told.text, "not done");
                let stopping = status == status::UNAVAILABLE && operation == "next";
                if told.unanswered || stopping || status == status::NOT_FOUND {
                    session.ended.cancel();
                }
            }
        }
        told
    }

    /// What is done in a session until it ends.
    async fn work(self: &Arc<Self>, session: &Session, mut notices: Subscriber) {
        tokio::join!(self.listen(&mut notices), self.take_tasks(session), self.renew(session), self.close(session));
    }

    async fn listen(&self, notices: &mut Subscriber) {
        while let Some(message) = notices.next().await {
            self.state().notify(&Told::read(&message.payload)); // one that cannot be read names no claim
        }
        self.end(Err(Error::new(status::UNAVAILABLE, "the NATS connection is closed")));
    }

    /// Asks for tasks until the worker stops. What still comes then is taken all the same.
    async fn take_tasks(self: &Arc<Self>, session: &Session) {
        let mut tries = 0;
        loop {
            let free = self.free.acquire().await.map_or(0, |_| self.free.available_permits() + 1);
            if self.stop.is_cancelled() {
                return;
            }
            let ask = json!({"max": free, "waitMs": self.wait.as_millis() as u64});
            let told = self.call(session, "next", &ask, self.wait + NEXT_MORE).await;
            if told.status == status::OK {
                tries = 0;
                told.tasks.into_iter().for_each(|task| self.begin(session, task));
            } else {
                sleep(pause(&mut tries)).await;
            }
        }
    }

    async fn renew(&self, session: &Session) {
        let (mut wait, mut tries) = (session.renew, 0);
        loop {
            sleep(wait).await;
            let running = self.running();
            let sent = Instant::now();
            let told = self.call(session, "renew", &json!({"running": running}), ANSWER.min(session.lease / 3)).await;
            if told.status != status::OK {
                wait = pause(&mut tries).min(session.renew);
                continue;
            }
            (wait, tries) = (session.renew.saturating_sub(sent.elapsed()), 0);
            let mut state = self.state();
            if session.ended.is_cancelled() {
                return; // what it was told may be lost with it
            }
            state.renewed(session, sent, &told);
            for entry in &running {
                if let Some(held) = state.tasks.get(entry["claim"].as_str().unwrap_or_default()) {
                    held.beat.lock().unwrap().take_if(|newest| Arc::ptr_eq(newest, entry));
                }
            }
        }
    }

    /// What is in hand, with heartbeats as far as they fit into a message; the others come next time.
    fn running(&self) -> Vec<Arc<Value>> {
        let mut room = self.nats.max_payload() / 4 * 3;
        let entry = |(claim, held): (&String, &Arc<Held>)| {
            let beat = held.beat.lock().unwrap().clone().filter(|beat| beat.to_string().len() <= room);
            let entry = beat.unwrap_or_else(|| Arc::new(json!({"claim": claim})));
            room = room.saturating_sub(entry.to_string().len());
            entry
        };
        self.state().tasks.iter().map(entry).collect()
    }

    /// When the worker stops: closes the session. What runs after the limit is told to end.
    async fn close(&self, session: &Session) {
        self.stop.cancelled().await;
        let stop_by = *self.state().stop_by.get_or_insert(Instant::now() + self.stop_limit);
        let mut tries = 0;
        loop {
            let left = stop_by.saturating_duration_since(Instant::now());
            let ask = json!({"limitMs": left.as_micros().div_ceil(1000) as u64});
            let told = self.call(session, "close", &ask, left + CLOSE_MORE + session.grace).await;
            let late = Instant::now() >= stop_by + CLOSE_MORE && self.state().tasks.is_empty();
            if told.status == status::OK || late {
                return self.end(Ok(()));
            }
            sleep(pause(&mut tries)).await;
        }
    }

    // ---- the lease ----

    /// Looks in time whether the lease is over.
    async fn watch_lease(&self) -> Result<(), Error> {
        let mut sessions = self.session.subscribe();
        loop {
            let lease_end = self.state().lease_end.unwrap_or_else(|| Instant::now() + FAR);
            tokio::select! {
                () = sleep_until(lease_end) => self.check_lease(),
                _ = sessions.changed() => {}
            }
        }
    }

    /// When the lease is over, all is lost. Who is about to go by the lease asks, too: the process may have been stopped
    /// for long, and the timer need not be what runs first then.
    fn check_lease(&self) {
        let mut state = self.state();
        if state.lease_end.is_some_and(|end| Instant::now() >= end) {
            state.lose_all("no renewal was answered for a lease");
        }
    }

    // ---- tasks ----

    /// Runs a task, unless its claim is known. Without a slot, or when the session has ended, it comes again.
    fn begin(self: &Arc<Self>, session: &Session, mut task: Task) {
        self.check_lease();
        let mut state = self.state();
        let known = state.tasks.contains_key(&task.claim) || state.done.contains_key(&task.claim);
        if known || task.claim.is_empty() || session.ended.is_cancelled() {
            return;
        }
        let Ok(slot) = Arc::clone(&self.free).try_acquire_owned() else { return };
        task.held = Arc::new(Held { details_max: session.details_max, ..Held::default() });
        state.tasks.insert(task.claim.clone(), Arc::clone(&task.held));
        let worker = Arc::clone(self);
        tokio::spawn(async move {
            let (claim, held) = (task.claim.clone(), Arc::clone(&task.held));
            let outcome = worker.outcome(task).await;
            held.given_up.run_until_cancelled(worker.deliver(&claim, &held, outcome)).await;
            drop(slot);
        });
    }

    /// Runs the handler, and returns an `Outcome`.
    async fn outcome(&self, task: Task) -> Value {
        let Some(activity) = self.activities.get(&task.activity).cloned() else {
            let text = format!("this worker has no activity {}", task.activity);
            return failure(&task.claim, &text, "unknown_activity", false);
        };
        let (claim, held, has_token) = (task.claim.clone(), Arc::clone(&task.held), !task.completion_token.is_empty());
        // A task of its own, so that a panic ends nothing else.
        let ended = tokio::spawn(async move { activity(task).await }).await;
        let max = self.session.borrow().payload_max;
        let mut outcome = match ended {
            Ok(Ok(output)) if output.len() > max => {
                let text = format!("the output has {} bytes; the limit is {max}", output.len());
                failure(&claim, &text, "too_large", true)
            }
            Ok(Ok(output)) => return json!({"claim": claim, "output": encode(&output)}),
            Ok(Err(ActivityError::Later)) if has_token => return json!({"claim": claim, "later": true}),
            Ok(Err(ActivityError::Later)) => {
                failure(&claim, "this task cannot be completed later: it has no token", "no_token", true)
            }
            Ok(Err(ActivityError::Failed { text, kind, last })) => failure(&claim, &text, &kind, last),
            Ok(Err(_)) if held.token.is_cancelled() => json!({"claim": claim, "cancelled": true}),
            Ok(Err(ActivityError::Cancelled)) => failure(&claim, "says that it was cancelled, and was not", "", false),
            Ok(Err(ActivityError::Other(text))) => failure(&claim, &text, "", false),
            Err(panic) => failure(&claim, &panic.to_string(), "panic", false),
        };
        if let Some(beat) = held.beat.lock().unwrap().as_ref() {
            outcome["heartbeat"] = json!(true);
            outcome["details"] = beat["details"].clone();
        }
        outcome
    }

    /// Sends an outcome, in one session after the other, until it is stored or refused.
    async fn deliver(&self, claim: &str, held: &Held, outcome: Value) {
        let mut ask = json!({"outcomes": [outcome]});
        let (mut sent, mut tries) = (false, 0);
        let mut sessions = self.session.subscribe();
        loop {
            let open = sessions.wait_for(|session| !session.ended.is_cancelled()).await;
            let Ok(session) = open.map(|session| session.clone()) else { return };
            if held.given_up.is_cancelled() {
                return; // the session may have told so when it was opened
            }
            let again = std::mem::replace(&mut sent, true);
            let told = self.call(&session, "complete", &ask, COMPLETE).await;
            let answered = told.status == status::OK && !told.results.is_empty();
            let result = if answered { &told.results[0] } else { &told };
            match result.status {
                status::INVALID => {
                    let text = format!("the gateway cannot take an outcome: {}", result.text);
                    tracing::error!(claim, text, "a failed try");
                    if ask["outcomes"][0]["failure"]["type"] == REFUSED {
                        return self.end(Err(Error::new(status::INVALID, text)));
                    }
                    ask = json!({"outcomes": [failure(claim, &text, REFUSED, false)]});
                }
                status if answered && status != status::UNAVAILABLE && status != status::TIMEOUT => {
                    if status == status::FENCED && again {
                        tracing::info!(claim, "an outcome was sent before, and may be stored: its claim is gone");
                    } else if status != status::OK {
                        tracing::warn!(claim, status, "an outcome was refused");
                    }
                    return self.state().forget(claim, held);
                }
                _ => drop(session.ended.run_until_cancelled(sleep(pause(&mut tries))).await),
            }
        }
    }
}

impl State {
    /// Takes over an answer to what was sent then.
    fn renewed(&mut self, session: &Session, sent: Instant, told: &Told) {
        self.lease_end = Some(sent + session.lease);
        told.cancelled.iter().for_each(|notice| self.notify(notice));
        told.gone.iter().for_each(|claim| self.lose(claim, "the claim is gone"));
        self.done.retain(|_, ended| ended.elapsed() < session.lease);
    }

    fn notify(&self, notice: &Told) {
        if let Some(held) = self.tasks.get(&notice.claim) {
            held.cancel(&notice.kind, &notice.reason, notice.grace_ms);
        }
    }

    /// Gives a claim up, which may run elsewhere: its handler is to end, and how it ends is not sent.
    fn lose(&mut self, claim: &str, why: &str) {
        if let Some(held) = self.tasks.get(claim).cloned() {
            tracing::warn!(claim, why, "a task is lost");
            self.forget(claim, &held); // first, so that nothing is sent when the handler ends at once
            held.cancel("lease_lost", why, 0);
        }
    }

    /// Ends the session, too, and the next one is a new one.
    fn lose_all(&mut self, why: &str) {
        let claims: Vec<_> = self.tasks.keys().cloned().collect();
        claims.iter().for_each(|claim| self.lose(claim, why));
        self.done.clear(); // a new session may have claims of the same names
        self.resume.clear();
        self.lease_end = None;
        self.ended.cancel();
    }

    /// Ends a task: its outcome is stored or refused, or it is lost.
    fn forget(&mut self, claim: &str, held: &Held) {
        if !held.given_up.is_cancelled() {
            held.given_up.cancel();
            self.tasks.remove(claim);
            self.done.insert(claim.into(), Instant::now());
        }
    }
}
