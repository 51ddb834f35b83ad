//! The driver of the conformance kit (../../conformance/README.md) for this library.

use std::error::Error as StdError;
use std::io::Write;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thole_client::{ActivityError, Client, Ended, Error, Filter, Start, Task, Worker};
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
        let waits = var("CONF_WAIT_MS").parse().map(Duration::from_millis);
        let client = waits.map_or(client.clone(), |limit| client.with_wait_limit(limit));
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
        .activity("json", thole_client::json(add_one))
        .activity("later", |task| async move {
            print(&json!({"event": "later", "instance": task.instance, "token": task.completion_token}));
            Err::<Bytes, _>(ActivityError::Later)
        })
        .activity("deadline", |task| async move {
            Ok(if task.timeout_ms == 0 { "none".into() } else { task.timeout_ms.to_string() })
        })
        .activity("sleep", sleeps)
        .activity("stubborn", |task| async move {
            sleep(Duration::from_millis(number(&task)? as u64)).await;
            Ok("done")
        })
        .activity("beat", beats);
    worker.run(stop).await?;
    std::process::exit(0) // handlers that were given up may still run
}

#[derive(Deserialize, Serialize)]
struct Numbered {
    n: i64,
    text: String,
}

async fn add_one(value: Numbered, _task: Task) -> Result<Numbered, ActivityError> {
    Ok(Numbered { n: value.n + 1, text: value.text + "!" })
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
        let mut told = command(&client, &asked).await.unwrap_or_else(|err| {
            json!({"status": err.status, "text": err.text, "state": err.state, "reason": err.reason, "next_step": err.next_step})
        });
        told["id"] = asked["id"].clone();
        print(&told);
    }
    std::process::exit(0)
}

async fn command(client: &Client, asked: &Value) -> Result<Value, Error> {
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_string();
    let client = match asked["timeout_ms"].as_u64().unwrap_or(10_000) {
        0 => client.clone(),
        ms => client.with_timeout(Duration::from_millis(ms)),
    };
    let trace = ["traceparent", "tracestate"].map(|name| (name.to_string(), text(name)));
    let client = client.with_trace(move |carrier| {
        carrier.extend(trace.iter().filter(|(_, value)| !value.is_empty()).cloned());
    });
    let decoded = |name: &str| Bytes::from(STANDARD.decode(text(name)).unwrap_or_default());
    let input = decoded("input");
    let number = |name: &str| asked[name].as_u64().unwrap_or_default();
    let instance = text("instance");
    let mut told = json!({"status": 0, "instance": instance});
    match asked["op"].as_str().unwrap_or_default() {
        "start" => {
            let event = asked["event"].is_string().then(|| (text("event"), decoded("event_data")));
            let (version, require_known) = (number("version") as u32, asked["require_known"] == true);
            let start = Start { instance, input, version, require_known, event, ..Start::default() };
            told["instance"] = client.start(&text("orchestration"), start).await?.into();
        }
        "signal" => told["note"] = client.signal(&instance, &text("event"), input).await?.into(),
        "cancel" => told["note"] = client.cancel(&instance, &text("reason")).await?.into(),
        "terminate" => client.terminate(&instance, &text("reason")).await?,
        "query" => told["output"] = STANDARD.encode(client.query(&instance, &text("query"), input).await?).into(),
        "wait" => {
            let Ended { state, status, output, text, error_type } = client.wait(&instance).await?;
            told = json!({"status": status, "text": text, "state": state, "output": STANDARD.encode(output), "error_type": error_type});
        }
        "describe" => {
            let found = client.describe(&instance).await?;
            let next_step = found.hindrances.first().map(|first| first.next_step.clone());
            told = json!({"status": 0, "state": found.state, "reason": found.reason, "next_step": next_step});
        }
        "list" => {
            let states =
                asked["states"].as_array().into_iter().flatten().filter_map(|state| Some(state.as_str()?.to_string()));
            let filter = Filter {
                states: states.collect(),
                orchestration: text("orchestration"),
                id_prefix: text("id_prefix"),
                parent: text("parent"),
                limit: number("limit") as u32,
                behind_instance: text("behind_instance"),
                behind_created_ms: number("behind_created_ms"),
                ..Filter::default()
            };
            let page = client.list(&filter).await?;
            told["instances"] = page.iter().map(|one| one.instance.clone()).collect();
        }
        "complete" => client.complete_activity(&text("token"), decoded("output")).await?,
        "fail" => client.fail_activity(&text("token"), &text("error_type"), &text("text")).await?,
        op => told = json!({"status": 12, "text": format!("there is no {op}")}),
    }
    Ok(told)
}
