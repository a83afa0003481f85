//! Homomorphic Fourier transform: its matrices, as few diagonals each.
//!
//! With `w_k = m_k + i m_(k+n)` for the coefficients of a polynomial of degree below N = 2n, slot j
//! is `Σ_k w_k ζ^(5^j k)`: the slots are `U w`. Decimation writes `U` as log2 n sparse matrices
//! after a bit reversal, `U = S_n … S_4 S_2 B`, each of three diagonals. `B` is left out on both
//! ways: coefficients that lie in another order come back out of it (docs/ckks.md, section 10.3).

use super::super::Complex;
use super::super::roots_of_unity::root_of_unity;
use std::collections::BTreeMap;

/// A square matrix by its diagonals, `d_k[j] = M[j][j + k]` with `k` modulo the slots.
pub type Diagonals = BTreeMap<usize, Vec<Complex>>;

/// Which way a transform goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// `U B`: slots become coefficients.
    SlotsToCoefficients,
    /// `B U⁻¹`: coefficients become slots.
    CoefficientsToSlots,
}

/// The matrices of a transform over `slots` slots in the order in which they are applied, each of
/// about as many of the log2 n steps, the later ones of no more than the earlier ones.
pub fn matrices(direction: Direction, slots: usize, stages: usize) -> Vec<Diagonals> {
    let steps = slots.ilog2() as usize;
    let halves: Vec<usize> = match direction {
        Direction::SlotsToCoefficients => (0..steps).map(|log| 1 << log).collect(),
        Direction::CoefficientsToSlots => (0..steps).rev().map(|log| 1 << log).collect(),
    };
    let mut rest = &halves[..];
    let mut out = Vec::with_capacity(stages);
    for left in (1..=stages).rev() {
        let (now, later) = rest.split_at(rest.len().div_ceil(left));
        rest = later;
        let steps = now.iter().map(|&half| butterflies(direction, slots, half));
        let product = steps.reduce(|product, step| multiply(&step, &product));
        out.extend(product);
    }
    out
}

/// One step: sums and differences of what lies `half` apart.
fn butterflies(direction: Direction, slots: usize, half: usize) -> Diagonals {
    let length = 2 * half;
    let log_order = length.trailing_zeros() + 2;
    let forward = direction == Direction::SlotsToCoefficients;
    let zero = || vec![Complex::default(); slots];
    let (mut centre, mut above, mut below) = (zero(), zero(), zero());
    for block in (0..slots).step_by(length) {
        let mut power = 1u64;
        for j in block..block + half {
            let root = root_of_unity(power, log_order);
            power = power * 5 % (1 << log_order);
            if forward {
                (centre[j], above[j]) = (Complex::from(1.0), root);
                (below[j + half], centre[j + half]) = (Complex::from(1.0), -root);
            } else {
                let factor = root.conj().scale(0.5);
                (centre[j], above[j]) = (Complex::from(0.5), Complex::from(0.5));
                (below[j + half], centre[j + half]) = (factor, -factor);
            }
        }
    }
    let mut out = Diagonals::from([(0, centre)]);
    // Of the longest step both lie half way around: one diagonal.
    for (place, diagonal) in [(half, above), (slots - half, below)] {
        let sum = out.entry(place).or_insert_with(zero);
        sum.iter_mut().zip(diagonal).for_each(|(sum, value)| *sum += value);
    }
    out
}

/// The product of two matrices.
fn multiply(a: &Diagonals, b: &Diagonals) -> Diagonals {
    let mut out = Diagonals::new();
    for (&i, left) in a {
        let slots = left.len();
        for (&j, right) in b {
            let sum = out.entry((i + j) % slots).or_insert_with(|| vec![Complex::default(); slots]);
            for (row, (sum, left)) in sum.iter_mut().zip(left).enumerate() {
                *sum += left * right[(row + i) % slots];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::Embedding;
    use super::*;

    fn apply(matrix: &Diagonals, x: &[Complex]) -> Vec<Complex> {
        let n = x.len();
        let row = |j: usize| matrix.iter().map(|(k, d)| d[j] * x[(j + k) % n]).sum();
        (0..n).map(row).collect()
    }

    fn reversed(x: &[Complex]) -> Vec<Complex> {
        let bits = x.len().ilog2();
        let place = |j: usize| j.reverse_bits() >> (usize::BITS - bits);
        (0..x.len()).map(|j| x[place(j)]).collect()
    }

    fn numbers(count: usize) -> Vec<Complex> {
        (0..count as u64).map(|k| root_of_unity(k * k * 77 + 5 * k, 20)).collect()
    }

    #[test]
    fn factors_are_the_embedding_up_to_a_bit_reversal() {
        let log_degree = 8;
        let n = 1usize << (log_degree - 1);
        let embedding = Embedding::new(log_degree);
        let w = numbers(n);
        let coefficients: Vec<f64> = w.iter().map(|w| w.re).chain(w.iter().map(|w| w.im)).collect();
        let mut slots = vec![Complex::default(); n];
        embedding.to_slots(&coefficients, &mut slots);
        for stages in 1..=4 {
            let forward = matrices(Direction::SlotsToCoefficients, n, stages);
            let back = matrices(Direction::CoefficientsToSlots, n, stages);
            assert_eq!((forward.len(), back.len()), (stages, stages));
            let there = forward.iter().fold(reversed(&w), |x, matrix| apply(matrix, &x));
            let again = back.iter().fold(there.clone(), |x, matrix| apply(matrix, &x));
            for ((actual, expected), (again, w)) in
                there.iter().zip(&slots).zip(again.iter().zip(&reversed(&w)))
            {
                assert!((actual - expected).norm() < 1e-11 && (again - w).norm() < 1e-12);
            }
        }
    }

    #[test]
    fn merged_steps_have_few_diagonals() {
        let count = |direction, slots, stages| -> Vec<usize> {
            matrices(direction, slots, stages).iter().map(BTreeMap::len).collect()
        };
        assert_eq!(count(Direction::SlotsToCoefficients, 512, 3), [15, 15, 8]);
        assert_eq!(count(Direction::CoefficientsToSlots, 512, 3), [8, 15, 15]);
        assert_eq!(count(Direction::CoefficientsToSlots, 512, 2), [32, 31]);
    }
}
