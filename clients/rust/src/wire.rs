//! The messages of proto/gateway.proto in the JSON mapping: what a message does not have is left out, or empty.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::task::Task;

/// Any request.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Ask<'a> {
    pub worker: &'a str, // OpenSession
    pub slots: usize,
    pub activities: Vec<&'a str>,
    pub inbox: &'a str,
    pub max: usize,                 // NextTasks
    pub wait_ms: u64,               // NextTasks, WaitInstance
    pub running: Vec<RunningTask>,  // RenewTasks
    pub outcomes: Vec<&'a Outcome>, // CompleteTasks
    pub limit_ms: u64,              // CloseSession
    pub instance: &'a str,          // a client's
    #[serde(serialize_with = "encode")]
    pub input: Bytes,
    #[serde(serialize_with = "encode")]
    pub data: Bytes,
    pub reason: &'a str,
    pub request_id: &'a str,
    pub version: u32,
}

#[derive(Serialize)]
pub struct RunningTask {
    pub claim: String,
    #[serde(serialize_with = "encode")]
    pub details: Bytes,
    pub heartbeat: bool,
}

#[derive(Serialize, Default)]
pub struct Outcome {
    pub claim: String,
    #[serde(serialize_with = "encode")]
    pub output: Bytes,
    pub failure: Option<TaskFailure>,
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

/// Any answer, and each result of a `complete`.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Told {
    pub status: u32,
    pub text: String,
    pub subject: String, // SessionOpened
    pub lease_ms: u64,
    pub renew_ms: u64,
    pub grace_ms: u64,
    #[serde(deserialize_with = "number")]
    pub payload_max: u64,
    pub tasks: Vec<Task>,       // Tasks
    pub cancelled: Vec<Notice>, // TasksRenewed
    pub gone: Vec<String>,
    pub results: Vec<Told>, // TasksCompleted
    pub instance: String,   // to a client
    pub state: String,
    #[serde(deserialize_with = "decode")]
    pub output: Bytes,
    pub error_type: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Notice {
    pub claim: String,
    pub kind: String,
    pub reason: String,
    pub grace_ms: u64,
}

/// A message as it is sent: without members that have their defaults.
pub fn message(of: &impl Serialize) -> Value {
    fn is_default(value: &Value) -> bool {
        matches!(value, Value::Null | Value::Bool(false))
            || [Value::from(""), 0.into(), Value::Array(vec![])].contains(value)
    }
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => members.retain(|_, member| {
                strip(member);
                !is_default(member)
            }),
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(of).expect("messages are plain data");
    strip(&mut value);
    value
}

fn encode<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&STANDARD.encode(bytes))
}

pub fn decode<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(from)?;
    STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
}

/// A 64-bit number is a string in JSON, and may be a number.
pub fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(from)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| serde::de::Error::custom(format!("no number: {value}")))
}
