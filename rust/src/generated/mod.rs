//! What `lua/bundler` writes from the typed manifest.

#[rustfmt::skip]
#[allow(clippy::vec_init_then_push, clippy::needless_question_mark, reason = "one template writes arguments and replies of any length")]
pub(crate) mod codecs;
#[rustfmt::skip]
pub(crate) mod errors;
#[rustfmt::skip]
#[allow(dead_code, reason = "the manifest has constants for other clients too")]
pub(crate) mod scripts;
