//! Duroxide, embedded: client, runtime and provider in one process. DATABASE CONCURRENCY IN_FLIGHT SECONDS WARM_UP, where
//! DATABASE is sqlite:FILE or a URL of Postgres, CONCURRENCY 0 (the defaults) or the number of dispatchers of each kind,
//! which then poll every 5 ms.
use duroxide::providers::{sqlite::SqliteProvider, Provider};
use duroxide::runtime::{registry::ActivityRegistry, Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use duroxide_pg::PostgresProvider;
use std::{env, sync::Arc, time::Duration};

#[path = "../../load.rs"]
mod load;

async fn chain(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let mut value = input;
    for _ in 0..5 {
        value = ctx.schedule_activity("echo", value).await?;
    }
    Ok(value)
}

async fn run(client: Client, input: String) -> String {
    client.start_orchestration(&input, "chain", &input).await.expect("the start");
    match client.wait_for_orchestration(&input, Duration::from_secs(60)).await {
        Ok(OrchestrationStatus::Completed { output, .. }) => output,
        other => panic!("{input}: {other:?}"),
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = env::args().collect();
    let store: Arc<dyn Provider> = if args[1].starts_with("sqlite:") {
        Arc::new(SqliteProvider::new(&args[1], None).await.expect("SQLite"))
    } else {
        Arc::new(PostgresProvider::new(&args[1]).await.expect("Postgres"))
    };
    let activities = ActivityRegistry::builder()
        .register("echo", |_: ActivityContext, input: String| async move { Ok(input) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("chain", chain).build();
    let mut options = RuntimeOptions::default();
    let concurrency: usize = args[2].parse().expect("a number");
    if concurrency > 0 {
        options.orchestration_concurrency = concurrency;
        options.worker_concurrency = concurrency;
        options.dispatcher_min_poll_interval = Duration::from_millis(5);
    }
    let _runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);
    load::measure(move |input| run(client.clone(), input)).await;
}
