//! The search pipeline: segments are sealed and indexed, queries are built, evaluated, opened and ranked.
//!
//! The owner's half ([`Owner`], [`SegmentDirectory`]) and the server's half ([`ServerIndex`]) share nothing but bytes.

#[cfg(feature = "client")]
mod answer_opener;
mod answer_parts;
#[cfg(feature = "client")]
mod answer_reader;
#[cfg(feature = "client")]
mod card;
mod centre;
#[cfg(feature = "client")]
mod centres;
#[cfg(feature = "client")]
mod decrypt;
#[cfg(feature = "client")]
mod directory;
mod entry;
mod evaluate;
#[cfg(feature = "client")]
mod flood;
mod form;
mod frame;
mod index;
#[cfg(feature = "client")]
mod join;
#[cfg(feature = "client")]
mod key_pair;
mod merge;
mod message;
#[cfg(feature = "client")]
mod open;
#[cfg(feature = "client")]
mod opened_sidecar;
#[cfg(feature = "client")]
mod owner;
#[cfg(feature = "client")]
mod pieces;
#[cfg(feature = "client")]
mod probe;
#[cfg(feature = "client")]
mod quantize;
#[cfg(feature = "client")]
mod query;
#[cfg(feature = "client")]
mod rank;
#[cfg(feature = "client")]
mod root_key;
#[cfg(feature = "client")]
mod rotation;
#[cfg(feature = "client")]
mod score;
#[cfg(feature = "client")]
mod seal;
mod segment;
mod sessions;
#[cfg(feature = "client")]
mod state;
mod stopwatch;
#[cfg(feature = "client")]
mod token;
mod wrap;
#[cfg(feature = "client")]
mod writer;

#[cfg(feature = "client")]
pub use answer_opener::AnswerOpener;
#[cfg(feature = "client")]
pub use card::WriterCard;
pub use ciphervec_he::lattice::ring::is_session;
#[cfg(feature = "client")]
pub use directory::{SegmentDirectory, Selection, Standing, StoredSidecar};
pub use entry::{SegmentParser, SegmentSource};
#[cfg(feature = "client")]
pub use flood::Flood;
#[cfg(feature = "client")]
pub use form::{AnswerFormat, Exactness, Expected, PackingChoice};
pub use form::{Evaluation, Runner, ServerTimings, SessionKeys, Sink};
pub use index::ServerIndex;
pub use merge::merge_responses;
pub use message::{QUERY_VERSION, WORDS_VERSION, asked_in};
#[cfg(feature = "client")]
pub use open::OpenOptions;
#[cfg(feature = "client")]
pub use opened_sidecar::{OpenedSidecar, Origin, SealedSidecar};
#[cfg(feature = "client")]
pub use owner::Owner;
#[cfg(feature = "client")]
pub use probe::Probe;
#[cfg(feature = "client")]
pub use query::{Query, QueryOptions};
#[cfg(feature = "client")]
pub use rank::{Hit, Retrieval};
#[cfg(feature = "client")]
pub use root_key::{RotationState, SegmentRootKey};
#[cfg(feature = "client")]
pub use score::{Opened, OwnerTimings};
#[cfg(feature = "client")]
pub use seal::SealedSegment;
pub use segment::{Segment, SegmentHead};
pub use sessions::{HeldBySession, OtherKeys, SessionStore};
#[cfg(feature = "client")]
pub use token::{Token, TokenPool, TokenRequest};
pub use wrap::{MAX_WRITER, PUBLIC_KEY, WrappedKey};
#[cfg(feature = "client")]
pub use writer::{Writer, WrittenSegment};
