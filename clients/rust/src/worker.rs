use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::error::{ActivityError, Error, check_name, status};
use crate::link::{Answer, Link, Pause};
use crate::session::{Session, failure};
use crate::task::{Held, Task};
use crate::wire::{Ask, Outcome, Told};

const OPEN: Duration = Duration::from_secs(5);

type Running = Pin<Box<dyn Future<Output = Result<Bytes, ActivityError>> + Send>>;
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
        }
    }

    /// `default` if it is not set.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// `[A-Za-z0-9_-]{1,64}`, shown in logs and lists.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Tasks at a time: 10 if it is not set.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// How long a request for tasks waits at the gateway: 10 s if it is not set, at most 60 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait.min(Duration::from_secs(60));
        self
    }

    /// How long tasks may go on when the worker stops: 30 s if it is not set.
    pub fn stop_limit(mut self, limit: Duration) -> Self {
        self.stop_limit = limit;
        self
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
    /// NATS server that is away is no error: it is tried again for ever.
    ///
    /// # Errors
    /// A name is none, or the gateway refuses this worker: [`status::INVALID`] or [`status::DENIED`].
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        for (what, name) in [("namespace", &self.namespace), ("queue", &self.queue), ("worker", &self.name)] {
            check_name(what, name)?;
        }
        self.activities.keys().try_for_each(|name| check_name("activity", name))?;
        let limit = self.stop_limit;
        let inner = Arc::new(Inner {
            link: Link { nats: self.nats.clone() },
            worker: self,
            stop: stop.child_token(),
            changed: Notify::new(),
            busy: AtomicUsize::new(0),
            error: Mutex::new(None),
            sessions: Mutex::new(Vec::new()),
        });
        let mut pause = Pause::default();
        while !inner.stop.is_cancelled() {
            if let Some(session) = inner.open(&mut pause).await {
                inner.feed(&session, &mut pause).await;
            }
            inner.sessions.lock().unwrap().retain(|session| !session.is_over());
            inner.sleep(pause.next().saturating_sub(Pause::FIRST)).await; // at once, unless sessions end before they were of use
        }
        let sessions = inner.sessions.lock().unwrap().clone();
        join_all(sessions.iter().map(|session| session.close(limit))).await;
        let error = inner.error.lock().unwrap().take();
        error.map_or(Ok(()), Err)
    }
}

/// A worker that runs.
pub struct Inner {
    link: Link,
    worker: Worker,
    stop: CancellationToken,
    pub changed: Notify, // a slot may be free, or a session is over
    busy: AtomicUsize,   // slots taken: until an outcome is answered, and by a handler whose task is lost until it ends
    error: Mutex<Option<Error>>,
    sessions: Mutex<Vec<Arc<Session>>>,
}

impl Inner {
    /// Sleeps, or until the worker stops.
    async fn sleep(&self, pause: Duration) {
        tokio::select! {
            () = sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
    }

    async fn open(self: &Arc<Self>, pause: &mut Pause) -> Option<Arc<Session>> {
        let Worker { namespace, queue, name, slots, activities, .. } = &self.worker;
        while !self.stop.is_cancelled() {
            let inbox = self.link.nats.new_inbox();
            if let Ok(subscriber) = self.link.nats.subscribe(inbox.clone()).await {
                let ask = Ask {
                    worker: name,
                    slots: *slots,
                    activities: activities.keys().map(String::as_str).collect(),
                    inbox: &inbox,
                    ..Ask::default()
                };
                let subject = format!("thole.{namespace}.gateway.open.{queue}");
                let sent_at = Instant::now();
                match self.link.request(subject, &ask, OPEN, HeaderMap::new()).await {
                    Answer::Told(told) if told.status == status::OK && !told.subject.is_empty() => {
                        let session = Session::begin(Arc::clone(self), self.link.clone(), told, subscriber, sent_at);
                        self.sessions.lock().unwrap().push(Arc::clone(&session));
                        return Some(session);
                    }
                    Answer::Told(Told { status: code @ (status::INVALID | status::DENIED), text, .. }) => {
                        self.fatal(Error::new(code, format!("open: {text}")));
                    }
                    Answer::Told(_) | Answer::NoResponders | Answer::None(_) => {}
                }
            }
            self.sleep(pause.next()).await;
        }
        None
    }

    /// Asks for tasks until the session takes none any more.
    async fn feed(&self, session: &Arc<Session>, open_pause: &mut Pause) {
        let mut pause = Pause::default();
        while !self.stop.is_cancelled() && !session.takes_no_more() {
            let free = self.worker.slots.saturating_sub(self.busy.load(Ordering::Acquire));
            if free == 0 {
                tokio::select! {
                    () = self.changed.notified() => {}
                    () = self.stop.cancelled() => {}
                }
                continue;
            }
            // A task of its own: when the worker stops, what still comes is taken all the same.
            let asked = tokio::spawn(Arc::clone(session).next(free, self.worker.wait));
            let status = tokio::select! {
                status = asked => status.ok().flatten(),
                () = self.stop.cancelled() => return,
            };
            match status {
                Some(status::OK) => {
                    pause.reset();
                    open_pause.reset();
                }
                Some(status::UNAVAILABLE) => session.retire(),
                _ if session.is_over() => {}
                _ => self.sleep(pause.next()).await,
            }
        }
    }

    pub fn run_task(inner: &Arc<Self>, session: Arc<Session>, held: Held, task: Task) {
        inner.busy.fetch_add(1, Ordering::AcqRel);
        let inner = Arc::clone(inner);
        tokio::spawn(async move {
            let outcome = inner.outcome(&held, task).await;
            session.complete(&held, outcome).await;
            inner.busy.fetch_sub(1, Ordering::AcqRel);
            inner.changed.notify_one();
        });
    }

    async fn outcome(&self, held: &Held, task: Task) -> Outcome {
        let claim = &held.claim;
        let Some(activity) = self.worker.activities.get(&task.activity).cloned() else {
            return failure(
                claim,
                &format!("this worker has no activity {}", task.activity),
                "unknown_activity",
                false,
            );
        };
        // A task of its own, so that a panic ends nothing else.
        match tokio::spawn(async move { activity(task).await }).await {
            Ok(Ok(output)) => Outcome { claim: claim.clone(), output, ..Outcome::default() },
            Ok(Err(ActivityError::Failed { text, kind, last })) => failure(claim, &text, &kind, last),
            Ok(Err(_)) if held.is_cancelled() => {
                Outcome { claim: claim.clone(), cancelled: true, ..Outcome::default() }
            }
            Ok(Err(ActivityError::Cancelled)) => failure(claim, "says that it was cancelled, and was not", "", false),
            Ok(Err(ActivityError::Other(text))) => failure(claim, &text, "", false),
            Err(err) => {
                let text = err.try_into_panic().map_or_else(|err| err.to_string(), |panic| panic_text(&*panic));
                failure(claim, &format!("panic: {text}"), "panic", false)
            }
        }
    }

    /// The worker cannot go on.
    pub fn fatal(&self, err: Error) {
        let sessions = self.sessions.lock().unwrap().clone();
        for session in sessions {
            session.end("shutdown", &err.text);
        }
        self.error.lock().unwrap().get_or_insert(err);
        self.stop.cancel();
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".into())
}
