//! Requests to a gateway, and what is read of its answers: the JSON mapping of proto/gateway.proto.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::{Client, HeaderMap, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::task::Task;

const LOOK: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

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
#[error("{text} (status {status}) {next_step}")]
pub struct Error {
    /// One of [`status`], or another one of thole's.
    pub status: u32,
    pub text: String,
    /// Of the instance that [`Client::wait`](crate::Client::wait) has waited for in vain, as in [`Instance`]; else empty.
    pub state: String,
    /// Why it does not go on, and what would help; empty: that is not known.
    pub reason: String,
    pub next_step: String,
}

impl Error {
    pub(crate) fn new(status: u32, text: impl ToString) -> Self {
        Told::new(status, text).into()
    }
}

impl From<Told> for Error {
    fn from(told: Told) -> Self {
        let Told { status, text, state, reason, next_step, .. } = told;
        Self { status, text, state, reason, next_step }
    }
}

/// What is known of an instance. Times are milliseconds since 1970.
#[derive(Debug, Clone, Deserialize, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Instance {
    pub instance: String,
    pub orchestration: String,
    /// 0: not chosen yet.
    pub version: u32,
    #[serde(deserialize_with = "number")]
    pub execution: u64,
    /// `pending`, `running`, `waiting`, `stuck`, `paused`, `completed`, `failed`, `cancelled`, `terminated`.
    pub state: String,
    /// Why it does not go on: `no_code`, `divergence`, `paused` and others.
    pub reason: String,
    /// The same for people; of a failure the head of its text.
    pub detail: String,
    pub custom_status: String,
    pub parent: String,
    #[serde(deserialize_with = "number")]
    pub created_ms: u64,
    #[serde(deserialize_with = "number")]
    pub updated_ms: u64,
    #[serde(deserialize_with = "number")]
    pub turns: u64,
    #[serde(deserialize_with = "number")]
    pub open_activities: u64,
    #[serde(deserialize_with = "number")]
    pub open_timers: u64,
    /// Of [`Client::describe`](crate::Client::describe): what keeps it from going on; none: it goes on, waits for time
    /// or an event, or has ended.
    #[serde(skip)]
    pub hindrances: Vec<Hindrance>,
}

/// What keeps an instance from going on, until somebody does something.
#[derive(Debug, Clone, Deserialize, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Hindrance {
    /// A reason; or `no_engine`, `not_taken`, `no_worker`, `unknown_activity`, `quarantined`.
    pub kind: String,
    pub text: String,
    /// What would let it go on.
    pub next_step: String,
}

/// A namespace, queue, worker, activity, orchestration, event or query; others do not get into a subject.
pub fn check_name(what: &str, value: &str) -> Result<(), Error> {
    if (1..=64).contains(&value.len()) && value.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-') {
        return Ok(());
    }
    Err(Error::new(status::INVALID, format!("{value:?} is no {what}: [A-Za-z0-9_-]{{1,64}}")))
}

/// Any answer, each result of a `complete`, and a notice. What a message does not have is empty.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Told {
    #[serde(skip)]
    pub unanswered: bool,
    pub status: u32,
    pub text: String,
    pub session: String, // SessionOpened
    pub subject: String,
    pub lease_ms: u64,
    pub renew_ms: u64,
    pub grace_ms: u64,
    #[serde(deserialize_with = "number")]
    pub payload_max: u64,
    pub details_max: usize,
    pub tasks: Vec<Task>,     // Tasks
    pub cancelled: Vec<Told>, // TasksRenewed
    pub gone: Vec<String>,    // TasksRenewed, SessionOpened
    pub results: Vec<Told>,   // TasksCompleted
    pub claim: String,        // Notice
    pub kind: String,
    pub reason: String,
    pub instance: String, // to a client
    pub state: String,
    #[serde(deserialize_with = "decode")]
    pub output: Bytes,
    pub error_type: String,
    pub next_step: String,
    pub note: String,
    pub info: Instance,
    pub hindrances: Vec<Hindrance>,
    pub instances: Vec<Instance>,
}

impl Told {
    fn new(status: u32, text: impl ToString) -> Self {
        Self { status, text: text.to_string(), ..Self::default() }
    }

    pub fn unanswered(why: impl ToString) -> Self {
        Self { unanswered: true, ..Self::new(status::UNAVAILABLE, why) }
    }

    pub fn read(payload: &[u8]) -> Self {
        let object = payload.trim_ascii_start().starts_with(b"{"); // serde takes a list for a struct, too
        let told = if object { serde_json::from_slice(payload).ok() } else { None };
        told.unwrap_or_else(|| Self::new(status::UNAVAILABLE, "the answer cannot be read"))
    }
}

pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub fn decode<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    STANDARD.decode(String::deserialize(from)?).map(Bytes::from).map_err(D::Error::custom)
}

/// A 64-bit number is a string in JSON, and may be a number.
pub fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(from)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| D::Error::custom(format!("no number: {value}")))
}

/// Asks a gateway. Nothing is sent while the connection is cut. When it is cut afterwards, the answer may be lost.
pub async fn request(nats: &Client, subject: &str, ask: &Value, time: Duration, mut headers: HeaderMap) -> Told {
    headers.insert("Content-Type", "application/json");
    let request = Request::new().payload(ask.to_string().into()).headers(headers).timeout(Some(time));
    let asking = async {
        let connection = other_connection(nats, None).await;
        tokio::select! {
            answer = nats.send_request(subject.to_string(), request) => match answer {
                Ok(message) => Told::read(&message.payload),
                Err(err) if err.kind() == RequestErrorKind::MaxPayloadExceeded => Told::new(status::INVALID, err),
                Err(err) => Told::unanswered(err),
            },
            _ = other_connection(nats, connection) => Told::unanswered("the connection was cut"),
        }
    };
    timeout(time, asking).await.unwrap_or_else(|_| Told::unanswered("no answer in time"))
}

/// Waits until there is another connection than this one, or none, and returns which one since the first.
pub async fn other_connection(nats: &Client, than: Option<u64>) -> Option<u64> {
    loop {
        let connected = nats.connection_state() == State::Connected;
        let now = connected.then(|| nats.statistics().connects.load(Ordering::Relaxed));
        if now != than {
            return now;
        }
        sleep(LOOK).await;
    }
}

/// Before another try: 200 ms, doubled up to 5 s, and up to a quarter more so that workers do not ask in step.
pub fn pause(tries: &mut u32) -> Duration {
    let pause = Duration::from_millis(200 << (*tries).min(5)).min(PAUSE_MAX);
    *tries += 1;
    pause.mul_f64(rand::random_range(1.0..1.25))
}

/// The name of this machine, in printable ASCII, at most 64 bytes.
pub fn host() -> String {
    ascii(&gethostname::gethostname().to_string_lossy(), 64)
}

pub fn ascii(text: &str, max: usize) -> String {
    text.chars().take(max).map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect()
}
