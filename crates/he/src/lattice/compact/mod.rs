//! Compact form: inner products of encrypted rows with plain queries.
//!
//! Four bytes a dimension (`docs/sealed.md`, section 1).
//!
//! LWE over `Z[X]/(X^N + 1)` modulo a power of two. Vector v of a block sits in coefficient v;
//! dimension i is masked by the public polynomial a_i times the block's secret; only the rounded
//! top bits are stored:
//!
//! ```text
//! b_i[v] = round(((a_i · s)[v] + e + 2^drop round(Δx x_i)  mod 2^Q) / 2^drop)
//! ```
//!
//! The owner takes the noise off again, so that what it shows depends on rows and queries alone.
//!
//! The server's whole work is `Σ_i q_i b_i[v]` with wrapping words.

mod bound;
mod params;
mod prune;
mod scan;
mod serialize;

pub use params::Width;
pub use prune::{spread, spread_sums};
pub use scan::scan;
