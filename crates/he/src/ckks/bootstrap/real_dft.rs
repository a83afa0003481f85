//! Homomorphic cosine transform: its matrices, as few diagonals each.
//!
//! Slot j of the conjugate-invariant ring is `T a`, `a_0 + Σ a_k (x^k + x^−k)` at
//! `x = exp(iπ 5^j/2N)`. Modulo `X^N − i` that is the real part of a complex transform: with
//! `z_k = a_k − i a_(N−k)` the terms of all k congruent to ±c modulo R are `2 Re Σ z_k x^k`, k
//! congruent to c. So N real numbers are one real transform of a part of them and complex ones of
//! the others, each in a block of its own, real parts before imaginary ones; and the same again. No
//! stage pairs coefficients: which of them are parts of one number is a matter of where they lie
//! (docs/ckks.md, section 10.8).
//!
//! # The transforms
//!
//! Modulo X^N − i, a_0 + Σ a_k (X^k + X^−k) is Σ z_k X^k with z_0 = a_0, z_k = a_k − i a_(N−k), and
//! the terms of all k ≡ ±c modulo S are 2 Re Σ z_k x^k over k ≡ c alone (S ≥ 4 a power of two that
//! divides 2N, c neither 0 nor S/2). Let T_B be the real transform of B numbers, a_0 + Σ a_k (x^k +
//! x^−k) at x_j = exp(iπ 5^j/2B), C_n the complex one, Σ w_k y^k at y_j = exp(iπ 5^j/2n), m = B/S,
//! b = 2m:
//!
//! ```text
//! (T_B a)_j = (T_b a_(k ≡ 0 mod S/2))_(j mod b) + Σ_c Re(x_j^c V^c_(j mod m)),     V^c = C_m of 2 z_k, k ≡ c modulo S,
//! (C_n w)_j = Σ_(c < n/m) y_j^c (C_m w_(k ≡ c mod n/m))_(j mod m).
//! ```
//!
//! So a product takes N numbers from blocks of b: the first holds T_b, the others C_m, real parts
//! before imaginary ones. Every product is √(B/b) times an orthogonal matrix; the one that meets
//! coefficients √(2B) times one, but for a_0, whose column is shorter by √2.

use super::super::Complex;
use super::super::fft::reversed;
use super::super::roots_of_unity::root_of_unity;
use super::dft::{Diagonals, Direction};

/// The matrices of a transform over `slots` slots in the order in which they are applied, each of
/// about as many diagonals.
pub fn matrices(direction: Direction, slots: usize, stages: usize) -> Vec<Diagonals> {
    let blocks = blocks(slots, stages);
    let pairs = blocks.windows(2);
    let product = |pair: &[usize]| product(direction, slots, pair[0], pair[1]);
    match direction {
        Direction::SlotsToCoefficients => pairs.rev().map(product).collect(),
        Direction::CoefficientsToSlots => pairs.map(product).collect(),
    }
}

/// The sizes of blocks between products, from all slots down to single coefficients.
///
/// A product that takes blocks of B from blocks of b has diagonals at multiples of b/2: 2N/b where
/// B is N, as they wrap around, otherwise nearly 4B/b; from coefficients, 2B.
fn blocks(slots: usize, stages: usize) -> Vec<usize> {
    let log_slots = slots.ilog2() as usize;
    // log2 of the numbers of diagonals, all together.
    let mut rest = log_slots + 2 * stages.saturating_sub(1);
    let mut log_block = log_slots;
    let mut out = vec![slots];
    for left in (2..=stages).rev() {
        let share = rest.div_ceil(left);
        rest -= share;
        log_block = log_block + if left == stages { 1 } else { 2 } - share;
        out.push(1 << log_block);
    }
    out.push(1);
    out
}

/// One product, which takes blocks of `outer` from blocks of `inner`, or from coefficients where
/// that is 1; or its inverse. Its columns are orthogonal and of one length, but for the constant
/// coefficient's, which is shorter by √2.
///
/// Blocks lie as halving them again and again would leave them, so that coefficients come out in one
/// order however many products there are.
fn product(direction: Direction, slots: usize, outer: usize, inner: usize) -> Diagonals {
    // Real and imaginary parts of single coefficients, of which complex blocks hold the double.
    let (last, inner) = (inner == 1, inner.max(2));
    let (parts, half) = (outer / inner, inner / 2);
    let (factor, log_parts) = (if last { 2.0 } else { 1.0 }, parts.ilog2());
    let square = |column: usize| match (last, column) {
        (true, 0) => outer as f64,
        (true, _) => 2.0 * outer as f64,
        _ => parts as f64,
    };
    let mut out = Diagonals::new();
    let mut put = |row: usize, column: usize, value: f64| {
        if value == 0.0 {
            return;
        }
        let (row, column, value) = match direction {
            Direction::SlotsToCoefficients => (row, column, value),
            Direction::CoefficientsToSlots => (column, row, value / square(column)),
        };
        let zero = || vec![Complex::default(); slots];
        let diagonal = out.entry((column + slots - row) % slots).or_insert_with(zero);
        diagonal[row] += Complex::from(value);
    };
    let log_order = outer.ilog2() + 2;
    let order = 1u64 << log_order;
    let roots: Vec<Complex> = (0..order).map(|power| root_of_unity(power, log_order)).collect();
    let mut power = 1u64;
    let powers: Vec<u64> = (0..outer).map(|_| (power, power = power * 5 % order).0).collect();
    let root = |power: u64| roots[(power % order) as usize].scale(factor);
    // The real transform, in the first block, of a real one and of complex ones.
    for (j, &power) in powers.iter().enumerate() {
        if last {
            put(j, 0, 1.0);
            put(j, 1, root(power * (outer / 2) as u64).re);
        } else {
            put(j, j % inner, 1.0);
        }
        for block in 1..parts as u64 {
            // The block's numbers are z_k for k congruent to c.
            let log = block.ilog2();
            let c = (1 + 4 * reversed(block - (1 << log), log)) << (log_parts - 1 - log);
            let x = root(power * c);
            let column = block as usize * inner + j % half;
            put(j, column, x.re);
            put(j, column + half, -x.im);
        }
    }
    // Complex ones of half as many numbers, in the others.
    let length = outer / 2;
    for start in (outer..slots).step_by(outer) {
        for (j, &power) in powers[..length].iter().enumerate() {
            for block in 0..parts as u64 {
                let y = root(2 * power * reversed(block, log_parts));
                let (row, column) = (start + j, start + block as usize * inner + j % half);
                put(row, column, y.re);
                put(row, column + half, -y.im);
                put(row + length, column, y.im);
                put(row + length, column + half, y.re);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::RealEmbedding;
    use super::*;
    use std::collections::BTreeMap;

    fn apply(matrix: &Diagonals, x: &[f64]) -> Vec<f64> {
        let n = x.len();
        let row = |j: usize| matrix.iter().map(|(k, d)| d[j].re * x[(j + k) % n]).sum();
        (0..n).map(row).collect()
    }

    /// Each slot becomes one coefficient, or its negative, and no two the same; however many
    /// products there are, it is the same one.
    #[test]
    fn products_are_the_embedding_up_to_order_and_signs() {
        let log_degree = 7;
        let n = 1usize << log_degree;
        let embedding = RealEmbedding::new(log_degree);
        let mut places = vec![None; n];
        for stages in 1..=4 {
            let forward = matrices(Direction::SlotsToCoefficients, n, stages);
            let back = matrices(Direction::CoefficientsToSlots, n, stages);
            assert_eq!((forward.len(), back.len()), (stages, stages));
            let mut seen = vec![false; n];
            for slot in 0..n {
                let mut x = vec![0.0; n];
                x[slot] = 1.0;
                let values = forward.iter().fold(x.clone(), |x, matrix| apply(matrix, &x));
                let mut coefficients = vec![0.0; n];
                embedding.to_coefficients(&values, &mut coefficients);
                let place = (0..n).find(|&k| coefficients[k].abs() > 0.5).unwrap();
                assert!(!core::mem::replace(&mut seen[place], true), "{place} twice");
                let sign = coefficients[place].signum();
                assert_eq!(*places[slot].get_or_insert((place, sign)), (place, sign));
                coefficients[place] -= sign;
                assert!(coefficients.iter().all(|c| c.abs() < 1e-13), "{stages}, slot {slot}");
                let again = back.iter().fold(values, |x, matrix| apply(matrix, &x));
                for (again, x) in again.iter().zip(&x) {
                    assert!((again - x).abs() < 1e-13, "{stages}, slot {slot}");
                }
            }
        }
    }

    /// Rows of the inverse are columns, shorter by the square of their length: errors grow by
    /// exactly that length, the constant coefficient's by √2 less.
    #[test]
    fn products_are_multiples_of_orthogonal_matrices() {
        let n = 64;
        for (forward, back) in matrices(Direction::SlotsToCoefficients, n, 3)
            .iter()
            .zip(matrices(Direction::CoefficientsToSlots, n, 3).iter().rev())
        {
            let squares = |matrix: &Diagonals| -> Vec<f64> {
                let row = |j: usize| matrix.values().map(|d| d[j].norm_sqr()).sum();
                (0..n).map(row).collect()
            };
            let (rows, inverse) = (squares(forward), squares(back));
            let short = inverse.iter().filter(|&&x| x > 1.01 * inverse[1]).count();
            assert!(short <= 1 && inverse[0] <= 2.0 * inverse[1] + 1e-12, "{inverse:?}");
            let length = 1.0 / inverse[1];
            assert!(rows.iter().all(|row| *row <= length + 1e-9), "{rows:?} {length}");
            assert!(rows.iter().all(|row| *row >= length - 1.0 - 1e-9), "{rows:?} {length}");
        }
    }

    #[test]
    fn few_diagonals_are_left() {
        let count = |direction, slots, stages| -> Vec<usize> {
            matrices(direction, slots, stages).iter().map(BTreeMap::len).collect()
        };
        assert_eq!(blocks(1 << 15, 3), [1 << 15, 1 << 9, 1 << 5, 1]);
        assert_eq!(blocks(1 << 16, 4), [1 << 16, 1 << 11, 1 << 7, 1 << 4, 1]);
        assert_eq!(blocks(1 << 10, 1), [1 << 10, 1]);
        assert_eq!(count(Direction::CoefficientsToSlots, 1024, 3), [32, 30, 15]);
        assert_eq!(count(Direction::SlotsToCoefficients, 1024, 3), [15, 30, 32]);
        assert_eq!(count(Direction::SlotsToCoefficients, 1024, 2), [63, 64]);
    }
}
