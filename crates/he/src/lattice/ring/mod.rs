//! Ring form: scores of encrypted queries against encrypted or plain rows.
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

mod bound;
mod buffer_pool;
mod expand;
mod galois;
mod half;
mod layout;
mod masks;
mod params;
mod query;
mod response;
mod scan;
mod signs;

/// What secret keys are made of in `ciphervec-he-secret`, and what they encrypt and decrypt with: no part of the
/// interface. Nothing here knows a secret.
#[doc(hidden)]
pub mod inner {
    pub use super::galois::{DIGIT_BITS, FINE_LEVELS, SwitchingKey, TreeKeys, digits};
    pub use super::layout::deal_strips;
    pub use super::params::unpack_poly;
}

pub use bound::{Hints, ScoreNoise, Vectors};
pub use expand::{Expanded, expand, expand_halves};
pub use galois::{Binding, EvaluationKeys};
pub use half::{join_halves, write_halves};
pub use layout::Layout;
pub use masks::{MaskSums, Masks};
pub use params::{DEGREE, MAX_LEVEL, POLY_BYTES, PRIME_BITS, Ring, SESSION_EPOCHS, is_session};
pub use query::{Ciphertext, Half};
pub use response::{AnswerWords, write_answer};
pub use scan::{Sums, scan};
pub use signs::{RowSigns, dimension_signs};

pub(super) use bound::noise_of_tree;
pub(super) use buffer_pool::Buffer;
pub(super) use expand::{Nodes, expand_under};
pub(super) use galois::{Scratch, times_secret};
pub(super) use layout::deal_strips;
pub(super) use response::write_words;
pub(super) use scan::{Grid, STRIDE, products_of_all};

use params::{pack_poly, unpack_poly};
