//! A lease-based work queue on Redis and Valkey. See the README for the first steps.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
mod completing;
mod conn;
mod deaths;
mod durability;
mod encoding;
mod error;
mod gatherer;
mod generated;
mod health;
mod heartbeat;
mod home;
mod hooks;
mod item;
mod item_run;
#[cfg(feature = "jobs")]
pub mod jobs;
mod keys;
mod lease;
mod leased_item;
mod link;
mod lists;
mod live_workers;
mod looking;
#[cfg(feature = "otel")]
mod otel;
mod pipeline;
mod pool;
mod presence;
mod queue;
mod race;
mod requests;
mod router;
mod script;
mod server;
mod several;
mod socket;
mod stall;
mod stream;
mod targets;
#[cfg(feature = "tls")]
mod tls;
mod unclaimed;
mod verdict;
mod waiting;
mod worker;
mod worker_settings;

pub use client::{Client, ClientBuilder};
pub use durability::{Durability, NotDurable};
pub use encoding::{Added, Header};
pub use error::{Error, ErrorKind, ListResult, PartialError, Result};
pub use generated::codecs::{
    AddOptions, CompleteWithOptions, Completed, ConfigureOptions, ItemInfo, LightClean, ListOrder, ListState, ListedItem, Outcome,
    OutcomeState, Page, ReleaseOptions, Released, State,
};
pub use generated::errors::ScriptError;
pub use heartbeat::Heartbeat;
pub use hooks::Hooks;
pub use item::{Completion, Extension, FollowUp, NewItem, Release, derived_id};
pub use item_run::{HeldItem, Task};
pub use leased_item::LeasedItem;
pub use live_workers::WorkerInfo;
pub use pipeline::{Pipeline, added};
pub use queue::{Queue, Wait};
pub use script::script_digests;
pub use verdict::{HandlerError, exponential_backoff};
pub use worker::Worker;
pub use worker_settings::WorkerBuilder;

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The programs of the README are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
