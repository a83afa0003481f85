//! Converts residues from one basis of moduli to another: those of the same centred integers.

use crate::backend::dispatch;
use crate::backend::operands::basis::{ConversionTable, Source, Target};
use crate::error::ArithError;
use crate::modulus::{KERNEL_BITS, Modulus};

pub use crate::backend::operands::basis::MAX_SOURCES;

/// Conversion of integers from one residue number system to another without leaving words, after
/// Halevi, Polyakov and Shoup (eprint 2018/117, section 2.2).
///
/// With `Q` the product of the `k` source moduli, `x` the centred integer in `(-Q/2, Q/2)` and
/// `y_i = x (Q/q_i)^-1 mod q_i`, a residue modulo a target `p` is `sum_i y_i (Q/q_i) - v Q mod p`,
/// where `v = round(sum_i y_i / q_i)`. The fractions are integers with 51 bits after the point, so
/// every back-end finds the same `v`. Where `|x| > Q (1/2 - k 2^-51)` it may be off by one: then
/// the result stands for `x + Q` or `x - Q` rather than `x`, the same on every back-end, in all
/// targets alike, and still congruent to `x` modulo `Q`.
#[derive(Clone, Debug)]
pub struct BasisConversion {
    table: ConversionTable,
}

impl BasisConversion {
    /// Prepares the conversion. A target may be one of the sources: it gets its own residues back.
    ///
    /// # Errors
    /// [`ArithError::Basis`] unless there are 1 to [`MAX_SOURCES`] sources; [`ArithError::Modulus`]
    /// unless every modulus is odd and below `2^50` and the sources are pairwise coprime.
    pub fn new(from: &[Modulus], to: &[Modulus]) -> Result<Self, ArithError> {
        if from.is_empty() || from.len() > MAX_SOURCES {
            return Err(ArithError::Basis { count: from.len(), expected: "1 to 32 source moduli" });
        }
        if let Some(bad) = from
            .iter()
            .chain(to)
            .find(|m| m.value() >> KERNEL_BITS != 0 || m.value().is_multiple_of(2))
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
        let table = ConversionTable {
            sources: sources.collect::<Result<_, _>>()?,
            targets: targets.collect(),
        };
        Ok(BasisConversion { table })
    }

    /// The number of moduli converted from.
    pub fn sources(&self) -> usize {
        self.table.sources.len()
    }

    /// The number of moduli converted to.
    pub fn targets(&self) -> usize {
        self.table.targets.len()
    }

    /// Coefficients in `[0, q_i)`, a slice for each source in order, become coefficients in
    /// `[0, p_j)`, a slice for each target. Coefficients are independent of each other, so any
    /// range of them may be converted alone.
    ///
    /// # Panics
    /// When the number of slices is not that of the moduli, or their lengths differ.
    pub fn convert(&self, from: &[&[u64]], to: &mut [&mut [u64]]) {
        assert_eq!(
            from.len(),
            self.table.sources.len(),
            "expected a polynomial for each source modulus"
        );
        assert_eq!(
            to.len(),
            self.table.targets.len(),
            "expected a polynomial for each target modulus"
        );
        let degree = from[0].len();
        let lengths = from.iter().map(|p| p.len()).chain(to.iter().map(|p| p.len()));
        lengths.for_each(|length| assert_eq!(length, degree, "polynomials differ in length"));
        dispatch::basis::convert(&self.table, from, to);
    }
}
