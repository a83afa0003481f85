//! Ring form: encrypted queries and encrypted or plain rows enter, scores leave. Both sides.
//!
//! 6.25 bytes a dimension (`docs/sealed.md`, section 2).
//!
//! Everything lives in `Z_q[X]/(X^4096 + 1)`, in NTT form. One query ciphertext is expanded into a
//! tree whose node r at level k carries the dimensions i ≡ r (mod 2^k); a segment is packed for one
//! level, and its scores are
//!
//! ```text
//! U = Σ_r b_r · c0_r      V = Σ_r b_r · c1_r
//! ```
//!
//! with (c0_r, c1_r) the node and b_r the segment's polynomial, sealed or plain.

#[cfg(feature = "client")]
mod asked;
mod bound;
mod buffer_pool;
#[cfg(feature = "client")]
mod check;
mod expand;
mod galois;
mod half;
#[cfg(feature = "client")]
mod keys;
mod layout;
mod masks;
#[cfg(feature = "client")]
mod open;
mod params;
mod query;
mod response;
mod scan;
#[cfg(feature = "client")]
mod seal;
mod signs;
#[cfg(feature = "client")]
mod stored_sums;

#[cfg(feature = "client")]
pub use asked::AskedLevel;
pub use bound::{Hints, ScoreNoise, Vectors};
#[cfg(feature = "client")]
pub use check::{AnswerCheck, CheckWeights};
pub use expand::{Expanded, expand, expand_halves};
pub use galois::{Binding, EvaluationKeys};
pub use half::{join_halves, write_halves};
#[cfg(feature = "client")]
pub use keys::{QueryKey, SegmentKey};
pub use layout::Layout;
pub use masks::{MaskSums, Masks};
#[cfg(feature = "client")]
pub use open::{OpenedRows, QueryOpener, unseal};
pub use params::{DEGREE, MAX_LEVEL, POLY_BYTES, PRIME_BITS, Ring, SESSION_EPOCHS, is_session};
pub use query::{Ciphertext, Half};
pub use response::{AnswerWords, write_answer};
pub use scan::{Sums, scan};
#[cfg(feature = "hazmat")]
pub use seal::seal_with_key;
#[cfg(feature = "client")]
pub use seal::{Packed, pack, seal};

pub use signs::{RowSigns, dimension_signs};

use params::{pack_poly, unpack_poly};
