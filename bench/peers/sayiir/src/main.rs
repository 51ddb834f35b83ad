//! Sayiir on Postgres, client and workers in one process: DATABASE WORKERS IN_FLIGHT SECONDS WARM_UP. WORKERS 0: the client
//! runs the workflow itself (CheckpointingRunner); otherwise so many PooledWorkers claim its tasks.
use sayiir_postgres::PostgresBackend;
use sayiir_runtime::persistence::SnapshotStore;
use sayiir_runtime::{prelude::*, WorkflowClient};
use std::{env, sync::Arc, time::Duration};
use tokio::runtime::Handle;

#[path = "../../load.rs"]
mod load;

type Backend = PostgresBackend<JsonCodec>;
type Chain = Workflow<JsonCodec, String, ()>;

async fn echo(input: String) -> Result<String, BoxError> {
    Ok(input)
}

fn chain() -> Chain {
    WorkflowBuilder::new(WorkflowContext::new("chain", Arc::new(JsonCodec), Arc::new(())))
        .then("one", echo)
        .then("two", echo)
        .then("three", echo)
        .then("four", echo)
        .then("five", echo)
        .build()
        .expect("the workflow")
}

/// What the workflow returned; None: it has not ended.
async fn output(backend: &Backend, instance: &str) -> Option<String> {
    let snapshot = backend.load_snapshot(instance).await.expect("the snapshot");
    match snapshot.state.as_status() {
        WorkflowStatus::InProgress => None,
        WorkflowStatus::Completed => {
            let bytes = snapshot.state.completed_output().expect("an output");
            Some(serde_json::from_slice(bytes).expect("a string"))
        }
        other => panic!("{instance}: {other:?}"),
    }
}

/// On a thread of its own, as rustc does not see that the future of the runner is Send.
async fn run_here(runner: Arc<CheckpointingRunner<Backend>>, chain: Arc<Chain>, input: String) -> String {
    let of_caller = Handle::current();
    let whole = move || {
        of_caller.block_on(async {
            runner.run(&chain, input.clone(), input.clone()).await.expect("the workflow");
            output(runner.backend(), &input).await.expect("an output")
        })
    };
    tokio::task::spawn_blocking(whole).await.expect("the thread")
}

/// The client has no call that waits: it polls.
async fn run_by_workers(client: &WorkflowClient<Backend>, chain: &Chain, input: String) -> String {
    client.submit(chain, input.clone(), input.clone()).await.expect("the start");
    loop {
        if let Some(output) = output(client.backend(), &input).await {
            return output;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = env::args().collect();
    let workers: usize = args[2].parse().expect("a number");
    let chain = Arc::new(chain());
    let backend = Backend::connect(&args[1]).await.expect("Postgres");
    if workers == 0 {
        let runner = Arc::new(CheckpointingRunner::new(backend));
        load::measure(move |input| run_here(runner.clone(), chain.clone(), input)).await;
        return;
    }
    let client = Arc::new(WorkflowClient::new(backend));
    let mut handles = Vec::new();
    for i in 0..workers {
        let own = Backend::connect(&args[1]).await.expect("Postgres");
        let worker = PooledWorker::new(format!("worker-{i}"), own, TaskRegistry::new());
        handles.push(worker.spawn(Duration::from_secs(1), vec![(*chain.definition_hash(), chain.clone())]));
    }
    load::measure(move |input| {
        let (client, chain) = (client.clone(), chain.clone());
        async move { run_by_workers(&client, &chain, input).await }
    })
    .await;
}
