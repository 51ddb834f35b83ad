use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, HeaderMap, Request};
use bytes::Bytes;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::error::{Error, status};
use crate::wire::Told;

const LOOK: Duration = Duration::from_millis(50);
pub const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Asks a gateway. Nothing is sent while the connection is cut, and what was asked before a cut is asked again, since its
/// answer is lost. The error is UNAVAILABLE: nobody listens, or not in time; so is the status of what cannot be read.
pub async fn request(
    nats: &Client,
    subject: &str,
    ask: &Value,
    time: Duration,
    mut headers: HeaderMap,
) -> Result<Told, Error> {
    headers.insert("Content-Type", "application/json");
    let body = Bytes::from(ask.to_string());
    let asking = async {
        loop {
            let Some(connection) = connection(nats) else {
                sleep(LOOK).await;
                continue;
            };
            let request = Request::new().payload(body.clone()).headers(headers.clone()).timeout(Some(time));
            tokio::select! {
                answer = nats.send_request(subject.to_string(), request) => {
                    return answer.map(|message| read(&message.payload)).map_err(Error::unavailable);
                }
                () = is_cut(nats, connection) => {}
            }
        }
    };
    timeout(time, asking).await.unwrap_or_else(|_| Err(Error::unavailable("no answer in time")))
}

/// Which one it is, since the first; `None` while it is cut.
fn connection(nats: &Client) -> Option<u64> {
    (nats.connection_state() == State::Connected).then(|| nats.statistics().connects.load(Ordering::Relaxed))
}

async fn is_cut(nats: &Client, before: u64) {
    while connection(nats) == Some(before) {
        sleep(LOOK).await;
    }
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
