use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use tokio::time::{Instant, sleep};

use crate::error::{Error, check_name, status};
use crate::link::{Answer, Link, Pause};
use crate::wire::{Ask, Told};

const ANSWER: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(10);

/// Starts, signals, queries and awaits instances. Requests that are not answered are repeated until there is no time
/// left, then the error is [`status::UNAVAILABLE`]; what changes something is done once. To cancel a call, drop it.
#[derive(Clone)]
pub struct Client {
    link: Link,
    namespace: String,
    timeout: Duration,
    actor: String,
    name: String,
    trace: Option<Arc<dyn Fn(&mut HashMap<String, String>) + Send + Sync>>,
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
        let (link, namespace, name) = (Link { nats }, namespace.into(), "thole for Rust".into());
        Self { link, namespace, timeout: Duration::from_secs(30), actor: own_actor(), name, trace: None }
    }

    /// The same client for another one who asks, at most 200 bytes of printable ASCII: recorded with what is asked
    /// for. Without it: `$THOLE_ACTOR`, else `USER@HOST`.
    pub fn with_actor(&self, actor: impl Into<String>) -> Self {
        Self { actor: actor.into(), ..self.clone() }
    }

    /// The same client as part of another program, whose name has at most 64 bytes.
    pub fn with_name(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// The same client with what adds the W3C Trace Context of a request, as
    /// `|carrier| propagator.inject_context(&Context::current(), carrier)` of OpenTelemetry.
    pub fn with_trace(&self, trace: impl Fn(&mut HashMap<String, String>) + Send + Sync + 'static) -> Self {
        Self { trace: Some(Arc::new(trace)), ..self.clone() }
    }

    /// Who asks, as headers.
    fn sender(&self) -> Result<HeaderMap, Error> {
        let mut carrier = HashMap::new();
        if let Some(trace) = &self.trace {
            trace(&mut carrier);
        }
        carrier.retain(|name, _| name == "traceparent" || name == "tracestate");
        carrier.insert("Thole-Actor".into(), self.actor.clone());
        carrier.insert("Thole-Client".into(), self.name.clone());
        let mut headers = HeaderMap::new();
        for (name, value) in &carrier {
            if !value.chars().all(is_printable) || self.actor.len() > 200 || self.name.len() > 64 {
                let text = format!("{name} {value:.80?} is no text of printable ASCII, or too long");
                return Err(Error::new(status::INVALID, text));
            }
            headers.insert(name.as_str(), value.as_str());
        }
        Ok(headers)
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
        check_name("orchestration", orchestration)?;
        let request_id = if start.request_id.is_empty() { new_id() } else { start.request_id };
        let ask = Ask {
            instance: &start.instance,
            input: start.input,
            version: start.version,
            request_id: &request_id,
            ..Ask::default()
        };
        let told = self.call(&format!("start.{orchestration}"), ask).await?;
        Ok(if told.instance.is_empty() { start.instance } else { told.instance })
    }

    /// # Errors
    /// [`status::CONFLICT`]: the instance has ended.
    pub async fn signal(&self, instance: &str, event: &str, data: impl Into<Bytes>) -> Result<(), Error> {
        check_name("event", event)?;
        let ask = Ask { instance, data: data.into(), request_id: &new_id(), ..Ask::default() };
        self.call(&format!("signal.{event}"), ask).await.map(drop)
    }

    /// # Errors
    /// [`status::CONFLICT`]: the instance has ended. [`status::NOT_FOUND`]: there is none.
    pub async fn cancel(&self, instance: &str, reason: &str) -> Result<(), Error> {
        self.call("cancel", Ask { instance, reason, request_id: &new_id(), ..Ask::default() }).await.map(drop)
    }

    /// # Errors
    /// As of [`Client::cancel`].
    pub async fn terminate(&self, instance: &str, reason: &str) -> Result<(), Error> {
        self.call("terminate", Ask { instance, reason, request_id: &new_id(), ..Ask::default() }).await.map(drop)
    }

    /// # Errors
    /// Whatever the gateway or the query answers.
    pub async fn query(&self, instance: &str, query: &str, input: impl Into<Bytes>) -> Result<Bytes, Error> {
        check_name("query", query)?;
        let ask = Ask { instance, input: input.into(), ..Ask::default() };
        self.call(&format!("query.{query}"), ask).await.map(|told| told.output)
    }

    /// Waits until the instance has ended, however it did.
    ///
    /// # Errors
    /// [`status::TIMEOUT`]: it still runs. [`status::NOT_FOUND`]: there is none.
    pub async fn wait(&self, instance: &str) -> Result<Ended, Error> {
        let Told { status, text, state, output, error_type, .. } =
            self.ask("wait", Ask { instance, ..Ask::default() }, true).await?;
        if state.is_empty() || state == "running" {
            return Err(Error { status, text });
        }
        Ok(Ended { state, status, output, text, error_type })
    }

    async fn call(&self, operation: &str, ask: Ask<'_>) -> Result<Told, Error> {
        match self.ask(operation, ask, false).await? {
            told if told.status == status::OK => Ok(told),
            Told { status, text, .. } => Err(Error { status, text }),
        }
    }

    /// Repeats until there is an answer that counts, or no time.
    async fn ask(&self, operation: &str, mut ask: Ask<'_>, waits: bool) -> Result<Told, Error> {
        check_name("namespace", &self.namespace)?;
        let subject = format!("thole.{}.gateway.client.{operation}", self.namespace);
        let deadline = Instant::now() + self.timeout;
        let sender = self.sender()?;
        let mut pause = Pause::default();
        let mut last = Error::new(status::UNAVAILABLE, "no answer");
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(last);
            }
            let mut timeout = (left / 2).clamp(Duration::from_millis(500), ANSWER);
            if waits {
                let wait = (left / 2).min(WAIT).max(Duration::from_millis(1)); // leaves time for a repetition
                ask.wait_ms = wait.as_millis() as u64;
                timeout += wait;
            }
            match self.link.request(subject.clone(), &ask, timeout.min(left), sender.clone()).await {
                Answer::Told(Told { status: status::TIMEOUT, text, .. }) if waits => {
                    last = Error { status: status::TIMEOUT, text }; // it still runs
                    pause.reset();
                    continue;
                }
                Answer::Told(Told { status: status::UNAVAILABLE, text, .. }) => {
                    last = Error { status: status::UNAVAILABLE, text }
                }
                Answer::Told(told) => return Ok(told),
                Answer::NoResponders => last = Error::new(status::UNAVAILABLE, "no gateway answers"),
                Answer::None(text) if last.status == status::UNAVAILABLE => last.text = text,
                Answer::None(_) => {}
            }
            sleep(pause.next().min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }
}

fn is_printable(c: char) -> bool {
    (' '..='~').contains(&c)
}

fn own_actor() -> String {
    let told = std::env::var("THOLE_ACTOR").unwrap_or_default();
    if !told.is_empty() {
        return told;
    }
    let user = std::env::var("USER").unwrap_or_default();
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let own = format!("{user:.100}@{:.99}", host.trim());
    own.chars().map(|c| if is_printable(c) { c } else { '?' }).collect()
}

fn new_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
