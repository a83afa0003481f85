//! The key holder's client of a ciphervec server: collections whose vectors, metadata and documents are sealed before they leave, and
//! whose answers are checked and decrypted here.
//!
//! [`Client`] and [`Collection`] do no I/O: whatever they need of the world they ask of a [`Host`], so that every language brings its own
//! network and storage, and any executor runs them. With the feature `http` (the default) [`Connection`] is such a host, over a blocking
//! HTTP client and a folder; its calls are run to their end by [`block_on`].
//!
//! Without the feature `write` a collection is read and never changed; without `normalization` the program passes its own NFKC to
//! `normalize_by` before it asks for words.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "write"),
    allow(dead_code, unused_variables, reason = "what only reads needs few of the helpers")
)]

mod answers;
mod belief;
mod change;
mod client;
mod clusters;
mod collection;
#[cfg(feature = "http")]
mod connection;
mod copying;
mod error;
mod face;
mod gathered;
#[cfg(feature = "folder")]
mod half;
mod hex;
mod host;
mod inventory;
mod json;
mod keyed;
#[cfg(feature = "folder")]
mod local;
mod matches;
mod members;
mod note;
mod noting;
mod query;
mod random;
mod records;
mod remote;
mod replica;
mod sorting;
#[cfg(feature = "folder")]
mod storage;
mod store;
mod threads;
mod time;
mod upkeep;
mod view;
mod writer;
mod writing;

pub use answers::SealedQuery;
pub use belief::choices::Choices;
pub use belief::holder::Holder;
pub use change::{CollectionRow, SegmentInfo};
pub use client::{Client, ClientOptions, Look};
pub use clusters::choice::Clusters;
pub use collection::Collection;
#[cfg(feature = "http")]
pub use connection::Connection;
pub use error::{Error, Result};
pub use face::Face;
pub use futures_lite::future::block_on;
#[cfg(feature = "folder")]
pub use half::{AnswerReceiver, Ask, AskedQuery, IndexFile, IndexPart, OwnersHalf, Searched, Wish};
pub use host::{COUNTS, FORMER_COUNTS, Head, Host, Later, Lost, Progress, Request, Sink};
pub use inventory::{Info, Packing, RoutingInfo};
pub use keyed::{KeyedTable, TableRow};
pub use matches::{Hits, OpenedAnswer, Wanted};
pub use members::MemberChange;
pub use note::Note;
pub use records::bm25::Bm25;
pub use records::matrix::{MAX_TOKENS, Tokens};
pub use records::muvera::{MAX_SEED, Muvera, MuveraOptions};
pub use records::sparse::{Sparse, SparseVector};
#[cfg(not(feature = "normalization"))]
pub use records::words::normalize_by;
pub use records::{Bound, FieldKinds, Filter, Table, canonical, record};
pub use replica::batch::{OnZero, Records};
pub use replica::explaining::{Explanation, RoutingCost};
pub use replica::fetch::Fetch;
pub use replica::fetches::{PrivateFetch, PrivateTable};
pub use replica::fetching::MOST_PRIVATE;
pub use replica::fusion::{Asked, Fusion, Hybrid, WINDOW};
pub use replica::late::{CANDIDATES, check_tokens};
pub use replica::membership::MemberInfo;
pub use replica::overlay::{Known, Unknown};
pub use replica::payloads::check_records;
pub use replica::query_keys::{QUERIES_PER_KEY, QueryKey};
pub use replica::recluster::Clustered;
pub use replica::request::{
    Audience, Found, GetResult, Parts, QueryRequest, QueryResult, Row, Selection,
};
pub use replica::traffic::Traffic;
#[cfg(feature = "folder")]
pub use storage::Storage;
pub use store::Verified;
pub use threads::{Runner, run_on};
#[cfg(feature = "folder")]
pub use view::flooding::{Budget, budgets};
pub use view::flooding::{DEVIATION, FloodingPlan, check_deviation};
pub use writer::Writer;
