//! A lease-based work queue on Redis and Valkey. See the README for the first steps.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
mod completing;
mod conn;
mod encoding;
mod error;
mod generated;
mod heartbeat;
mod item;
mod keys;
mod lease;
mod link;
mod lists;
mod looking;
mod pipeline;
mod pool;
mod queue;
mod requests;
mod router;
mod script;
mod server;
mod several;
mod socket;
mod stream;
mod targets;
mod unclaimed;
mod waiting;

pub use client::{Client, ClientBuilder};
pub use encoding::{Added, Header};
pub use error::{Error, ErrorKind, ListResult, PartialError, Result};
pub use generated::codecs::{
    AddOptions, CompleteWithOptions, Completed, ConfigureOptions, ItemInfo, LightClean, ListOrder, ListState, ListedItem, Outcome,
    OutcomeState, Page, ReleaseOptions, Released, State,
};
pub use generated::errors::ScriptError;
pub use heartbeat::Heartbeat;
pub use item::{Completion, Extension, FollowUp, NewItem, Release, derived_id};
pub use lease::LeasedItem;
pub use pipeline::{Pipeline, added};
pub use queue::{Queue, Wait};
pub use script::script_digests;

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
