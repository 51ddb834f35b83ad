//! The closed loop of the peers in Rust: the last three arguments are IN_FLIGHT SECONDS WARM_UP; see lib.sh.
use std::future::Future;
use std::io::stdin;
use std::time::{Duration, Instant};

/// Keeps so many workflows in flight for so long, and waits for those that were begun.
async fn load<R, F>(run: &R, in_flight: u64, length: u64, prefix: &str) -> (Vec<f64>, f64)
where
    R: Fn(String) -> F + Clone + Send + 'static,
    F: Future<Output = String> + Send,
{
    let begin = Instant::now();
    let length = Duration::from_secs(length);
    let tasks: Vec<_> = (0..in_flight)
        .map(|i| {
            let (run, prefix) = (run.clone(), format!("{prefix}-{}-{i}", std::process::id()));
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while begin.elapsed() < length {
                    let called = Instant::now();
                    let input = format!("{prefix}-{}", latencies.len());
                    assert_eq!(run(input.clone()).await, input);
                    latencies.push(called.elapsed().as_secs_f64() * 1000.0);
                }
                latencies
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("a workflow has failed"));
    }
    all.sort_by(f64::total_cmp);
    (all, begin.elapsed().as_secs_f64())
}

/// run(input): a workflow from its start to its result; inputs are unique in this database.
pub async fn measure<R, F>(run: R)
where
    R: Fn(String) -> F + Clone + Send + 'static,
    F: Future<Output = String> + Send,
{
    let numbers: Vec<u64> = std::env::args().rev().take(3).map(|n| n.parse().expect("a number")).collect();
    let (warm_up, seconds, in_flight) = (numbers[0], numbers[1], numbers[2]);
    let mut line = String::new();
    load(&run, in_flight, warm_up, "w").await;
    println!("ready");
    stdin().read_line(&mut line).expect("a line");
    let (latencies, length) = load(&run, in_flight, seconds, "m").await;
    let n = latencies.len();
    println!("done {n} {length} {} {}", latencies[n / 2], latencies[n * 99 / 100]);
    stdin().read_line(&mut line).expect("a line"); // until its CPU time has been read
    std::process::exit(0);
}
