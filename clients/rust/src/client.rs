use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::gateway::{Error, Told, ascii, check_name, encode, host, pause, request, status};

const ANSWER: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(10);
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~'); // in a subject

type Trace = dyn Fn(&mut HashMap<String, String>) + Send + Sync;

/// Starts, signals, queries and awaits instances. Requests that are not answered are repeated until there is no time
/// left, then the error is [`status::UNAVAILABLE`]; what changes something is done once. To cancel a call, drop it.
#[derive(Clone)]
pub struct Client {
    nats: async_nats::Client,
    namespace: String,
    timeout: Duration,
    actor: String,
    vouched: String,
    name: String,
    trace: Arc<Trace>,
}

/// How to start an instance; all may be left at their defaults.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Its id; empty: a random one.
    pub instance: String,
    pub input: Bytes,
    /// 0: the newest.
    pub version: u32,
    /// The same for every repetition of one start; empty: a new one.
    pub request_id: String,
}

/// How an instance has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// `completed`, `failed`, `cancelled` or `terminated`.
    pub state: String,
    pub status: u32,
    pub output: Bytes,
    /// Failure text, or reason.
    pub text: String,
    pub error_type: String,
}

impl Client {
    pub fn new(nats: async_nats::Client, namespace: &str) -> Self {
        let (namespace, timeout, name) = (namespace.into(), Duration::from_secs(30), "thole for Rust".into());
        Self { nats, namespace, timeout, actor: own_actor(), vouched: String::new(), name, trace: Arc::new(|_| {}) }
    }

    /// The same client for another one who asks, at most 200 bytes of printable ASCII: recorded with what is asked
    /// for. Without it: `$THOLE_ACTOR`, else `USER@HOST`.
    pub fn with_actor(&self, actor: impl Into<String>) -> Self {
        Self { actor: actor.into(), ..self.clone() }
    }

    /// The same client for one who asks, on a connection whose permissions give it that name: NATS vouches for it, and
    /// what [`Client::with_actor`] says does not count. At most 200 bytes; empty: none.
    pub fn with_vouched_actor(&self, actor: impl Into<String>) -> Self {
        Self { vouched: actor.into(), ..self.clone() }
    }

    /// The same client as part of another program, whose name has at most 64 bytes.
    pub fn with_name(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// The same client with what adds the W3C Trace Context of a request, as
    /// `|carrier| propagator.inject_context(&Context::current(), carrier)` of OpenTelemetry.
    pub fn with_trace(&self, trace: impl Fn(&mut HashMap<String, String>) + Send + Sync + 'static) -> Self {
        Self { trace: Arc::new(trace), ..self.clone() }
    }

    /// Who asks, as headers.
    fn sender(&self) -> Result<HeaderMap, Error> {
        let mut carrier = HashMap::new();
        (self.trace)(&mut carrier);
        carrier.retain(|name, _| name == "traceparent" || name == "tracestate");
        carrier.insert("Thole-Actor".into(), self.actor.clone());
        carrier.insert("Thole-Client".into(), self.name.clone());
        let mut headers = HeaderMap::new();
        for (name, value) in &carrier {
            if ascii(value, usize::MAX) != *value || self.actor.len() > 200 || self.name.len() > 64 {
                let text = format!("{name} {value:.80?} is no text of printable ASCII, or too long");
                return Err(Error::new(status::INVALID, text));
            }
            headers.insert(name.as_str(), value.as_str());
        }
        Ok(headers)
    }

    /// The end of a subject that names who asks, encoded as ids are.
    fn by(&self) -> Result<String, Error> {
        if self.vouched.len() > 200 || self.vouched.contains('\0') {
            let text = format!("the vouched actor {:.80?} has a NUL, or is longer than 200 bytes", self.vouched);
            return Err(Error::new(status::INVALID, text));
        }
        let by = if self.vouched.is_empty() { "" } else { ".by." };
        Ok(format!("{by}{}", utf8_percent_encode(&self.vouched, ENCODED)))
    }

    /// The same client with another time for each call, all repetitions together; 30 s if it is not set.
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// Starts an instance and returns its id.
    ///
    /// # Errors
    /// [`status::CONFLICT`]: the id is in use by another start.
    pub async fn start(&self, orchestration: &str, start: Start) -> Result<String, Error> {
        let Start { instance, input, version, request_id } = start;
        let request_id = if request_id.is_empty() { new_id() } else { request_id };
        let ask = json!({"instance": instance, "input": encode(&input), "version": version, "requestId": request_id});
        let told = self.ask(&format!("start.{orchestration}"), ask).await?;
        Ok(if told.instance.is_empty() { instance } else { told.instance })
    }

    /// # Errors
    /// [`status::CONFLICT`]: the instance has ended.
    pub async fn signal(&self, instance: &str, event: &str, data: impl Into<Bytes>) -> Result<(), Error> {
        let ask = json!({"instance": instance, "data": encode(&data.into()), "requestId": new_id()});
        self.ask(&format!("signal.{event}"), ask).await.map(drop)
    }

    /// # Errors
    /// [`status::CONFLICT`]: the instance has ended. [`status::NOT_FOUND`]: there is none.
    pub async fn cancel(&self, instance: &str, reason: &str) -> Result<(), Error> {
        let ask = json!({"instance": instance, "reason": reason, "requestId": new_id()});
        self.ask("cancel", ask).await.map(drop)
    }

    /// # Errors
    /// As of [`Client::cancel`].
    pub async fn terminate(&self, instance: &str, reason: &str) -> Result<(), Error> {
        let ask = json!({"instance": instance, "reason": reason, "requestId": new_id()});
        self.ask("terminate", ask).await.map(drop)
    }

    /// # Errors
    /// Whatever the gateway or the query answers.
    pub async fn query(&self, instance: &str, query: &str, input: impl Into<Bytes>) -> Result<Bytes, Error> {
        let ask = json!({"instance": instance, "input": encode(&input.into())});
        self.ask(&format!("query.{query}"), ask).await.map(|told| told.output)
    }

    /// Waits until the instance has ended, however it did.
    ///
    /// # Errors
    /// [`status::TIMEOUT`]: it still runs. [`status::NOT_FOUND`]: there is none.
    pub async fn wait(&self, instance: &str) -> Result<Ended, Error> {
        let Told { state, status, output, text, error_type, .. } =
            self.ask("wait", json!({"instance": instance})).await?;
        Ok(Ended { state, status, output, text, error_type })
    }

    /// Repeats until there is an answer that counts, or no time.
    async fn ask(&self, operation: &str, mut ask: Value) -> Result<Told, Error> {
        check_name("namespace", &self.namespace)?;
        operation.split_once('.').map_or(Ok(()), |(what, name)| check_name(what, name))?;
        let subject = format!("thole.{}.gateway.client.{operation}{}", self.namespace, self.by()?);
        let deadline = Instant::now() + self.timeout;
        let sender = self.sender()?;
        let mut last = Told::unanswered("no answer");
        let waits = operation == "wait";
        let asking = async {
            let mut tries = 0;
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                let wait = if waits { WAIT.min(left / 2) } else { Duration::ZERO }; // leaves time for a repetition
                if waits {
                    ask["waitMs"] = json!(wait.as_millis().max(1) as u64);
                }
                let time = wait + (left / 2).clamp(Duration::from_millis(500), ANSWER);
                let told = request(&self.nats, &subject, &ask, time, sender.clone()).await;
                match told.status {
                    status::TIMEOUT if waits => (last, tries) = (told, 0), // it still runs
                    status::UNAVAILABLE if last.status == status::TIMEOUT => {}
                    status::UNAVAILABLE => last = told,
                    _ => return told,
                }
                sleep(pause(&mut tries)).await;
            }
        };
        let told = timeout_at(deadline, asking).await.unwrap_or(last);
        let ended = !told.state.is_empty() && told.state != "running"; // however it did
        let done = if waits { ended } else { told.status == status::OK };
        if done {
            return Ok(told);
        }
        Err(Error { status: told.status, text: told.text })
    }
}

fn own_actor() -> String {
    let told = std::env::var("THOLE_ACTOR").ok().filter(|told| !told.is_empty());
    told.unwrap_or_else(|| format!("{}@{}", ascii(&std::env::var("USER").unwrap_or_default(), 100), host()))
}

fn new_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
