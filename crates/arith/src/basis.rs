//! Residues modulo the primes of one basis enter, residues of the same centred integers modulo another leave. Both sides.

use crate::backend::dispatch;
use crate::error::ArithError;
use crate::modulus::{Modulus, Shoup};
use crate::ntt::MAX_MODULUS_BITS;

/// Most moduli that a conversion reads from.
pub const MAX_SOURCES: usize = 32;

/// Bits after the point of the fixed-point fractions `y_i / q_i`.
pub(crate) const FRACTION_BITS: u32 = 51;

/// Conversion of integers from one residue number system to another without leaving words, after Halevi, Polyakov and
/// Shoup (eprint 2018/117, section 2.2).
///
/// With `Q` the product of the `k` source moduli, `x` the centred integer in `(-Q/2, Q/2)` and
/// `y_i = x (Q/q_i)^-1 mod q_i`, a residue modulo a target `p` is `sum_i y_i (Q/q_i) - v Q mod p`, where
/// `v = round(sum_i y_i / q_i)`. The fractions are integers with 51 bits after the point, so every back-end finds the
/// same `v`. Where `|x| > Q (1/2 - k 2^-51)` it may be off by one: then the result stands for `x + Q` or `x - Q` rather
/// than `x`, the same on every back-end, in all targets alike, and still congruent to `x` modulo `Q`.
#[derive(Clone, Debug)]
pub struct BasisConversion {
    pub(crate) sources: Vec<Source>,
    pub(crate) targets: Vec<Target>,
}

/// A modulus that is converted from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub modulus: Modulus,
    /// `(Q / q)^-1 mod q`.
    pub inverse: Shoup,
    /// `52` less the bits of `q`: a residue shifted by it and the ratio below are factors of 52 bits.
    pub shift: u32,
    /// `floor(2^(103 - shift) / q)`, below `2^52`.
    pub ratio: u64,
}

/// A modulus that is converted to. A factor for every source, and `-Q` as the factor of `v`, which the kernels treat as
/// one more `y_i`.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub modulus: Modulus,
    /// The factors in `[0, p)`.
    pub factors: Vec<u64>,
    /// The factors times `2^52`, modulo `p`, for a Montgomery reduction.
    #[cfg(target_arch = "x86_64")]
    pub scaled: Vec<u64>,
    /// `p^-1 mod 2^52`.
    #[cfg(target_arch = "x86_64")]
    pub inverse: u64,
    /// The factors centred, each with its quotient by `p`.
    #[cfg(target_arch = "x86_64")]
    pub doubles: Vec<(f64, f64)>,
}

impl Source {
    fn new(modulus: Modulus, inverse: u64) -> Self {
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
    fn new(modulus: Modulus, factors: Vec<u64>) -> Self {
        Target {
            #[cfg(target_arch = "x86_64")]
            scaled: factors.iter().map(|&w| modulus.mul(w, modulus.reduce(1 << 52))).collect(),
            #[cfg(target_arch = "x86_64")]
            inverse: inverse_of_odd(modulus.value()) & ((1 << 52) - 1),
            #[cfg(target_arch = "x86_64")]
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

/// `p^-1 mod 2^64`: every Newton step doubles the number of right bits, and an odd number inverts itself modulo 8.
#[cfg(target_arch = "x86_64")]
fn inverse_of_odd(p: u64) -> u64 {
    (0..5).fold(p, |x, _| x.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(x))))
}

impl BasisConversion {
    /// Prepares the conversion. A target may be one of the sources: it gets its own residues back.
    ///
    /// # Errors
    /// [`ArithError::Basis`] unless there are 1 to [`MAX_SOURCES`] sources; [`ArithError::Modulus`] unless every modulus
    /// is odd and below `2^50` and the sources are pairwise coprime.
    pub fn new(from: &[Modulus], to: &[Modulus]) -> Result<Self, ArithError> {
        if from.is_empty() || from.len() > MAX_SOURCES {
            return Err(ArithError::Basis { count: from.len(), expected: "1 to 32 source moduli" });
        }
        if let Some(bad) = from
            .iter()
            .chain(to)
            .find(|m| m.value() >> MAX_MODULUS_BITS != 0 || m.value().is_multiple_of(2))
        {
            return Err(ArithError::Modulus {
                value: bad.value(),
                expected: "an odd modulus below 2^50",
            });
        }
        let product_without = |skip: usize, m: &Modulus| {
            let others = from.iter().enumerate().filter(|&(j, _)| j != skip);
            others.fold(1, |product, (_, q)| m.mul(product, m.reduce(q.value())))
        };
        let sources = from.iter().enumerate().map(|(i, q)| {
            let inverse = q.inv(product_without(i, q)).ok_or(ArithError::Modulus {
                value: q.value(),
                expected: "source moduli that are pairwise coprime",
            })?;
            Ok(Source::new(*q, inverse))
        });
        let targets = to.iter().map(|p| {
            let mut factors: Vec<u64> = (0..from.len()).map(|i| product_without(i, p)).collect();
            factors.push(p.neg(product_without(from.len(), p)));
            Target::new(*p, factors)
        });
        Ok(BasisConversion {
            sources: sources.collect::<Result<_, _>>()?,
            targets: targets.collect(),
        })
    }

    /// The number of moduli converted from.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// The number of moduli converted to.
    pub fn targets(&self) -> usize {
        self.targets.len()
    }

    /// Coefficients in `[0, q_i)`, a slice for each source in order, become coefficients in `[0, p_j)`, a slice for each
    /// target. Coefficients are independent of each other, so any range of them may be converted alone.
    ///
    /// # Panics
    /// When the number of slices is not that of the moduli, or their lengths differ.
    pub fn convert(&self, from: &[&[u64]], to: &mut [&mut [u64]]) {
        assert_eq!(from.len(), self.sources.len(), "expected a polynomial for each source modulus");
        assert_eq!(to.len(), self.targets.len(), "expected a polynomial for each target modulus");
        let degree = from[0].len();
        let lengths = from.iter().map(|p| p.len()).chain(to.iter().map(|p| p.len()));
        lengths.for_each(|length| assert_eq!(length, degree, "polynomials differ in length"));
        dispatch::convert_basis(self, from, to);
    }
}
