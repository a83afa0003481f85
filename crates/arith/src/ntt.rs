//! A polynomial modulo a prime enters, its values at primitive roots of unity leave: modulo `X^N + 1`, or in the subring of
//! `X^2N + 1` that conjugation leaves fixed. Both sides.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::backend::roots::{Roots, Tree};
use crate::backend::{Backend, dispatch};
use crate::error::ArithError;
use crate::modulus::{Modulus, Shoup};
use crate::prime::{is_prime, primitive_root};

/// Smallest degree served.
pub const MIN_DEGREE: usize = 1 << 10;
/// Largest degree served.
pub const MAX_DEGREE: usize = 1 << 17;
/// Primes are below `2^50`: four times a residue fits the 52 bits of an integer multiply-add lane, and eight times
/// the 53 bits of a double.
pub const MAX_MODULUS_BITS: u32 = 50;

/// Roots of unity for one degree, one prime and one of two rings.
///
/// [`NttTable::new`] serves polynomials modulo `X^N + 1`. With psi a primitive 2N-th root of unity and `rev` the reversal of
/// log2(N) bits, the transform of `f` holds `f(psi^(2 rev(i) + 1))` at index `i`.
///
/// [`NttTable::conjugate_invariant`] serves the polynomials `a_0 + sum_j a_j (X^j + X^-j)`, `1 <= j < N`, modulo
/// `X^2N + 1`, given by their N coefficients `a_j`: the ring `Z[X + 1/X]` of Kim and Song (eprint 2018/952). Each takes the same
/// value at a root and at its inverse, so that N values are all there are. With psi a primitive 4N-th root of unity the
/// transform holds `f(psi^(4 rev(i) + 1))` at index `i`.
///
/// Every back-end uses the same psi and the same order.
#[derive(Clone, Debug)]
pub struct NttTable {
    degree: usize,
    modulus: Modulus,
    root: u64,
    fold: Option<Fold>,
    integer: OnceLock<IntegerRoots>,
    #[cfg(target_arch = "x86_64")]
    double: OnceLock<DoubleRoots>,
    #[cfg(target_arch = "x86_64")]
    radix52: OnceLock<Radix52Roots>,
}

/// A tail covers eight vectors: of four doubles.
#[cfg(target_arch = "x86_64")]
pub(crate) type DoubleRoots = Roots<f64, 32>;
/// Of eight integers.
#[cfg(target_arch = "x86_64")]
pub(crate) type Radix52Roots = Roots<u64, 64>;

/// What leads between N conjugate-invariant coefficients and a residue modulo `X^N - i`, `i = psi^N`. That is the left one of
/// the two parts into which `X^2N + 1` splits, and the other says nothing new. Since `X^-j = -X^(2N-j) = -i X^(N-j)` there,
/// its coefficient `j` is `b_j = a_j - i a_(N-j)`, and `a_0` alone at 0; `b_j + i b_(N-j) = 2 a_j` on the way back.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    /// `-i`.
    pub forward: Shoup,
    /// `i`.
    pub inverse: Shoup,
}

/// Powers of psi in tree order: entry `k` in `[2^j, 2^(j+1))` is the twiddle of block `k - 2^j` of stage `j`.
#[derive(Clone, Debug)]
pub(crate) struct IntegerRoots {
    pub forward: Vec<Shoup>,
    pub inverse: Vec<Shoup>,
    /// `N^-1`, or `(2N)^-1` before an unfolding, and that times the twiddle of the last inverse stage, which absorbs the scaling.
    pub scale: Shoup,
    pub scaled_last: Shoup,
}

impl NttTable {
    /// Finds the roots for a power-of-two degree in `2^10 ..= 2^17` and a prime `q < 2^50`, `q = 1 mod 2 degree`.
    ///
    /// # Errors
    /// [`ArithError::Degree`] or [`ArithError::Modulus`] otherwise.
    pub fn new(degree: usize, modulus: u64) -> Result<Self, ArithError> {
        Self::with_order(
            degree,
            modulus,
            2 * degree,
            "a prime congruent to 1 modulo twice the degree",
        )
    }

    /// As [`NttTable::new`] for the conjugate-invariant ring of N coefficients, where `q = 1 mod 4 degree`.
    ///
    /// # Errors
    /// [`ArithError::Degree`] or [`ArithError::Modulus`] otherwise.
    pub fn conjugate_invariant(degree: usize, modulus: u64) -> Result<Self, ArithError> {
        let expected = "a prime congruent to 1 modulo four times the degree";
        let mut table = Self::with_order(degree, modulus, 4 * degree, expected)?;
        let q = &table.modulus;
        let i = q.pow(table.root, degree as u64);
        table.fold = Some(Fold { forward: q.shoup(q.neg(i)), inverse: q.shoup(i) });
        Ok(table)
    }

    /// The table of a transform whose root has this order, a multiple of the degree, without a fold.
    fn with_order(
        degree: usize,
        modulus: u64,
        order: usize,
        expected: &'static str,
    ) -> Result<Self, ArithError> {
        if !degree.is_power_of_two() || !(MIN_DEGREE..=MAX_DEGREE).contains(&degree) {
            return Err(ArithError::Degree {
                degree,
                expected: "a power of two from 2^10 to 2^17",
            });
        }
        if modulus >> MAX_MODULUS_BITS != 0 {
            return Err(ArithError::Modulus { value: modulus, expected: "a prime below 2^50" });
        }
        if !is_prime(modulus) {
            return Err(ArithError::Modulus { value: modulus, expected: "a prime" });
        }
        let modulus = Modulus::new(modulus)?;
        let root = primitive_root(&modulus, order / 2)
            .ok_or(ArithError::Modulus { value: modulus.value(), expected })?;
        Ok(NttTable {
            degree,
            modulus,
            root,
            fold: None,
            integer: OnceLock::new(),
            #[cfg(target_arch = "x86_64")]
            double: OnceLock::new(),
            #[cfg(target_arch = "x86_64")]
            radix52: OnceLock::new(),
        })
    }

    /// The degree N.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// The prime.
    pub fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    /// The primitive root of unity psi that the transform uses, of order 2N, or 4N in the conjugate-invariant ring.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Whether the table serves the conjugate-invariant ring.
    pub fn is_conjugate_invariant(&self) -> bool {
        self.fold.is_some()
    }

    /// Coefficients in `[0, q)` to values in `[0, q)`, in place, bit-reversed order.
    ///
    /// # Panics
    /// When the length is not the degree.
    pub fn forward(&self, data: &mut [u64]) {
        self.forward_with(Backend::current(), data);
    }

    /// Values in `[0, q)`, bit-reversed order, to coefficients in `[0, q)`, in place.
    ///
    /// # Panics
    /// When the length is not the degree.
    pub fn inverse(&self, data: &mut [u64]) {
        self.inverse_with(Backend::current(), data);
    }

    /// As [`NttTable::forward`], with input and output in `[0, 4q)`. Which representative comes out is not specified
    /// and may differ between back-ends.
    ///
    /// # Panics
    /// When the length is not the degree.
    pub fn forward_lazy(&self, data: &mut [u64]) {
        self.forward_lazy_with(Backend::current(), data);
    }

    /// As [`NttTable::inverse`], with input and output in `[0, 2q)`. Which representative comes out is not specified
    /// and may differ between back-ends.
    ///
    /// # Panics
    /// When the length is not the degree.
    pub fn inverse_lazy(&self, data: &mut [u64]) {
        self.inverse_lazy_with(Backend::current(), data);
    }

    /// [`NttTable::forward`] on a given back-end.
    ///
    /// # Panics
    /// When the length is not the degree, or this processor cannot run the back-end.
    pub fn forward_with(&self, backend: Backend, data: &mut [u64]) {
        self.check(data);
        dispatch::forward::<false>(backend, self, data);
    }

    /// [`NttTable::inverse`] on a given back-end.
    ///
    /// # Panics
    /// When the length is not the degree, or this processor cannot run the back-end.
    pub fn inverse_with(&self, backend: Backend, data: &mut [u64]) {
        self.check(data);
        dispatch::inverse::<false>(backend, self, data);
    }

    /// [`NttTable::forward_lazy`] on a given back-end.
    ///
    /// # Panics
    /// When the length is not the degree, or this processor cannot run the back-end.
    pub fn forward_lazy_with(&self, backend: Backend, data: &mut [u64]) {
        self.check(data);
        dispatch::forward::<true>(backend, self, data);
    }

    /// [`NttTable::inverse_lazy`] on a given back-end.
    ///
    /// # Panics
    /// When the length is not the degree, or this processor cannot run the back-end.
    pub fn inverse_lazy_with(&self, backend: Backend, data: &mut [u64]) {
        self.check(data);
        dispatch::inverse::<true>(backend, self, data);
    }

    /// For odd `galois = g` the permutation with `forward(f(X^g))[i] = forward(f)[perm[i]]`. In the conjugate-invariant ring
    /// `g` counts modulo 4N, and `g` and `-g` are the same automorphism.
    ///
    /// # Panics
    /// When `galois` is even: then `X -> X^g` is no automorphism.
    pub fn automorphism_permutation(&self, galois: u64) -> Vec<u32> {
        assert!(galois % 2 == 1, "expected an odd Galois element, got {galois}");
        let step = if self.fold.is_some() { 4 } else { 2 };
        let order = step * self.degree as u64;
        let mut galois = galois % order;
        if galois % step != 1 && self.fold.is_some() {
            galois = order - galois;
        }
        let shift = u32::BITS - self.degree.trailing_zeros();
        (0..self.degree as u32)
            .map(|i| {
                let exponent = step * u64::from(i.reverse_bits() >> shift) + 1;
                let image = galois * exponent % order;
                ((image / step) as u32).reverse_bits() >> shift
            })
            .collect()
    }

    pub(crate) fn fold(&self) -> Option<&Fold> {
        self.fold.as_ref()
    }

    pub(crate) fn integer_roots(&self) -> &IntegerRoots {
        self.integer.get_or_init(|| {
            let (forward, inverse) = self.powers();
            let q = &self.modulus;
            let scale = self.scale();
            IntegerRoots {
                scaled_last: q.shoup(q.mul(scale, inverse[1])),
                scale: q.shoup(scale),
                forward: forward.into_iter().map(|w| q.shoup(w)).collect(),
                inverse: inverse.into_iter().map(|w| q.shoup(w)).collect(),
            }
        })
    }

    /// The roots as doubles, centred, each with its quotient by `q`.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn double_roots(&self) -> &DoubleRoots {
        let modulus = self.modulus.value() as f64;
        let pair = |w: u64| {
            let root = self.modulus.to_centered(w) as f64;
            (root, root / modulus)
        };
        self.double.get_or_init(|| self.vector_roots(modulus, 1.0 / modulus, pair))
    }

    /// The roots as integers, each with `floor(w 2^52 / q)`.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn radix52_roots(&self) -> &Radix52Roots {
        let modulus = self.modulus.value();
        let pair = |w: u64| (w, ((u128::from(w) << 52) / u128::from(modulus)) as u64);
        self.radix52.get_or_init(|| self.vector_roots(modulus, 0, pair))
    }

    #[cfg(target_arch = "x86_64")]
    fn vector_roots<T: Copy + Default, const L: usize>(
        &self,
        modulus: T,
        reciprocal: T,
        pair: impl Fn(u64) -> (T, T),
    ) -> Roots<T, L> {
        let (forward, inverse) = self.powers();
        let scale = self.scale();
        Roots {
            forward: Tree::new(&forward, &pair),
            inverse: Tree::new(&inverse, &pair),
            modulus,
            reciprocal,
            scale: pair(scale),
            scaled_last: pair(self.modulus.mul(scale, inverse[1])),
        }
    }

    /// `N^-1`, or `(2N)^-1` where unfolding doubles.
    fn scale(&self) -> u64 {
        let doubling = if self.fold.is_some() { 2 } else { 1 };
        self.modulus.inv(doubling * self.degree as u64).unwrap_or(1)
    }

    /// Powers of psi and of its inverse, in tree order. The conjugate-invariant transform is the subtree of node 2 of one of
    /// twice the size: node `k = 2^d + t` here is node `2^(d+1) + t` there.
    fn powers(&self) -> (Vec<u64>, Vec<u64>) {
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

    fn check(&self, data: &[u64]) {
        assert_eq!(data.len(), self.degree, "expected as many residues as the degree");
    }
}
