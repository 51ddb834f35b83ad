use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, status};
use crate::wire::{RunningTask, decode, number};

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
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    token: CancellationToken,
    lost: CancellationToken,
    why: OnceLock<Cancellation>,
    beat: Mutex<(u64, Option<Bytes>)>, // how many there were, and the newest if it was not answered yet
    details_max: usize,
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
    /// [`status::LIMIT`]: the details are larger than a payload may be.
    pub fn heartbeat(&self, details: impl Into<Bytes>) -> Result<(), Error> {
        let details = details.into();
        if details.len() > self.shared.details_max {
            let text = format!("details of {} bytes; the limit is {}", details.len(), self.shared.details_max);
            return Err(Error::new(status::LIMIT, text));
        }
        let mut beat = self.shared.beat.lock().unwrap();
        *beat = (beat.0 + 1, Some(details));
        Ok(())
    }
}

/// A task in hand, as its session sees it: from its arrival until its outcome is answered, or it is lost.
#[derive(Clone)]
pub struct Held {
    pub claim: String,
    shared: Arc<Shared>,
}

impl Held {
    pub fn new(task: &mut Task, details_max: usize) -> Self {
        task.shared = Arc::new(Shared { details_max, ..Shared::default() });
        Self { claim: task.claim.clone(), shared: Arc::clone(&task.shared) }
    }

    /// Is cancelled when nothing may be sent for it any more.
    pub fn lost(&self) -> &CancellationToken {
        &self.shared.lost
    }

    pub fn is_cancelled(&self) -> bool {
        self.shared.token.is_cancelled()
    }

    /// The first one counts.
    pub fn cancel(&self, why: Cancellation) {
        if self.shared.why.set(why).is_ok() {
            self.shared.token.cancel();
        }
    }

    pub fn lose(&self, kind: &str, reason: &str) {
        self.shared.lost.cancel();
        self.cancel(Cancellation { kind: kind.into(), reason: reason.into(), grace_ms: 0 });
    }

    /// For a renewal, with the heartbeat if there is one of at most `room` bytes, and then its number.
    pub fn running(&self, room: usize) -> (RunningTask, Option<u64>) {
        let beat = self.shared.beat.lock().unwrap();
        let details = beat.1.clone().filter(|details| details.len() <= room);
        let number = details.as_ref().map(|_| beat.0);
        let heartbeat = number.is_some();
        (RunningTask { claim: self.claim.clone(), heartbeat, details: details.unwrap_or_default() }, number)
    }

    /// The heartbeat of this number has arrived.
    pub fn beat_arrived(&self, number: u64) {
        let mut beat = self.shared.beat.lock().unwrap();
        if beat.0 == number {
            beat.1 = None;
        }
    }
}
