//! Number-theoretic transform: the values of a polynomial at primitive roots of unity, and back.

use crate::backend::Backend;
use crate::backend::dispatch::ntt as kernels;
use crate::backend::operands::ntt::{Fold, NttPlan};
use crate::error::ArithError;
use crate::modulus::{KERNEL_BITS, Modulus};
use crate::prime::{is_prime, primitive_root};

/// Smallest degree served.
pub const MIN_DEGREE: usize = 1 << 10;
/// Largest degree served.
pub const MAX_DEGREE: usize = 1 << 17;

/// Roots of unity for one degree, one prime and one of two rings.
///
/// [`NttTable::new`] serves polynomials modulo `X^N + 1`. With psi a primitive 2N-th root of unity
/// and `rev` the reversal of log2(N) bits, the transform of `f` holds `f(psi^(2 rev(i) + 1))` at
/// index `i`.
///
/// [`NttTable::conjugate_invariant`] serves the polynomials `a_0 + sum_j a_j (X^j + X^-j)`,
/// `1 <= j < N`, modulo `X^2N + 1`, given by their N coefficients `a_j`: the ring `Z[X + 1/X]` of
/// Kim and Song (eprint 2018/952). Each takes the same value at a root and at its inverse, so that
/// N values are all there are. With psi a primitive 4N-th root of unity the transform holds
/// `f(psi^(4 rev(i) + 1))` at index `i`.
///
/// Every back-end uses the same psi and the same order.
#[derive(Clone, Debug)]
pub struct NttTable {
    plan: NttPlan,
    roots: kernels::Roots,
}

impl NttTable {
    /// Finds the roots for a power-of-two degree in `2^10 ..= 2^17` and a prime `q < 2^50`,
    /// `q = 1 mod 2 degree`.
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

    /// As [`NttTable::new`] for the conjugate-invariant ring of N coefficients, where
    /// `q = 1 mod 4 degree`.
    ///
    /// # Errors
    /// [`ArithError::Degree`] or [`ArithError::Modulus`] otherwise.
    pub fn conjugate_invariant(degree: usize, modulus: u64) -> Result<Self, ArithError> {
        let expected = "a prime congruent to 1 modulo four times the degree";
        let mut table = Self::with_order(degree, modulus, 4 * degree, expected)?;
        let q = &table.plan.modulus;
        let i = q.pow(table.plan.root, degree as u64);
        table.plan.fold = Some(Fold { forward: q.shoup(q.neg(i)), inverse: q.shoup(i) });
        Ok(table)
    }

    /// The table of a transform whose root has this order, a multiple of the degree, without a
    /// fold.
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
        if modulus >> KERNEL_BITS != 0 {
            return Err(ArithError::Modulus { value: modulus, expected: "a prime below 2^50" });
        }
        if !is_prime(modulus) {
            return Err(ArithError::Modulus { value: modulus, expected: "a prime" });
        }
        let modulus = Modulus::new(modulus)?;
        let root = primitive_root(&modulus, order / 2)
            .ok_or(ArithError::Modulus { value: modulus.value(), expected })?;
        let plan = NttPlan { degree, modulus, root, fold: None };
        Ok(NttTable { plan, roots: kernels::Roots::default() })
    }

    /// The degree N.
    pub fn degree(&self) -> usize {
        self.plan.degree
    }

    /// The prime.
    pub fn modulus(&self) -> &Modulus {
        &self.plan.modulus
    }

    /// The primitive root of unity psi that the transform uses, of order 2N, or 4N in the
    /// conjugate-invariant ring.
    pub fn root(&self) -> u64 {
        self.plan.root
    }

    /// Whether the table serves the conjugate-invariant ring.
    pub fn is_conjugate_invariant(&self) -> bool {
        self.plan.fold.is_some()
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

    /// As [`NttTable::forward`], with input and output in `[0, 4q)`. Which representative comes out
    /// is not specified and may differ between back-ends.
    ///
    /// # Panics
    /// When the length is not the degree.
    pub fn forward_lazy(&self, data: &mut [u64]) {
        self.forward_lazy_with(Backend::current(), data);
    }

    /// As [`NttTable::inverse`], with input and output in `[0, 2q)`. Which representative comes out
    /// is not specified and may differ between back-ends.
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
        kernels::forward::<false>(backend, &self.plan, &self.roots, data);
    }

    /// [`NttTable::inverse`] on a given back-end.
    ///
    /// # Panics
    /// When the length is not the degree, or this processor cannot run the back-end.
    pub fn inverse_with(&self, backend: Backend, data: &mut [u64]) {
        self.check(data);
        kernels::inverse::<false>(backend, &self.plan, &self.roots, data);
    }

    /// [`NttTable::forward_lazy`] on a given back-end.
    ///
    /// # Panics
    /// When the length is not the degree, or this processor cannot run the back-end.
    pub fn forward_lazy_with(&self, backend: Backend, data: &mut [u64]) {
        self.check(data);
        kernels::forward::<true>(backend, &self.plan, &self.roots, data);
    }

    /// [`NttTable::inverse_lazy`] on a given back-end.
    ///
    /// # Panics
    /// When the length is not the degree, or this processor cannot run the back-end.
    pub fn inverse_lazy_with(&self, backend: Backend, data: &mut [u64]) {
        self.check(data);
        kernels::inverse::<true>(backend, &self.plan, &self.roots, data);
    }

    /// From the sums of runs of `s` values each, bit-reversed order, to the coefficients of `1, X^s, X^2s, ...`, in place, all in
    /// `[0, q)`; `s` is the degree over their number. The roots of a run have one power `s`, so that its sum goes through a
    /// transform of that length, and the other coefficients through none.
    ///
    /// # Panics
    /// When the sums are no power of two, more than the degree, or of the conjugate-invariant ring.
    pub fn inverse_of_runs(&self, sums: &mut [u64]) {
        let (count, m) = (sums.len(), &self.plan.modulus);
        assert!(
            count.is_power_of_two() && count <= self.plan.degree && self.plan.fold.is_none(),
            "expected a power of two of sums, modulo X^N + 1"
        );
        let mut roots = vec![0; count];
        let root = m.pow(self.plan.root, (self.plan.degree / count) as u64);
        let mut power = 1;
        for exponent in (1..count).rev() {
            // Its power `count` is -1.
            power = m.mul(power, root);
            roots[exponent.reverse_bits() >> (count.leading_zeros() + 1)] = m.neg(power);
        }
        // Gentleman-Sande, which has no node 0.
        let mut nodes = count / 2;
        while nodes > 0 {
            for (part, &root) in sums.chunks_exact_mut(count / nodes).zip(&roots[nodes..]) {
                let (low, high) = part.split_at_mut(count / nodes / 2);
                for (x, y) in low.iter_mut().zip(high) {
                    (*x, *y) = (m.add(*x, *y), m.mul(m.sub(*x, *y), root));
                }
            }
            nodes /= 2;
        }
        // The degree divides q - 1.
        let scale = m.value() - (m.value() - 1) / self.plan.degree as u64;
        sums.iter_mut().for_each(|x| *x = m.mul(*x, scale));
    }

    /// For odd `galois = g` the permutation with `forward(f(X^g))[i] = forward(f)[perm[i]]`. In the
    /// conjugate-invariant ring `g` counts modulo 4N, and `g` and `-g` are the same automorphism.
    ///
    /// # Panics
    /// When `galois` is even: then `X -> X^g` is no automorphism.
    pub fn automorphism_permutation(&self, galois: u64) -> Vec<u32> {
        assert!(galois % 2 == 1, "expected an odd Galois element, got {galois}");
        let step = if self.plan.fold.is_some() { 4 } else { 2 };
        let order = step * self.plan.degree as u64;
        let mut galois = galois % order;
        if galois % step != 1 && self.plan.fold.is_some() {
            galois = order - galois;
        }
        let shift = u32::BITS - self.plan.degree.trailing_zeros();
        (0..self.plan.degree as u32)
            .map(|i| {
                let exponent = step * u64::from(i.reverse_bits() >> shift) + 1;
                let image = galois * exponent % order;
                ((image / step) as u32).reverse_bits() >> shift
            })
            .collect()
    }

    fn check(&self, data: &[u64]) {
        assert_eq!(data.len(), self.plan.degree, "expected as many residues as the degree");
    }
}
