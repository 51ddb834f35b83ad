use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{HeaderMap, Request, RequestErrorKind};
use tokio::time::{Instant, sleep};

use crate::wire::{Ask, Told, message};

const LOOK: Duration = Duration::from_millis(50);

/// What became of a request.
pub enum Answer {
    /// The gateway's answer, whatever its status.
    Told(Told),
    NoResponders,
    /// None, or one that cannot be read, or the connection was cut.
    None(String),
}

/// Requests over a connection. Nothing is sent while it is cut, and what was asked before a cut counts as not answered.
#[derive(Clone)]
pub struct Link {
    pub nats: async_nats::Client,
}

impl Link {
    pub fn is_connected(&self) -> bool {
        self.nats.connection_state() == State::Connected
    }

    /// Asks, as soon as the connection is there. Stops when it is dropped.
    pub async fn request(&self, subject: String, ask: &Ask<'_>, timeout: Duration, mut headers: HeaderMap) -> Answer {
        let deadline = Instant::now() + timeout;
        while !self.is_connected() {
            if Instant::now() + LOOK >= deadline {
                return Answer::None("not connected to NATS".into());
            }
            sleep(LOOK).await;
        }
        headers.insert("Content-Type", "application/json");
        let text = message(ask).to_string();
        let left = deadline.saturating_duration_since(Instant::now());
        let request = Request::new().payload(text.into()).headers(headers).timeout(Some(left));
        tokio::select! {
            answer = self.nats.send_request(subject, request) => match answer {
                Ok(message) => read(&message.payload),
                Err(err) if err.kind() == RequestErrorKind::NoResponders => Answer::NoResponders,
                Err(err) => Answer::None(err.to_string()),
            },
            () = self.cut() => Answer::None("the connection was cut".into()),
        }
    }

    /// Returns when the connection is not the one of now any more.
    async fn cut(&self) {
        let connects = || self.nats.statistics().connects.load(Ordering::Relaxed);
        let before = connects();
        while self.is_connected() && connects() == before {
            sleep(LOOK).await;
        }
    }
}

fn read(payload: &[u8]) -> Answer {
    if !payload.trim_ascii_start().starts_with(b"{") {
        return Answer::None("the answer is none of a gateway".into());
    }
    match serde_json::from_slice(payload) {
        Ok(told) => Answer::Told(told),
        Err(err) => Answer::None(format!("the answer cannot be read: {err}")),
    }
}

/// Pauses between tries: 200 ms, doubled up to 5 s, and up to a quarter more so that workers do not ask in step.
#[derive(Default)]
pub struct Pause(Duration);

impl Pause {
    pub const FIRST: Duration = Duration::from_millis(200);
    const MAX: Duration = Duration::from_secs(5);

    pub fn reset(&mut self) {
        self.0 = Duration::ZERO;
    }

    pub fn next(&mut self) -> Duration {
        self.0 = (self.0 * 2).clamp(Self::FIRST, Self::MAX);
        self.0.mul_f64(rand::random_range(1.0..1.25))
    }
}
