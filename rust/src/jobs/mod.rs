//! Jobs: calls of functions, which programs of any language enqueue and run (`spec/jobs.md`).

mod app;
mod context;
mod end;
mod envelope;
mod failure;
mod format;
mod function;
mod handle;
mod once;
mod producer;
mod runner;
mod schedule;
mod timetable;
mod wall_clock;
mod watch;

pub use app::App;
pub use context::Context;
pub use end::JobEnd;
pub use format::Format;
pub use handle::{Job, JobInfo, JobStatus};
pub use producer::{Call, Enqueued};
pub use schedule::Missed;
