/// Statuses that matter to a worker or a client; there are others.
pub mod status {
    pub const OK: u32 = 0;
    pub const INVALID: u32 = 2;
    pub const LIMIT: u32 = 3;
    pub const CANCELLED: u32 = 6;
    pub const APP: u32 = 7;
    pub const CONFLICT: u32 = 8;
    pub const UNAVAILABLE: u32 = 9;
    pub const NOT_FOUND: u32 = 10;
    pub const TIMEOUT: u32 = 11;
    pub const DENIED: u32 = 13;
    pub const FENCED: u32 = 14;
}

/// The gateway refused, or did not answer in time ([`status::UNAVAILABLE`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} (status {status})")]
pub struct Error {
    /// One of [`status`], or another one of thole's.
    pub status: u32,
    pub text: String,
}

impl Error {
    pub(crate) fn new(status: u32, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(crate) fn unavailable(text: impl ToString) -> Self {
        Self::new(status::UNAVAILABLE, text.to_string())
    }
}

/// A namespace, queue, worker, activity, orchestration, event or query; others do not get into a subject.
pub(crate) fn check_name(what: &str, value: &str) -> Result<(), Error> {
    if (1..=64).contains(&value.len()) && value.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-') {
        return Ok(());
    }
    Err(Error::new(status::INVALID, format!("{value:?} is no {what}: [A-Za-z0-9_-]{{1,64}}")))
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
