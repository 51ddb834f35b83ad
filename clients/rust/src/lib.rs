#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod client;
mod gateway;
#[cfg(test)]
mod golden;
mod task;
mod worker;

pub use client::{Client, Ended, Filter, Start};
pub use gateway::{Error, Hindrance, Instance, status};
pub use task::{ActivityError, Cancellation, Task, json};
pub use worker::Worker;
