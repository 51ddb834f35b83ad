#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod client;
mod error;
#[cfg(test)]
mod golden;
mod link;
mod session;
mod task;
mod wire;
mod worker;

pub use client::{Client, Ended, Start};
pub use error::{ActivityError, Error, status};
pub use task::{Cancellation, Task};
pub use worker::Worker;
