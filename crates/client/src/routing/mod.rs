//! Routing: rows in clusters of one shape, of which a question names a few, the real ones and decoys.
//!
//! From the bottom up: `clusters`, what is chosen; `table`, which segment is which cluster, `opened` for a state; `clustering`,
//! k-means; `padding`, clusters as segments; `recluster`, which makes clusters anew.

pub mod clustering;
pub mod clusters;
pub mod opened;
pub mod padding;
pub mod recluster;
pub mod table;
