//! Functions of an index or of one of its digits. A digit enters as the numbers that the client writes; the functions of it that
//! weights are for leave. Both sides.
//!
//! Any row of a table is a weighted sum of as many linearly independent functions of the index as there are indices. Function 0
//! is the constant 1, which nobody sends; the others are what [`Basis::generate`] makes.

use super::{chebyshev, indicator, ive};
use crate::error::Result;
use ciphervec_he::ckks::{Ciphertext, Complex, Evaluator, Ring};

/// Takes the functions as they are made: place and ciphertext.
pub(super) type Sink<'a> = dyn FnMut(usize, Ciphertext) -> Result<()> + 'a;

/// Which functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
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
pub(super) struct Basis {
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

    /// The functions of `index`, the constant first.
    pub fn values(&self, index: usize) -> Vec<f64> {
        let function = |place: usize| match self.kind {
            _ if place == 0 => 1.0,
            Kind::Given | Kind::Indicator => f64::from(u8::from(place - 1 == index)),
            Kind::Chebyshev => chebyshev::value(place, index, self.size),
            Kind::Powers => ive::value(place, index, self.size),
        };
        (0..=self.len()).map(function).collect()
    }

    /// Matrix from values at the indices to weights: row n holds what the value at every index counts for in the weight of
    /// function n. Values times it, times [`Self::values`], are the values again.
    pub fn inverse(&self) -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; self.size]; self.len() + 1];
        for index in 0..self.size {
            for (row, value) in rows.iter_mut().zip(self.values(index)) {
                row[index] = value;
            }
        }
        let size = self.size as f64;
        for (place, row) in rows.iter_mut().enumerate() {
            // The functions are orthogonal over the indices: what divides a row is the sum of its squares.
            let factor = match self.kind {
                Kind::Given | Kind::Indicator => f64::from(u8::from(place > 0)),
                _ if place == 0 => 1.0 / size,
                Kind::Chebyshev => 2.0 / size,
                // Function p/2 is the cosine of an angle whose square sums to p/2 as all others' do: 4 · p/2 = 2p.
                Kind::Powers => 0.5 / size,
            };
            row.iter_mut().for_each(|value| *value *= factor);
        }
        rows
    }

    /// Makes the functions of what the client sent, each at `level` and its canonical scale.
    pub fn generate(
        &self,
        evaluator: &Evaluator,
        query: &[Ciphertext],
        level: usize,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        match (self.kind, query) {
            (Kind::Chebyshev, [x]) => chebyshev::generate(evaluator, x, self.size, level, sink),
            (Kind::Powers, [x]) => ive::generate(evaluator, x, self.size, level, sink),
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
        self.generate(evaluator, query, level, &mut |place, function| {
            list[place] = Some(function);
            Ok(())
        })?;
        Ok(list.into_iter().flatten().collect())
    }
}

/// The least k with 2^k at least `n`.
pub(super) fn ceil_log2(n: usize) -> usize {
    n.max(1).next_power_of_two().ilog2() as usize
}

/// The same numbers at `level` and its canonical scale.
pub(super) fn settle(evaluator: &Evaluator, x: &Ciphertext, level: usize) -> Result<Ciphertext> {
    if x.level() == level { Ok(x.clone()) } else { Ok(evaluator.match_level(x, level)?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at all indices are recovered exactly, and what the client writes is the function that powers start from.
    #[test]
    fn weights_and_functions_are_inverse() {
        for kind in [Kind::Given, Kind::Chebyshev, Kind::Powers, Kind::Indicator] {
            for size in [1, 2, 3, 4, 5, 7, 8, 10, 16, 30, 33, 64, 100] {
                let basis = Basis::new(kind, size);
                assert!(basis.size() >= size);
                let inverse = basis.inverse();
                assert_eq!(inverse.len(), basis.len() + 1);
                for at in 0..basis.size() {
                    let values = basis.values(at);
                    for index in 0..basis.size() {
                        let terms =
                            inverse.iter().zip(&values).map(|(row, value)| row[index] * value);
                        let expected = f64::from(u8::from(index == at));
                        let sum: f64 = terms.sum();
                        assert!(
                            (sum - expected).abs() < 1e-13,
                            "{kind:?} {size}: {sum} at {index}, {at}"
                        );
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
