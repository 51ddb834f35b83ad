//! Serves the activities of the orchestration checkout (examples/checkout.c): `cargo run --example worker`, with
//! THOLE_NATS_URL, THOLE_NAMESPACE, THOLE_QUEUE.

use std::time::Duration;

use thole_client::{ActivityError, Task, Worker};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The number behind "key=" in "order=17;pay_ms=50".
fn field(task: &Task, key: &str, fallback: u64) -> u64 {
    let text = String::from_utf8_lossy(&task.input);
    let found = text.split(';').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    found.and_then(|number| number.parse().ok()).unwrap_or(fallback)
}

async fn reserve(task: Task) -> Result<String, ActivityError> {
    Ok(format!("goods-{}", field(&task, "order", 0)))
}

/// A card that takes its time. A real one would send `task.key` along, so that it is charged once however often this runs.
async fn charge(task: Task) -> Result<&'static str, ActivityError> {
    if u64::from(task.try_number) <= field(&task, "busy", 0) {
        return Err(std::io::Error::other("the bank does not answer").into()); // another try
    }
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(field(&task, "pay_ms", 50))) => {}
        () = task.token().cancelled() => return Err(ActivityError::Cancelled),
    }
    if field(&task, "declined", 0) != 0 {
        return Err(ActivityError::last("declined", "the card was declined"));
    }
    Ok("charged")
}

async fn ship(task: Task) -> Result<String, ActivityError> {
    Ok(format!("parcel with {}", String::from_utf8_lossy(&task.input)))
}

/// Must do nothing for what was never done. It only says that it was here.
async fn undo(task: Task) -> Result<String, ActivityError> {
    Ok(format!("{} of order {}", task.activity, field(&task, "order", 0)))
}

/// The URL may have a user and a password.
async fn connect(url: &str) -> Result<async_nats::Client, Box<dyn std::error::Error>> {
    let server: async_nats::ServerAddr = url.parse()?;
    let options = match (server.username(), server.password()) {
        (Some(user), Some(password)) => {
            async_nats::ConnectOptions::with_user_and_password(user.into(), password.into())
        }
        _ => async_nats::ConnectOptions::new(),
    };
    Ok(options.connect(server).await?)
}

fn setting(name: &str, fallback: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| fallback.into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nats = connect(&setting("THOLE_NATS_URL", "nats://127.0.0.1:4222")).await?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        terminate.recv().await;
        stopping.cancel();
    });
    Worker::new(nats, setting("THOLE_QUEUE", "default"))
        .namespace(setting("THOLE_NAMESPACE", "default"))
        .activity("reserve", reserve)
        .activity("charge", charge)
        .activity("ship", ship)
        .activity("release", undo)
        .activity("refund", undo)
        .run(stop)
        .await?;
    Ok(())
}
