//! Storage: durable collections, sealed queries on them, programs and tables. It knows no HTTP.

mod blob_names;
mod bucket;
mod cache;
mod check;
mod collection;
mod database;
mod description;
mod error;
mod fetching;
mod place;
pub mod programs;
mod rooms;
mod scan_queue;
mod spool;
mod tables;
mod uploads;

pub(crate) use blob_names::{APPENDED, OWNED, STATE, WRAP};
pub use bucket::bucket_medium;
pub use ciphervec::store::shelf::valid_name;
pub use collection::{Collection, FetchOffer, Report, State, Statistics};
pub use database::{Database, DatabaseOptions};
pub use error::DatabaseError;
pub use fetching::Fetched;
pub use place::check_name;
pub use rooms::{Adding, Amount, Room, Rooms, stored};
pub use scan_queue::{Answer, QueryTimings};
pub use spool::Spool;
pub use tables::{StoredTable, Tables};
pub use uploads::{Pieces, Progress, Purpose, UploadError, UploadId, UploadLimits, Uploads};
