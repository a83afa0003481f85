//! The search pipeline: segments are sealed and indexed, queries are built, evaluated, opened and ranked.
//!
//! The owner's half ([`Owner`], [`Catalogue`]) and the server's half ([`ServerIndex`]) share nothing but bytes.

mod additive;
#[cfg(feature = "client")]
mod card;
#[cfg(feature = "client")]
mod catalogue;
#[cfg(feature = "client")]
mod custody;
mod evaluate;
mod held;
mod index;
#[cfg(feature = "client")]
mod open;
#[cfg(feature = "client")]
mod owner;
mod pass;
#[cfg(feature = "client")]
mod probe;
#[cfg(feature = "client")]
mod query;
#[cfg(feature = "client")]
mod rank;
#[cfg(feature = "client")]
mod root;
#[cfg(feature = "client")]
mod seal;
#[cfg(feature = "client")]
mod secrets;
mod segment;
mod wrap;
#[cfg(feature = "client")]
mod writer;

#[cfg(feature = "client")]
pub use card::WriterCard;
#[cfg(feature = "client")]
pub use catalogue::{Catalogue, Origin, Selection};
#[cfg(feature = "client")]
pub use custody::Custody;
pub use evaluate::{Evaluation, ServerTimings};
pub use held::SegmentSource;
pub use index::ServerIndex;
#[cfg(feature = "client")]
pub use open::{Opened, OwnerTimings};
#[cfg(feature = "client")]
pub use owner::Owner;
#[cfg(feature = "client")]
pub use probe::Probe;
#[cfg(feature = "client")]
pub use query::Query;
#[cfg(feature = "client")]
pub use rank::{Ask, Hit};
#[cfg(feature = "client")]
pub use root::Root;
#[cfg(feature = "client")]
pub use seal::SealedSegment;
#[cfg(feature = "client")]
pub(crate) use segment::HEADROOM;
pub use segment::{Segment, SegmentHead};
pub use wrap::{MAX_WRITER, PUBLIC_KEY, WrappedKey};
#[cfg(feature = "client")]
pub use writer::{Writer, WrittenSegment};
