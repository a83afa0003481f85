//! Products and powers of multi-limb residues, eight at a time.
//!
//! [`PowerModulus`] is `Z/n^k` with elements as `k` digits in base `n`, which makes a product
//! modulo `n^2` cost five eighths of one modulo any other number of that length. [`Residues`] is a
//! table of elements in Montgomery form. Names ending in `_vartime` take a time that depends on
//! their arguments; everything else only on lengths.

mod comb;
mod digits;
mod exponent;
mod group;
mod inverse;
mod modulus;
mod multi_exp;
mod multi_pow;
mod recode;
mod residues;
mod scratch;
mod single_column;

pub use comb::Comb;
pub use group::LANES;
pub use modulus::{MAX_BITS, MAX_DIGITS, MIN_BITS, PowerModulus};
pub use residues::Residues;
