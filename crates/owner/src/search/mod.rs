//! The search pipeline, the owner's half: [`Owner`] seals segments and makes queries, [`SegmentDirectory`] opens answers and
//! ranks them. With the server's half ([`ServerIndex`]) it shares nothing but bytes.

mod answer_opener;
mod answer_reader;
mod card;
mod centre;
mod centres;
mod decrypt;
mod directory;
mod flood;
mod form;
mod join;
mod key_pair;
mod open;
mod opened_sidecar;
mod owner;
mod pieces;
mod probe;
mod quantize;
mod query;
mod rank;
mod root_key;
mod rotation;
mod score;
mod seal;
mod state;
mod token;
mod wrap;
mod writer;

pub use answer_opener::AnswerOpener;
pub use card::WriterCard;
pub use ciphervec::search::*;
pub use directory::{SegmentDirectory, Selection, Standing, StoredSidecar};
pub use flood::Flood;
pub use form::{AnswerFormat, Exactness, Expected, PackingChoice};
pub use open::OpenOptions;
pub use opened_sidecar::{OpenedSidecar, Origin, SealedSidecar};
pub use owner::Owner;
pub use probe::Probe;
pub use query::{Query, QueryOptions};
pub use rank::{Hit, Reach, Retrieval};
pub use root_key::{RotationState, SegmentRootKey};
pub use score::{Opened, OwnerTimings};
pub use seal::SealedSegment;
pub use token::{Token, TokenPool, TokenRequest};
pub use writer::{Writer, WrittenSegment};
