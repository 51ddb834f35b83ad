//! A worker of queue "payments": `cargo run --example worker`

use thole_client::{ActivityError, Task, Worker};
use tokio_util::sync::CancellationToken;

async fn charge(task: Task) -> Result<String, ActivityError> {
    let order = str::from_utf8(&task.input)?;
    if order.is_empty() {
        return Err(ActivityError::last("bad_order", "there is no order"));
    }
    tokio::select! {
        receipt = bank(order, &task.key) => Ok(receipt?), // an error: another try
        () = task.token().cancelled() => Err(ActivityError::Cancelled),
    }
}

async fn bank(order: &str, idempotency_key: &str) -> std::io::Result<String> {
    Ok(format!("charged {order} once, by {idempotency_key}"))
}

async fn import(task: Task) -> Result<String, ActivityError> {
    let before = str::from_utf8(&task.details)?;
    let first: u32 = if before.is_empty() { 0 } else { before.parse()? }; // goes on where the try before ended
    for row in first..1000 {
        if task.token().is_cancelled() {
            return Err(ActivityError::Cancelled);
        }
        // … import the row …
        task.heartbeat((row + 1).to_string())?;
    }
    Ok("imported".into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nats = async_nats::connect("nats://127.0.0.1:4222").await?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        stopping.cancel();
    });
    let worker = Worker::new(nats, "payments")
        .name("payments-1")
        .slots(20)
        .activity("charge", charge)
        .activity("import", import);
    worker.run(stop).await?;
    Ok(())
}
