use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::gateway::{Error, decode, encode, number, status};

const TEXT_MAX: usize = 4096;

/// Why a task is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancellation {
    /// `requested`, `select_loser`, `explicit`, `ended`, `timeout`, `terminated`, `cancelled`, `shutdown`;
    /// `lease_lost`: another worker may run it now, and what this one returns is dropped.
    pub kind: String,
    pub reason: String,
    /// Time that the activity had to end when it was told.
    pub grace_ms: u64,
}

/// One try of an activity.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    pub(crate) claim: String,
    pub activity: String,
    pub queue: String,
    pub orchestration: String,
    pub version: u32,
    pub instance: String,
    #[serde(deserialize_with = "number")]
    pub execution: u64,
    #[serde(deserialize_with = "number")]
    pub activity_id: u64,
    pub try_number: u32,
    /// How often this try has been claimed.
    pub attempt: u32,
    #[serde(deserialize_with = "decode")]
    pub input: Bytes,
    /// The same for every try and every run of this activity: pass it on to services that must not do it twice.
    pub key: String,
    /// Of the last heartbeat before this claim.
    #[serde(deserialize_with = "decode")]
    pub details: Bytes,
    /// Until this try's deadline, when it came; 0: it has none.
    #[serde(deserialize_with = "number")]
    pub timeout_ms: u64,
    /// W3C Trace Context of the start; empty: it had none.
    pub traceparent: String,
    pub tracestate: String,
    /// For [`Client::complete_activity`](crate::Client::complete_activity), when the activity has ended with
    /// [`ActivityError::Later`]; empty: it must not be completed later.
    #[serde(rename = "token")]
    pub completion_token: String,
    #[serde(skip)]
    pub(crate) held: Arc<Held>,
}

/// What the worker knows of a task in hand.
#[derive(Default)]
pub struct Held {
    pub given_up: CancellationToken, // not in hand any more: the outcome is stored or refused, or the claim is lost
    pub token: CancellationToken,    // the handler's
    pub why: OnceLock<Cancellation>,
    pub beat: Mutex<Option<Arc<Value>>>, // the newest heartbeat that no answered renewal has had: a `RunningTask`
    pub details_max: usize,
}

impl Task {
    /// Is cancelled when the task is to end.
    pub fn token(&self) -> &CancellationToken {
        &self.held.token
    }

    /// Why it is to end; `None`: it is not.
    pub fn cancellation(&self) -> Option<&Cancellation> {
        self.held.why.get()
    }

    /// Says that it goes on, and stores `details` with the next renewal. The newest one counts.
    ///
    /// # Errors
    /// [`status::LIMIT`]: the details are larger than the gateway takes.
    pub fn heartbeat(&self, details: impl Into<Bytes>) -> Result<(), Error> {
        let (details, max) = (details.into(), self.held.details_max);
        if details.len() > max {
            return Err(Error::new(status::LIMIT, format!("details of {} bytes; the limit is {max}", details.len())));
        }
        let beat = json!({"claim": self.claim, "heartbeat": true, "details": encode(&details)});
        *self.held.beat.lock().unwrap() = Some(Arc::new(beat));
        Ok(())
    }
}

impl Held {
    /// The first one counts.
    pub fn cancel(&self, kind: &str, reason: &str, grace_ms: u64) {
        if self.why.set(Cancellation { kind: kind.into(), reason: reason.into(), grace_ms }).is_ok() {
            self.token.cancel();
        }
    }
}

/// Why an activity did not succeed. `?` makes one of any error: a failed try of no type, or, once the task has been
/// cancelled, its end because of that.
#[derive(Debug)]
pub enum ActivityError {
    /// The try has failed.
    Failed {
        text: String,
        /// `[A-Za-z0-9_.-]{0,64}`: orchestrations decide by it.
        kind: String,
        /// No other try.
        last: bool,
    },
    /// It has ended because it was cancelled.
    Cancelled,
    /// Its task is completed later, by who has its token.
    Later,
    /// Any other error.
    Other(String),
}

impl ActivityError {
    /// A failure of this type and text; another try may follow.
    pub fn failed(kind: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Failed { text: text.into(), kind: kind.into(), last: false }
    }

    /// A failure after which there is no other try.
    pub fn last(kind: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Failed { text: text.into(), kind: kind.into(), last: true }
    }
}

impl<E: std::error::Error> From<E> for ActivityError {
    fn from(err: E) -> Self {
        Self::Other(err.to_string())
    }
}

/// Makes an activity of a function of values. An input that cannot be read as one is a final failure of type
/// `bad_input`.
pub fn json<I, O, F, R>(activity: F) -> impl Fn(Task) -> BoxFuture<'static, Result<Bytes, ActivityError>>
where
    I: DeserializeOwned + Send + 'static,
    O: Serialize,
    F: Fn(I, Task) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<O, ActivityError>> + Send + 'static,
{
    move |task| {
        let activity = activity.clone();
        Box::pin(async move {
            let value = serde_json::from_slice(&task.input)
                .map_err(|err| ActivityError::last("bad_input", format!("the input cannot be read: {err}")))?;
            Ok(serde_json::to_vec(&activity(value, task).await?)?.into())
        })
    }
}

/// An `Outcome` that a gateway takes.
pub fn failure(claim: &str, text: &str, kind: &str, last: bool) -> Value {
    let text: String = text.chars().take(TEXT_MAX).map(|c| if c == '\0' { '\u{fffd}' } else { c }).collect();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let kind: String = kind.chars().map(allowed).take(64).collect();
    json!({"claim": claim, "failure": {"text": text, "type": kind, "final": last}})
}
