//! The golden answers of proto/golden, read as this client does: docs/wire.md, "Golden bytes". Its requests are built
//! where they are sent, and the conformance kit looks at them.

use crate::gateway::{Hindrance, Instance, Told};
use crate::task::Task;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What this client does not look at.
fn left_out(kind: &str) -> &'static [&'static str] {
    match kind {
        "SessionOpened" => &["gateway"],
        "OutcomeResult" | "TasksCompleted" => &["claim"],
        _ => &[],
    }
}

/// Without the members that have their defaults.
fn plain(from: &Value, without: &[&str]) -> Value {
    match from {
        Value::Array(items) => Value::Array(items.iter().map(|item| plain(item, without)).collect()),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter(|(key, value)| !without.contains(&key.as_str()) && !is_default(value))
                .map(|(key, value)| (key.clone(), plain(value, without)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

fn is_default(value: &Value) -> bool {
    [json!(null), json!(""), json!(0), json!("0"), json!(false), json!([])].contains(value)
}

fn text<'a>(from: &'a Value, name: &str) -> &'a str {
    from[name].as_str().unwrap_or("")
}

fn base64(bytes: &Bytes) -> String {
    STANDARD.encode(bytes)
}

fn read<T: DeserializeOwned>(from: &Value) -> T {
    serde_json::from_str(&from.to_string()).unwrap()
}

// ---- answers ----

fn task(got: &Task) -> Value {
    json!({"claim": got.claim, "activity": got.activity, "instance": got.instance, "execution": got.execution.to_string(),
        "activityId": got.activity_id.to_string(), "tryNumber": got.try_number, "attempt": got.attempt, "input": base64(&got.input),
        "key": got.key, "orchestration": got.orchestration, "version": got.version, "details": base64(&got.details),
        "timeoutMs": got.timeout_ms.to_string(), "queue": got.queue, "traceparent": got.traceparent, "tracestate": got.tracestate,
        "token": got.completion_token})
}

fn instance(got: &Instance) -> Value {
    json!({"instance": got.instance, "orchestration": got.orchestration, "version": got.version, "execution": got.execution.to_string(),
        "state": got.state, "reason": got.reason, "detail": got.detail, "customStatus": got.custom_status, "parent": got.parent,
        "createdMs": got.created_ms.to_string(), "updatedMs": got.updated_ms.to_string(), "turns": got.turns.to_string(),
        "openActivities": got.open_activities.to_string(), "openTimers": got.open_timers.to_string()})
}

fn hindrance(got: &Hindrance) -> Value {
    json!({"kind": got.kind, "text": got.text, "nextStep": got.next_step})
}

fn notice(got: &Told) -> Value {
    json!({"claim": got.claim, "kind": got.kind, "reason": got.reason, "graceMs": got.grace_ms})
}

/// What this client has read of it.
fn answer(kind: &str, from: &Value) -> Option<Value> {
    let got: Told = match kind {
        "Task" => return Some(task(&read(from))),
        "Notice" => return Some(notice(&read(from))),
        "InstanceInfo" => return Some(instance(&read(from))),
        "Hindrance" => return Some(hindrance(&read(from))),
        "SessionOpened"
        | "Tasks"
        | "TasksRenewed"
        | "TasksCompleted"
        | "InstanceStarted"
        | "QueryResult"
        | "InstanceOutcome"
        | "OutcomeResult"
        | "SessionClosed"
        | "Accepted"
        | "InstanceDescription"
        | "InstanceList" => read(from),
        _ => return None,
    };
    let results: Vec<_> = got.results.iter().map(|one| json!({"status": one.status, "text": one.text})).collect();
    Some(
        json!({"status": got.status, "text": got.text, "session": got.session, "subject": got.subject, "leaseMs": got.lease_ms,
        "renewMs": got.renew_ms, "graceMs": got.grace_ms, "payloadMax": got.payload_max.to_string(), "detailsMax": got.details_max, "tasks": got.tasks.iter().map(task).collect::<Vec<_>>(),
        "cancelled": got.cancelled.iter().map(notice).collect::<Vec<_>>(), "gone": got.gone, "results": results,
        "instance": got.instance, "state": got.state, "output": base64(&got.output), "errorType": got.error_type,
        "reason": got.reason, "nextStep": got.next_step, "note": got.note, "info": (kind == "InstanceDescription" && from["info"].is_object()).then(|| instance(&got.info)),
        "hindrances": got.hindrances.iter().map(hindrance).collect::<Vec<_>>(),
        "instances": got.instances.iter().map(instance).collect::<Vec<_>>()}),
    )
}

#[test]
fn each_answer_is_read() {
    let file =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/golden/gateway.json")).unwrap();
    let lines: Vec<Value> = serde_json::from_str(&file).unwrap();
    let requests = [
        "OpenSession",
        "NextTasks",
        "RenewTasks",
        "RunningTask",
        "CompleteTasks",
        "Outcome",
        "TaskFailure",
        "CloseSession",
        "StartInstance",
        "SignalInstance",
        "EndInstance",
        "QueryInstance",
        "WaitInstance",
        "DescribeInstance",
        "ListInstances",
        "CompleteActivity",
    ];
    let mut checked = std::collections::BTreeSet::new();
    for line in &lines {
        let kind = text(line, "type").trim_start_matches("thole.v1.");
        let from = &line["json"];
        let Some(got) = answer(kind, from) else {
            assert!(requests.contains(&kind), "{kind} is a message that this test does not know");
            continue;
        };
        checked.insert(kind);
        assert_eq!(plain(&got, &[]), plain(from, left_out(kind)), "{}", text(line, "name"));
    }
    assert_eq!(checked.len(), 16, "{checked:?}");
}
