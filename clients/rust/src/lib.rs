#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod client;
mod gateway;
#[cfg(test)]
mod golden;
mod task;
mod worker;

pub use client::{Client, Ended, Start};
pub use gateway::{Error, status};
pub use task::{ActivityError, Cancellation, Task};
pub use worker::Worker;
