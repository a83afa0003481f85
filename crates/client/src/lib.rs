//! The key holder's half of a collection, without any I/O of its own, under the Python package and the browser client alike.
#![forbid(unsafe_code)]

mod document;
mod error;
mod filter;
mod number;
pub mod record;
mod table;
mod value;

pub use error::{Error, Result};
pub use filter::{Bound, Filter};
pub use table::{FieldKinds, Table};
pub use value::canonical;
