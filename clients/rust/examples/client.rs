//! Starts an instance and waits for it: `cargo run --example client`

use thole_client::{Client, Start, status};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nats = async_nats::connect("nats://127.0.0.1:4222").await?;
    let client = Client::new(nats, "default");
    let start = Start { instance: "order-1".into(), input: "{\"amount\":42}".into(), ..Start::default() };
    match client.start("checkout", start).await {
        Err(err) if err.status == status::CONFLICT => println!("it was started before"),
        other => println!("started {}", other?),
    }
    client.signal("order-1", "paid", "yes").await?;
    let ended = client.wait("order-1").await?;
    println!("{}: {:?} {}", ended.state, ended.output, ended.text);
    Ok(())
}
