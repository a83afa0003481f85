//! Rows in clusters of one shape, of which a question names a few, the real ones and decoys: what is chosen, and which segment is which
//! cluster.

pub mod choice;
pub mod table;
