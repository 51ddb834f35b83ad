use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, HeaderMap, Request};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::error::{Error, status};
use crate::wire::Told;

const HEADERS: usize = 1024; // of a request, at most
const LOOK: Duration = Duration::from_millis(50);
pub const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Asks a gateway. Nothing is sent while the connection is cut. The error is UNAVAILABLE: nobody listens, not in time, or
/// the connection was cut since, and the answer may be lost; so is the status of what cannot be read.
pub async fn request(
    nats: &Client,
    subject: &str,
    ask: &Value,
    time: Duration,
    mut headers: HeaderMap,
) -> Result<Told, Error> {
    headers.insert("Content-Type", "application/json");
    let ask = ask.to_string();
    if ask.len() + HEADERS > nats.max_payload() && nats.max_payload() > 0 {
        return Err(Error::new(
            status::INVALID,
            format!("a request of {} bytes is larger than max_payload", ask.len()),
        ));
    }
    let request = Request::new().payload(ask.into()).headers(headers).timeout(Some(time));
    let asking = async {
        let connection = connected(nats).await;
        tokio::select! {
            answer = nats.send_request(subject.to_string(), request) => {
                answer.map(|message| read(&message.payload)).map_err(Error::unavailable)
            }
            () = is_cut(nats, connection) => Err(Error::unavailable("the connection was cut")),
        }
    };
    timeout(time, asking).await.unwrap_or_else(|_| Err(Error::unavailable("no answer in time")))
}

/// Waits until there is a connection: which one it is, since the first.
pub async fn connected(nats: &Client) -> u64 {
    while nats.connection_state() != State::Connected {
        sleep(LOOK).await;
    }
    connects(nats)
}

async fn is_cut(nats: &Client, before: u64) {
    while nats.connection_state() == State::Connected && connects(nats) == before {
        sleep(LOOK).await;
    }
}

fn connects(nats: &Client) -> u64 {
    nats.statistics().connects.load(Ordering::Relaxed)
}

fn read(payload: &[u8]) -> Told {
    let object = payload.trim_ascii_start().starts_with(b"{"); // serde takes a list for a struct, too
    let told = if object { serde_json::from_slice(payload).ok() } else { None };
    told.unwrap_or(Told { status: status::UNAVAILABLE, text: "the answer cannot be read".into(), ..Told::default() })
}

/// Before another try: 200 ms, doubled up to 5 s, and up to a quarter more so that workers do not ask in step.
pub fn pause(tries: &mut u32) -> Duration {
    let pause = PAUSE_MIN.saturating_mul(1 << (*tries).min(8)).min(PAUSE_MAX);
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
