use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::error::{ActivityError, Error, check_name};
use crate::session::Sessions;
use crate::task::Task;
use crate::wire::encode;

const TEXT_MAX: usize = 4096;

type Running = Pin<Box<dyn Future<Output = Result<Bytes, ActivityError>> + Send>>;
type Activity = Arc<dyn Fn(Task) -> Running + Send + Sync>;

/// Runs activities of one queue. Made with [`Worker::new`] and the methods that follow it.
pub struct Worker {
    pub(crate) nats: async_nats::Client,
    pub(crate) namespace: String,
    pub(crate) queue: String,
    pub(crate) name: String,
    pub(crate) slots: usize,
    pub(crate) wait: Duration,
    pub(crate) stop_limit: Duration,
    pub(crate) activities: HashMap<String, Activity>,
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
        Sessions::run(self, stop).await
    }

    /// Runs the activity, and returns an `Outcome`.
    pub(crate) async fn outcome(&self, task: Task) -> Value {
        let Some(activity) = self.activities.get(&task.activity).cloned() else {
            let text = format!("this worker has no activity {}", task.activity);
            return failure(&task.claim, &text, "unknown_activity", false);
        };
        let (claim, shared) = (task.claim.clone(), task.shared.clone());
        let (max, token) = (shared.payload_max, task.token().clone());
        // A task of its own, so that a panic ends nothing else.
        let mut outcome = match tokio::spawn(async move { activity(task).await }).await {
            Ok(Ok(output)) if output.len() > max => {
                let text = format!("the output has {} bytes; the limit is {max}", output.len());
                failure(&claim, &text, "too_large", true)
            }
            Ok(Ok(output)) => json!({"claim": claim, "output": encode(&output)}),
            Ok(Err(ActivityError::Failed { text, kind, last })) => failure(&claim, &text, &kind, last),
            Ok(Err(_)) if token.is_cancelled() => json!({"claim": claim, "cancelled": true}),
            Ok(Err(ActivityError::Cancelled)) => failure(&claim, "says that it was cancelled, and was not", "", false),
            Ok(Err(ActivityError::Other(text))) => failure(&claim, &text, "", false),
            Err(panic) => failure(&claim, &panic.to_string(), "panic", false),
        };
        // Of a success none is kept.
        if let Some(details) = shared.beat.lock().unwrap().as_ref().filter(|_| outcome.get("output").is_none()) {
            outcome["heartbeat"] = json!(true);
            outcome["details"] = json!(encode(details));
        }
        outcome
    }
}

pub(crate) fn failure(claim: &str, text: &str, kind: &str, last: bool) -> Value {
    let text: String = text.chars().take(TEXT_MAX).map(|c| if c == '\0' { '\u{fffd}' } else { c }).collect();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let kind: String = kind.chars().map(allowed).take(64).collect();
    json!({"claim": claim, "failure": {"text": text, "type": kind, "final": last}})
}
