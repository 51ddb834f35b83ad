//! What is read of the gateway's answers: the JSON mapping of proto/gateway.proto. What a message does not have is empty.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use crate::task::Task;

/// Any answer, and each result of a `complete`.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Told {
    pub status: u32,
    pub text: String,
    pub session: String, // SessionOpened
    pub subject: String,
    pub lease_ms: u64,
    pub renew_ms: u64,
    pub grace_ms: u64,
    #[serde(deserialize_with = "number")]
    pub payload_max: u64,
    pub details_max: usize,
    pub tasks: Vec<Task>,       // Tasks
    pub cancelled: Vec<Notice>, // TasksRenewed
    pub gone: Vec<String>,      // TasksRenewed, SessionOpened
    pub results: Vec<Told>,     // TasksCompleted
    pub instance: String,       // to a client
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

pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub fn decode<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    STANDARD.decode(String::deserialize(from)?).map(Bytes::from).map_err(D::Error::custom)
}

/// A 64-bit number is a string in JSON, and may be a number.
pub fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(from)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| D::Error::custom(format!("no number: {value}")))
}
