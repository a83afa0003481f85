//! The search pipeline: segments are sealed and indexed, queries are built, evaluated, opened and ranked.
//!
//! Here is the server's half ([`ServerIndex`]). The owner's, in `ciphervec-owner`, shares nothing with it but bytes.

#[doc(hidden)]
pub mod answer_parts;
mod entry;
mod evaluate;
#[doc(hidden)]
pub mod form;
mod frame;
mod index;
mod merge;
#[doc(hidden)]
pub mod message;
#[doc(hidden)]
pub mod segment;
mod sessions;
#[doc(hidden)]
pub mod stopwatch;
#[doc(hidden)]
pub mod wrap;

pub use ciphervec_he::lattice::ring::is_session;
pub use entry::{SegmentParser, SegmentSource};
pub use form::{Evaluation, Runner, ServerTimings, SessionKeys, Sink, TreeLender};
pub use index::ServerIndex;
pub use merge::merge_responses;
pub use message::{HALF_VERSION, QUERY_VERSION, WORDS_VERSION, asked_in};
pub use segment::{Segment, SegmentHead};
pub use sessions::{HeldBySession, OtherKeys, SessionStore};
pub use wrap::{MAX_WRITER, PUBLIC_KEY, WrappedKey};
