//! Starts a checkout and waits for it: `cargo run --example client [ORDER]`, with THOLE_NATS_URL, THOLE_NAMESPACE.

use thole_client::{Client, Start, status};

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
    let order = std::env::args().nth(1).unwrap_or_else(|| "17".into());
    let instance = format!("order-{order}");
    let nats = connect(&setting("THOLE_NATS_URL", "nats://127.0.0.1:4222")).await?;
    let client = Client::new(nats, &setting("THOLE_NAMESPACE", "default"));
    let input = format!("order={order};pay_ms=50").into();
    match client.start("checkout", Start { instance: instance.clone(), input, ..Start::default() }).await {
        Err(err) if err.status == status::CONFLICT => println!("it was started before"),
        other => println!("started {}", other?),
    }
    let ended = client.wait(&instance).await?;
    println!("{} {} {}", ended.state, String::from_utf8_lossy(&ended.output), ended.text);
    Ok(())
}
