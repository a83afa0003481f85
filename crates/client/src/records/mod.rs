//! What is sealed beside a vector, metadata and document, and filters on it.

pub mod bm25;
mod document;
mod filter;
pub mod matrix;
pub mod muvera;
mod number;
pub mod original;
mod pattern;
pub mod record;
pub mod sparse;
mod table;
pub mod terms;
mod value;
pub mod words;

pub use filter::{Bound, Filter};
pub use table::{FieldKinds, Table, TableBuilder};
pub use value::canonical;
