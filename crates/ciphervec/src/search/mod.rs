//! The search pipeline: segments are sealed and indexed, queries are built, evaluated, opened and ranked.
//!
//! The owner's half ([`Owner`], [`Catalogue`]) and the server's half ([`ServerIndex`]) share nothing but bytes.

mod additive;
#[cfg(feature = "client")]
mod catalogue;
mod index;
#[cfg(feature = "client")]
mod open;
#[cfg(feature = "client")]
mod owner;
#[cfg(feature = "client")]
mod query;
#[cfg(feature = "client")]
mod rank;
#[cfg(feature = "client")]
mod secrets;
mod segment;

#[cfg(feature = "client")]
pub use catalogue::{Catalogue, Selection};
pub use index::{Evaluation, ServerIndex, ServerTimings};
#[cfg(feature = "client")]
pub use open::{Opened, OwnerTimings};
#[cfg(feature = "client")]
pub use owner::{Owner, SealedSegment};
#[cfg(feature = "client")]
pub use query::Query;
#[cfg(feature = "client")]
pub use rank::{Ask, Hit};
#[cfg(feature = "client")]
pub(crate) use segment::HEADROOM;
pub use segment::{Segment, SegmentHead};
