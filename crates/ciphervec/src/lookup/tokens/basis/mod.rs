//! The functions of an index, or of one of its digits, that weights are for: what the client writes and what the server makes
//! of it.
//!
//! Any row of a table is a weighted sum of as many linearly independent functions of the index as
//! there are indices. Function 0 is the constant 1, which nobody sends; the others are what
//! [`Basis::generate`] makes.
//!
//! A table of p rows of d numbers is a matrix M ∈ R^{d×p}, and row j is M e_j. Take p functions f_0 … f_{p−1} that are linearly
//! independent over the indices, and B with B_{nj} = f_n(j). Then M e_j = W f(j) with W = M B⁻¹: the server makes f(j) from what
//! the client sends, and sums it with weights W, without keys. All bases here are orthogonal over the indices, Σ_j f_m(j) f_n(j)
//! = 0 for m ≠ n. So B⁻¹ is a scaled transpose, and an error ε in the functions becomes (‖M‖₂/√(p·msq)) ε, where msq is the mean
//! square of a function.
//!
//! |strategy|f|made from|levels before the sums|
//! |---|---|---|---|
//! |`one_hot`|indicators|themselves|0|
//! |`one_hot_digits`|products of the indicators of two digits|both digits'|1|
//! |`indicator`|indicators|x/p, by r squarings and s cleanings|1 + r + 2s|
//! |`ive`|2 Re α^k, k ≤ p/2, and 2 Im α^k, k < p/2|α = exp(2πi J_j), J_j = (−1)^j (2j + 1)/4p|⌈log2 p/2⌉|
//! |`ive_digits`|T_a(x) T_b(y), a, b < √p|x = cos(π(2j₁ + 1)/2m), y likewise|⌈log2(m − 1)⌉ + 1|

pub(super) mod chebyshev;
pub(super) mod indicator;
pub(super) mod ive;
pub(super) mod sink;

use self::ive::Parts;
use self::sink::{Sink, ceil_log2, settle};
use crate::error::Result;
use ciphervec_he::ckks::{Ciphertext, Complex, Evaluator, Ring};
use core::f64::consts::PI;

/// Which functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The indicators of every digit, which the client sends.
    Given,
    /// Chebyshev polynomials T_n(x) at x = cos θ, of Chebyshev nodes.
    Chebyshev,
    /// Twice the real and imaginary parts of powers of a root of unity.
    Powers,
    /// The indicators of every index, approximated.
    Indicator,
}

/// The functions of an index below `size`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Basis {
    kind: Kind,
    size: usize,
}

impl Basis {
    /// The functions for at least `size` indices.
    pub fn new(kind: Kind, size: usize) -> Self {
        let size = size.max(2);
        // Real and imaginary parts come in pairs.
        let size = if kind == Kind::Powers { size.next_multiple_of(2).max(4) } else { size };
        Basis { kind, size }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Indices that they tell apart.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The ring whose slots hold what the client writes.
    pub fn ring(&self) -> Ring {
        if self.kind == Kind::Powers { Ring::Standard } else { Ring::ConjugateInvariant }
    }

    /// Numbers that an index is written as.
    pub fn entries(&self) -> usize {
        if self.kind == Kind::Given { self.size } else { 1 }
    }

    /// Functions besides the constant.
    pub fn len(&self) -> usize {
        match self.kind {
            Kind::Given | Kind::Indicator => self.size,
            Kind::Chebyshev | Kind::Powers => self.size - 1,
        }
    }

    /// Whether weights use the constant.
    pub fn constant(&self) -> bool {
        matches!(self.kind, Kind::Chebyshev | Kind::Powers)
    }

    /// Levels that [`Self::generate`] takes.
    pub fn depth(&self) -> usize {
        match self.kind {
            Kind::Given => 0,
            Kind::Chebyshev => ceil_log2(self.size - 1),
            Kind::Powers => ceil_log2(self.size / 2),
            Kind::Indicator => indicator::depth(self.size),
        }
    }

    /// Levels and numbers of the key switches of [`Self::generate`], from `top` to `level`.
    pub fn switches(&self, top: usize, level: usize) -> Vec<(usize, usize)> {
        let powers = |last: usize| (2..=last).map(move |n| (top + 1 - ceil_log2(n), 1));
        match self.kind {
            Kind::Given => Vec::new(),
            Kind::Chebyshev => powers(self.size - 1).collect(),
            Kind::Powers => {
                let half = self.size / 2;
                powers(half).chain([(level, half)]).collect()
            }
            Kind::Indicator => (0..self.depth()).map(|step| (top - step, self.size)).collect(),
        }
    }

    /// The mean square of a function.
    pub fn mean_square(&self) -> f64 {
        match self.kind {
            Kind::Given | Kind::Indicator => 1.0 / self.size as f64,
            Kind::Chebyshev => 0.5,
            Kind::Powers => 2.0,
        }
    }

    /// What the client writes for `index`.
    pub fn write(&self, index: usize, out: &mut [Complex]) {
        out.fill(Complex::default());
        match self.kind {
            Kind::Given => {
                if let Some(entry) = out.get_mut(index) {
                    *entry = Complex::new(1.0, 0.0);
                }
            }
            Kind::Chebyshev => out.fill(chebyshev::node(index, self.size).into()),
            Kind::Powers => out.fill(ive::root(index, self.size)),
            Kind::Indicator => out.fill((index as f64 / self.size as f64).into()),
        }
    }

    /// The number that the client writes for `index` as a fraction of a turn, of which the server makes
    /// the root itself.
    pub fn turns(&self, index: usize) -> f64 {
        match self.kind {
            Kind::Powers => ive::turns(index, self.size),
            _ => 0.0,
        }
    }

    /// cos(πt/2p) for t below 4p: what all functions are read from.
    fn cosines(&self) -> Vec<f64> {
        let count = match self.kind {
            Kind::Given | Kind::Indicator => 0,
            Kind::Chebyshev | Kind::Powers => 4 * self.size,
        };
        (0..count).map(|turn| (PI * turn as f64 / (2 * self.size) as f64).cos()).collect()
    }

    /// Function `place` of `index`, from [`Self::cosines`].
    fn function(&self, cosines: &[f64], place: usize, index: usize) -> f64 {
        let half = self.size / 2;
        let cosine = |k: usize, shift: usize| {
            cosines[(k * (2 * index + 1) + shift * self.size) % (4 * self.size)]
        };
        match self.kind {
            _ if place == 0 => 1.0,
            Kind::Given | Kind::Indicator => f64::from(u8::from(place - 1 == index)),
            Kind::Chebyshev => cosine(place, 0),
            Kind::Powers if place <= half => 2.0 * cosine(place, 0),
            // A sine is a cosine a quarter turn back; odd indices turn the other way.
            Kind::Powers if index.is_multiple_of(2) => 2.0 * cosine(place - half, 3),
            Kind::Powers => -2.0 * cosine(place - half, 3),
        }
    }

    /// Weights of the functions from values at the indices: both are `[index or function][after]`.
    /// The sum of weights times functions of an index is its value again.
    pub fn weigh(&self, values: &[f64], after: usize) -> Vec<f64> {
        let mut weights = vec![0.0; after];
        if !self.constant() {
            // The functions are the indicators themselves.
            weights.extend_from_slice(values);
            return weights;
        }
        weights.resize((self.len() + 1) * after, 0.0);
        let cosines = self.cosines();
        let size = self.size as f64;
        for (place, to) in weights.chunks_exact_mut(after).enumerate() {
            // Functions are orthogonal over the indices: the sum of its squares divides each.
            let factor = match self.kind {
                _ if place == 0 => 1.0 / size,
                // The 2 of the doubled parts is squared.
                Kind::Powers => 0.5 / size,
                _ => 2.0 / size,
            };
            for (index, from) in values.chunks_exact(after).enumerate() {
                let weight = factor * self.function(&cosines, place, index);
                to.iter_mut().zip(from).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        weights
    }

    /// The functions of `index`, the constant first.
    #[cfg(test)]
    pub fn values(&self, index: usize) -> Vec<f64> {
        let cosines = self.cosines();
        (0..=self.len()).map(|place| self.function(&cosines, place, index)).collect()
    }

    /// Makes the functions of what the client sent, each at `level` and its canonical scale; powers
    /// of a root with or without their conjugates.
    pub fn generate(
        &self,
        evaluator: &Evaluator,
        query: &[Ciphertext],
        (level, parts): (usize, Parts),
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        match (self.kind, query) {
            (Kind::Chebyshev, [x]) => chebyshev::generate(evaluator, x, self.size, level, sink),
            (Kind::Powers, [x]) => ive::generate(evaluator, x, (self.size, parts), level, sink),
            (Kind::Indicator, [x]) => indicator::generate(evaluator, x, self.size, level, sink),
            _ => query
                .iter()
                .enumerate()
                .try_for_each(|(place, x)| sink(place, settle(evaluator, x, level)?)),
        }
    }

    /// [`Self::generate`] into a list.
    pub fn list(
        &self,
        evaluator: &Evaluator,
        query: &[Ciphertext],
        level: usize,
    ) -> Result<Vec<Ciphertext>> {
        let mut list: Vec<Option<Ciphertext>> = vec![None; self.len()];
        self.generate(evaluator, query, (level, Parts::Apart), &mut |place, function| {
            list[place] = Some(function);
            Ok(())
        })?;
        Ok(list.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at all indices are recovered exactly, and what the client writes is the function that
    /// powers start from.
    #[test]
    fn weights_and_functions_are_inverse() {
        for kind in [Kind::Given, Kind::Chebyshev, Kind::Powers, Kind::Indicator] {
            for size in [1, 2, 3, 4, 5, 7, 8, 10, 16, 30, 33, 64, 100] {
                let basis = Basis::new(kind, size);
                assert!(basis.size() >= size);
                // Two columns beside each other: the indicator of an index, and nothing.
                for index in 0..basis.size() {
                    let mut values = vec![0.0; 2 * basis.size()];
                    values[2 * index] = 1.0;
                    let weights = basis.weigh(&values, 2);
                    assert_eq!(weights.len(), 2 * (basis.len() + 1));
                    for at in 0..basis.size() {
                        let functions = basis.values(at);
                        let terms = functions.iter().zip(weights.chunks_exact(2));
                        let [sum, none] = terms.fold([0.0; 2], |[a, b], (function, weights)| {
                            [a + function * weights[0], b + function * weights[1]]
                        });
                        let expected = f64::from(u8::from(index == at));
                        assert!((sum - expected).abs() < 1e-13, "{kind:?} {size}: {sum} at {at}");
                        assert_eq!(none, 0.0);
                    }
                }
                let square: f64 = (0..basis.size())
                    .map(|index| basis.values(index)[1..].iter().map(|v| v * v).sum::<f64>())
                    .sum();
                let mean = square / (basis.size() * basis.len()) as f64;
                assert!(
                    (mean / basis.mean_square() - 1.0).abs() < 1e-9 || size < 3,
                    "{kind:?} {size}"
                );
            }
        }
    }

    #[test]
    fn functions_are_those_of_the_written_number() {
        for size in [4, 6, 16, 20] {
            for index in 0..size {
                let mut written = [Complex::default()];
                let chebyshev = Basis::new(Kind::Chebyshev, size);
                chebyshev.write(index, &mut written);
                let values = chebyshev.values(index);
                let (mut before, mut now) = (1.0, written[0].re);
                for value in &values[1..] {
                    assert!((value - now).abs() < 1e-12);
                    (before, now) = (now, 2.0 * written[0].re * now - before);
                }
                let powers = Basis::new(Kind::Powers, size);
                powers.write(index, &mut written);
                let values = powers.values(index);
                let mut power = Complex::new(1.0, 0.0);
                for k in 1..=size / 2 {
                    power *= written[0];
                    assert!((values[k] - 2.0 * power.re).abs() < 1e-12);
                    if k < size / 2 {
                        assert!((values[size / 2 + k] - 2.0 * power.im).abs() < 1e-12);
                    }
                }
            }
        }
    }
}
