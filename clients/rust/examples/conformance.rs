//! The driver of the conformance kit (../../conformance/README.md) for this library.

use std::error::Error as StdError;
use std::io::Write;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use thole_client::{ActivityError, Client, Ended, Error, Start, Task, Worker, status};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn StdError>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    let nats = async_nats::ConnectOptions::new()
        .retry_on_initial_connect()
        .max_reconnects(None)
        .reconnect_delay_callback(|_| Duration::from_millis(100))
        .connect(var("NATS_URL"))
        .await?;
    if var("CONF_MODE") == "client" {
        let client = Client::new(nats, &var("THOLE_NAMESPACE"));
        let client = client.with_vouched_actor(var("CONF_VOUCHED"));
        let client = if var("CONF_ACTOR").is_empty() { client } else { client.with_actor(var("CONF_ACTOR")) };
        commands(if var("CONF_CLIENT").is_empty() { client } else { client.with_name(var("CONF_CLIENT")) }).await
    } else {
        work(nats).await
    }
}

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn print(line: &Value) {
    println!("{line}");
    let _ = std::io::stdout().flush();
}

async fn work(nats: async_nats::Client) -> Result<(), Failed> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        stopping.cancel();
        terminate.recv().await;
        std::process::exit(1);
    });
    let hung = nats.clone();
    let worker = Worker::new(nats, var("THOLE_QUEUE"))
        .namespace(var("THOLE_NAMESPACE"))
        .name("conf-worker")
        .slots(4)
        .stop_limit(Duration::from_secs(3))
        .activity("echo", |task| async move { Ok(task.input) })
        .activity("bytes", |task| async move { Ok(task.input.iter().rev().copied().collect::<Vec<u8>>()) })
        .activity("big", |task| async move { Ok(vec![b'x'; number(&task)?]) })
        .activity("fail", |task| async move {
            let failure = if task.input == "final" { ActivityError::last } else { ActivityError::failed };
            Err::<Bytes, _>(failure("declined", "no"))
        })
        .activity("throw", |task| async move { Err::<Bytes, _>(ActivityError::Other(text(&task))) })
        .activity("notify", |task| async move {
            task.heartbeat(task.input.clone())?;
            Err::<Bytes, _>(ActivityError::failed("declined", "no"))
        })
        .activity("hangup", move |task| {
            let hung = hung.clone();
            async move {
                hung.drain().await?;
                Ok(task.input)
            }
        })
        .activity("panic", panics)
        .activity("key", |task| async move { Ok(task.key) })
        .activity("resume", |task| async move { Ok(task.details) })
        .activity("trace", |task| async move { Ok(format!("{} {}", task.traceparent, task.tracestate)) })
        .activity("sleep", sleeps)
        .activity("stubborn", |task| async move {
            sleep(Duration::from_millis(number(&task)? as u64)).await;
            Ok("done")
        })
        .activity("beat", beats);
    worker.run(stop).await?;
    std::process::exit(0) // handlers that were given up may still run
}

fn text(task: &Task) -> String {
    String::from_utf8_lossy(&task.input).into_owned()
}

async fn panics(_task: Task) -> Result<Bytes, ActivityError> {
    panic!("the driver panics")
}

async fn sleeps(task: Task) -> Result<Bytes, ActivityError> {
    pause(&task, number(&task)? as u64).await?;
    Ok(task.input)
}

async fn beats(task: Task) -> Result<String, ActivityError> {
    let n = number(&task)?;
    for i in 1..=n {
        task.heartbeat(i.to_string())?;
        pause(&task, 50).await?;
    }
    Ok(n.to_string())
}

fn number(task: &Task) -> Result<usize, ActivityError> {
    Ok(str::from_utf8(&task.input)?.parse()?)
}

/// Sleeps, or ends as cancelled.
async fn pause(task: &Task, ms: u64) -> Result<(), ActivityError> {
    tokio::select! {
        () = sleep(Duration::from_millis(ms)) => return Ok(()),
        () = task.token().cancelled() => {}
    }
    if let Some(why) = task.cancellation() {
        print(
            &json!({"event": "cancelled", "instance": task.instance, "kind": why.kind, "reason": why.reason, "grace_ms": why.grace_ms}),
        );
    }
    Err(ActivityError::Cancelled)
}

async fn commands(client: Client) -> Result<(), Failed> {
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let asked: Value = serde_json::from_str(&line)?;
        let ended = command(&client, &asked).await.unwrap_or_else(|err| {
            (
                String::new(),
                Ended {
                    status: err.status,
                    text: err.text,
                    state: String::new(),
                    output: Bytes::new(),
                    error_type: String::new(),
                },
            )
        });
        let (instance, Ended { state, status, output, text, error_type }) = ended;
        print(
            &json!({"id": asked["id"], "status": status, "text": text, "instance": instance, "output": STANDARD.encode(output),
            "state": state, "error_type": error_type}),
        );
    }
    std::process::exit(0)
}

async fn command(client: &Client, asked: &Value) -> Result<(String, Ended), Error> {
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_string();
    let client = client.with_timeout(Duration::from_millis(asked["timeout_ms"].as_u64().unwrap_or(10_000)));
    let trace = ["traceparent", "tracestate"].map(|name| (name.to_string(), text(name)));
    let client = client.with_trace(move |carrier| {
        carrier.extend(trace.iter().filter(|(_, value)| !value.is_empty()).cloned());
    });
    let input = Bytes::from(STANDARD.decode(text("input")).unwrap_or_default());
    let mut instance = text("instance");
    let mut ended =
        Ended { state: String::new(), status: 0, output: Bytes::new(), text: String::new(), error_type: String::new() };
    match asked["op"].as_str().unwrap_or_default() {
        "start" => {
            let version = asked["version"].as_u64().unwrap_or_default() as u32;
            instance =
                client.start(&text("orchestration"), Start { instance, input, version, ..Start::default() }).await?;
        }
        "signal" => client.signal(&instance, &text("event"), input).await?,
        "cancel" => client.cancel(&instance, &text("reason")).await?,
        "terminate" => client.terminate(&instance, &text("reason")).await?,
        "query" => ended.output = client.query(&instance, &text("query"), input).await?,
        "wait" => ended = client.wait(&instance).await?,
        op => return Err(Error { status: status::INVALID, text: format!("there is no {op}") }),
    }
    Ok((instance, ended))
}
