//! The messages of proto/gateway.proto in the JSON mapping, as far as a worker and a client read and write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize)]
pub struct OpenSession<'a> {
    pub worker: &'a str,
    pub slots: usize,
    pub activities: Vec<&'a str>,
    pub inbox: &'a str,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionOpened {
    pub subject: String,
    pub lease_ms: u64,
    pub renew_ms: u64,
    pub grace_ms: u64,
    #[serde(deserialize_with = "number")]
    pub payload_max: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextTasks {
    pub max: usize,
    pub wait_ms: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Tasks {
    pub tasks: Vec<TaskMessage>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct TaskMessage {
    pub claim: String,
    pub activity: String,
    pub instance: String,
    #[serde(deserialize_with = "number")]
    pub execution: u64,
    #[serde(deserialize_with = "number")]
    pub activity_id: u64,
    pub try_number: u32,
    pub attempt: u32,
    #[serde(deserialize_with = "decode")]
    pub input: Bytes,
    pub key: String,
    pub orchestration: String,
    pub version: u32,
    #[serde(deserialize_with = "decode")]
    pub details: Bytes,
    #[serde(deserialize_with = "number")]
    pub timeout_ms: u64,
    pub queue: String,
    pub traceparent: String,
    pub tracestate: String,
}

#[derive(Serialize, Default)]
pub struct RenewTasks {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningTask>,
}

#[derive(Serialize)]
pub struct RunningTask {
    pub claim: String,
    #[serde(serialize_with = "encode", skip_serializing_if = "Bytes::is_empty")]
    pub details: Bytes,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub heartbeat: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct TasksRenewed {
    pub cancelled: Vec<Notice>,
    pub gone: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Notice {
    pub claim: String,
    pub kind: String,
    pub reason: String,
    pub grace_ms: u64,
}

#[derive(Serialize)]
pub struct CompleteTasks<'a> {
    pub outcomes: [&'a Outcome; 1],
}

#[derive(Serialize, Default)]
pub struct Outcome {
    pub claim: String,
    #[serde(serialize_with = "encode", skip_serializing_if = "Bytes::is_empty")]
    pub output: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<TaskFailure>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

#[derive(Serialize)]
pub struct TaskFailure {
    pub text: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(rename = "final")]
    pub last: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct TasksCompleted {
    pub results: Vec<Plain>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CloseSession {
    pub limit_ms: u64,
}

/// What every answer has, and each result of a `complete`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Plain {
    pub status: u32,
    pub text: String,
}

/// A client's request, whatever it is: the fields that it does not have are empty.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Ask<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub instance: &'a str,
    #[serde(serialize_with = "encode", skip_serializing_if = "Bytes::is_empty")]
    pub input: Bytes,
    #[serde(serialize_with = "encode", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub request_id: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    pub version: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub wait_ms: u32,
}

/// The answer to a client's request, whatever it was.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Told {
    pub instance: String,
    pub state: String,
    #[serde(deserialize_with = "decode")]
    pub output: Bytes,
    pub error_type: String,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn encode<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&STANDARD.encode(bytes))
}

fn decode<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(from)?;
    STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
}

/// A 64-bit number is a string in JSON, and may be a number.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
    }
    match Either::deserialize(from)? {
        Either::Number(number) => Ok(number),
        Either::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}
