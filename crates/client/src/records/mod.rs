//! What is sealed beside a vector, metadata and document, and filters on it.

mod document;
mod filter;
mod number;
pub mod original;
pub mod record;
mod table;
mod value;

pub use filter::{Bound, Filter};
pub use table::{FieldKinds, Table, TableBuilder};
pub use value::canonical;
