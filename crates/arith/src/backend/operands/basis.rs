//! Constants of a basis conversion, in the form of every back-end's arithmetic.

use crate::modulus::{Modulus, Shoup};

/// Most moduli that a conversion reads from.
pub const MAX_SOURCES: usize = 32;

/// Bits after the point of the fixed-point fractions `y_i / q_i`.
pub(crate) const FRACTION_BITS: u32 = 51;

/// What a conversion reads from and writes to.
#[derive(Clone, Debug)]
pub(crate) struct ConversionTable {
    pub sources: Vec<Source>,
    pub targets: Vec<Target>,
}

/// A modulus that is converted from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub modulus: Modulus,
    /// `(Q / q)^-1 mod q`.
    pub inverse: Shoup,
    /// `52` less the bits of `q`: a residue shifted by it and the ratio below are factors of 52
    /// bits.
    pub shift: u32,
    /// `floor(2^(103 - shift) / q)`, below `2^52`.
    pub ratio: u64,
}

/// A modulus that is converted to. A factor for every source, and `-Q` as the factor of `v`, which
/// the kernels treat as one more `y_i`. Here in the form of every arithmetic, whichever the
/// target's back-ends compute in.
#[derive(Clone, Debug)]
#[allow(dead_code)]
pub(crate) struct Target {
    pub modulus: Modulus,
    /// The factors in `[0, p)`.
    pub factors: Vec<u64>,
    /// The factors times `2^52`, modulo `p`, for a Montgomery reduction.
    pub scaled: Vec<u64>,
    /// `p^-1 mod 2^52`.
    pub inverse: u64,
    /// The factors centred, each with its quotient by `p`.
    pub doubles: Vec<(f64, f64)>,
}

impl Source {
    pub(crate) fn new(modulus: Modulus, inverse: u64) -> Self {
        let bits = modulus.bits();
        Source {
            modulus,
            inverse: modulus.shoup(inverse),
            shift: 52 - bits,
            ratio: ((1u128 << (FRACTION_BITS + bits)) / u128::from(modulus.value())) as u64,
        }
    }
}

impl Target {
    pub(crate) fn new(modulus: Modulus, factors: Vec<u64>) -> Self {
        Target {
            scaled: factors.iter().map(|&w| modulus.mul(w, modulus.reduce(1 << 52))).collect(),
            inverse: inverse_of_odd(modulus.value()) & ((1 << 52) - 1),
            doubles: factors
                .iter()
                .map(|&w| {
                    let centred = modulus.to_centered(w) as f64;
                    (centred, centred / modulus.value() as f64)
                })
                .collect(),
            modulus,
            factors,
        }
    }
}

/// `p^-1 mod 2^64`: every Newton step doubles the number of right bits, and an odd number inverts
/// itself modulo 8.
fn inverse_of_odd(p: u64) -> u64 {
    (0..5).fold(p, |x, _| x.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(x))))
}
