use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::gateway::{Error, Instance, Told, ascii, check_name, encode, host, pause, request, status};

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
    wait_limit: Duration,
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
    /// [`status::NOT_FOUND`], and nothing is started, when no engine knows the orchestration.
    pub require_known: bool,
    /// An event, with its data, that is delivered in any case, whether the instance is started now or was before:
    /// signal with start.
    pub event: Option<(String, Bytes)>,
}

/// Which instances; what is empty or 0 selects all.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// As in [`Instance`].
    pub states: Vec<String>,
    pub orchestration: String,
    pub id_prefix: String,
    pub parent: String,
    pub custom_status: String,
    /// Inclusive.
    pub created_after_ms: u64,
    pub created_before_ms: u64,
    /// At most 1000; 0: 100. There may be fewer, although there are more.
    pub limit: u32,
    /// The next page: the last one of the page before.
    pub behind_instance: String,
    pub behind_created_ms: u64,
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
        let (namespace, name) = (namespace.into(), "thole for Rust".into());
        let (timeout, wait_limit) = (Duration::from_secs(30), Duration::from_secs(600));
        Self {
            nats,
            namespace,
            timeout,
            wait_limit,
            actor: own_actor(),
            vouched: String::new(),
            name,
            trace: Arc::new(|_| {}),
        }
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

    /// The same client with another time for each call, all repetitions together, [`Client::wait`] among them. If it is
    /// not set: 30 s, and what [`Client::with_wait_limit`] says.
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, wait_limit: timeout, ..self.clone() }
    }

    /// The same client with another time for [`Client::wait`]; 10 minutes if it is not set.
    pub fn with_wait_limit(&self, wait_limit: Duration) -> Self {
        Self { wait_limit, ..self.clone() }
    }

    /// Starts an instance and returns its id.
    ///
    /// # Errors
    /// [`status::CONFLICT`]: the id is in use by another start; with an event: by an instance that has ended.
    pub async fn start(&self, orchestration: &str, start: Start) -> Result<String, Error> {
        let Start { instance, input, version, request_id, require_known, event } = start;
        let request_id = if request_id.is_empty() { new_id() } else { request_id };
        let mut ask =
            json!({"instance": instance, "input": encode(&input), "version": version, "requestId": request_id});
        if require_known {
            ask["requireKnown"] = true.into();
        }
        let mut operation = format!("start.{orchestration}");
        if let Some((event, data)) = event {
            check_name("event", &event)?;
            ask["eventData"] = encode(&data).into();
            operation = format!("start_event.{orchestration}~{event}");
        }
        let told = self.ask(&operation, ask).await?;
        Ok(if told.instance.is_empty() { instance } else { told.instance })
    }

    /// A note when the instance's code does not run: why, and what would help; empty when it does.
    ///
    /// # Errors
    /// [`status::CONFLICT`]: the instance has ended.
    pub async fn signal(&self, instance: &str, event: &str, data: impl Into<Bytes>) -> Result<String, Error> {
        let ask = json!({"instance": instance, "data": encode(&data.into()), "requestId": new_id()});
        self.ask(&format!("signal.{event}"), ask).await.map(|told| told.note)
    }

    /// A note, as of [`Client::signal`].
    ///
    /// # Errors
    /// [`status::CONFLICT`]: the instance has ended. [`status::NOT_FOUND`]: there is none.
    pub async fn cancel(&self, instance: &str, reason: &str) -> Result<String, Error> {
        let ask = json!({"instance": instance, "reason": reason, "requestId": new_id()});
        self.ask("cancel", ask).await.map(|told| told.note)
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

    /// How an instance stands, and what keeps it from going on.
    ///
    /// # Errors
    /// [`status::NOT_FOUND`]: there is none.
    pub async fn describe(&self, instance: &str) -> Result<Instance, Error> {
        let Told { info, hindrances, .. } = self.ask("describe", json!({"instance": instance})).await?;
        Ok(Instance { hindrances, ..info })
    }

    /// Instances, newest first: one page. An empty one is the end.
    ///
    /// # Errors
    /// Whatever the gateway answers.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<Instance>, Error> {
        self.ask("list", json!(filter)).await.map(|told| told.instances)
    }

    /// Completes a task whose activity has ended with [`ActivityError::Later`](crate::ActivityError::Later), by its
    /// token. Too late, or again, it changes nothing.
    ///
    /// # Errors
    /// [`status::INVALID`]: it is not a token.
    pub async fn complete_activity(&self, token: &str, output: impl Into<Bytes>) -> Result<(), Error> {
        let ask = json!({"token": token, "output": encode(&output.into())});
        self.ask("complete_activity", ask).await.map(drop)
    }

    /// Fails such a task.
    ///
    /// # Errors
    /// As of [`Client::complete_activity`].
    pub async fn fail_activity(&self, token: &str, kind: &str, text: &str) -> Result<(), Error> {
        let ask = json!({"token": token, "failure": {"text": text, "type": kind}});
        self.ask("complete_activity", ask).await.map(drop)
    }

    /// Waits until the instance has ended, however it did.
    ///
    /// # Errors
    /// [`status::TIMEOUT`]: it has not; the error says how it stands, why, and what would help. [`status::NOT_FOUND`]:
    /// there is none.
    pub async fn wait(&self, instance: &str) -> Result<Ended, Error> {
        let Told { state, status, output, text, error_type, .. } =
            self.ask("wait", json!({"instance": instance})).await?;
        Ok(Ended { state, status, output, text, error_type })
    }

    /// Repeats until there is an answer that counts, or no time.
    async fn ask(&self, operation: &str, mut ask: Value) -> Result<Told, Error> {
        check_name("namespace", &self.namespace)?;
        let (what, name) = operation.split_once('.').unwrap_or((operation, operation));
        check_name(what, name.split_once('~').map_or(name, |(orchestration, _)| orchestration))?;
        let subject = format!("thole.{}.gateway.client.{operation}{}", self.namespace, self.by()?);
        let deadline = Instant::now() + if operation == "wait" { self.wait_limit } else { self.timeout };
        let sender = self.sender()?;
        let mut last = Told::unanswered("no answer");
        let waits = operation == "wait";
        let asking = async {
            let mut tries = 0;
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                let answered = left - (left / 10).min(Duration::from_millis(300)); // before there is no time
                let wait = if waits { WAIT.min(answered) } else { Duration::ZERO };
                if waits {
                    if left <= WAIT {
                        ask["explain"] = true.into();
                    }
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
        let ended = ["completed", "failed", "cancelled", "terminated"].contains(&told.state.as_str());
        let done = if waits { ended } else { told.status == status::OK };
        if done { Ok(told) } else { Err(told.into()) }
    }
}

fn own_actor() -> String {
    let told = std::env::var("THOLE_ACTOR").ok().filter(|told| !told.is_empty());
    told.unwrap_or_else(|| format!("{}@{}", ascii(&std::env::var("USER").unwrap_or_default(), 100), host()))
}

fn new_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
