//! Degree, prime and root of a transform, and the powers that back-ends make their tables of.

use crate::modulus::{Modulus, Shoup};

/// Which transform it is, in numbers that no back-end has prepared yet.
#[derive(Clone, Debug)]
pub(crate) struct NttPlan {
    pub degree: usize,
    pub modulus: Modulus,
    /// The primitive root of unity psi, of order 2N, or 4N in the conjugate-invariant ring.
    pub root: u64,
    pub fold: Option<Fold>,
}

/// What leads between N conjugate-invariant coefficients and a residue modulo `X^N - i`,
/// `i = psi^N`. That is the left one of the two parts into which `X^2N + 1` splits, and the other
/// says nothing new. Since `X^-j = -X^(2N-j) = -i X^(N-j)` there, its coefficient `j` is
/// `b_j = a_j - i a_(N-j)`, and `a_0` alone at 0; `b_j + i b_(N-j) = 2 a_j` on the way back.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    /// `-i`.
    pub forward: Shoup,
    /// `i`.
    pub inverse: Shoup,
}

impl NttPlan {
    /// `N^-1`, or `(2N)^-1` where unfolding doubles.
    pub(crate) fn scale(&self) -> u64 {
        let doubling = if self.fold.is_some() { 2 } else { 1 };
        self.modulus.inv(doubling * self.degree as u64).unwrap_or(1)
    }

    /// Powers of psi and of its inverse, in tree order: entry `k` in `[2^j, 2^(j+1))` is the
    /// twiddle of block `k - 2^j` of stage `j`. The conjugate-invariant transform is the subtree of
    /// node 2 of one of twice the size: node `k = 2^d + t` here is node `2^(d+1) + t` there.
    pub(crate) fn powers(&self) -> (Vec<u64>, Vec<u64>) {
        let big = if self.fold.is_some() { 2 * self.degree } else { self.degree };
        let shift = u32::BITS - big.trailing_zeros();
        let place = |k: u32| {
            let node = if big > self.degree && k > 0 { k + (1 << k.ilog2()) } else { k };
            (node.reverse_bits() >> shift) as usize
        };
        let tree = |base: u64| {
            let mut powers = vec![1; big];
            for i in 1..big {
                powers[i] = self.modulus.mul(powers[i - 1], base);
            }
            (0..self.degree as u32).map(|k| powers[place(k)]).collect()
        };
        // The order of psi is twice the size of the tree.
        let inverse = self.modulus.pow(self.root, 2 * big as u64 - 1);
        (tree(self.root), tree(inverse))
    }
}
