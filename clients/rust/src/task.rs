use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, status};
use crate::wire::{decode, number};

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
    #[serde(skip)]
    pub(crate) shared: Arc<Shared>,
}

/// What the handler and the worker tell each other.
#[derive(Default)]
pub struct Shared {
    pub token: CancellationToken,
    pub why: OnceLock<Cancellation>,
    pub beat: Mutex<Option<Bytes>>, // the newest heartbeat, if it was not answered yet
    pub payload_max: usize,
    pub details_max: usize,
}

impl Task {
    /// Is cancelled when the task is to end.
    pub fn token(&self) -> &CancellationToken {
        &self.shared.token
    }

    /// Why it is to end; `None`: it is not.
    pub fn cancellation(&self) -> Option<&Cancellation> {
        self.shared.why.get()
    }

    /// Says that it goes on, and stores `details` with the next renewal. The newest one counts.
    ///
    /// # Errors
    /// [`status::LIMIT`]: the details are larger than the gateway takes.
    pub fn heartbeat(&self, details: impl Into<Bytes>) -> Result<(), Error> {
        let (details, max) = (details.into(), self.shared.details_max);
        if details.len() > max {
            return Err(Error::new(status::LIMIT, format!("details of {} bytes; the limit is {max}", details.len())));
        }
        *self.shared.beat.lock().unwrap() = Some(details);
        Ok(())
    }
}

impl Shared {
    /// The first one counts.
    pub fn cancel(&self, kind: &str, reason: &str, grace_ms: u64) {
        if self.why.set(Cancellation { kind: kind.into(), reason: reason.into(), grace_ms }).is_ok() {
            self.token.cancel();
        }
    }
}
