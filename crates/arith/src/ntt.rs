//! A polynomial modulo a prime and `X^N + 1` enters, its values at the primitive 2N-th roots of unity leave. Both sides.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::backend::transform::{Roots, Tree};
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

/// Roots of unity for one degree and one prime.
///
/// With psi a primitive 2N-th root of unity and `rev` the reversal of log2(N) bits, the transform of `f` holds
/// `f(psi^(2 rev(i) + 1))` at index `i`. Every back-end uses the same psi and the same order.
#[derive(Clone, Debug)]
pub struct NttTable {
    degree: usize,
    modulus: Modulus,
    root: u64,
    integer: OnceLock<IntegerRoots>,
    #[cfg(target_arch = "x86_64")]
    double: OnceLock<Roots<f64>>,
    #[cfg(target_arch = "x86_64")]
    radix52: OnceLock<Roots<u64>>,
}

/// Powers of psi in tree order: entry `k` in `[2^j, 2^(j+1))` is the twiddle of block `k - 2^j` of stage `j`.
#[derive(Clone, Debug)]
pub(crate) struct IntegerRoots {
    pub forward: Vec<Shoup>,
    pub inverse: Vec<Shoup>,
    /// `N^-1`, and `N^-1` times the twiddle of the last inverse stage, which absorbs the scaling.
    pub scale: Shoup,
    pub scaled_last: Shoup,
}

impl NttTable {
    /// Finds the roots for a power-of-two degree in `2^10 ..= 2^17` and a prime `q < 2^50`, `q = 1 mod 2 degree`.
    ///
    /// # Errors
    /// [`ArithError::Degree`] or [`ArithError::Modulus`] otherwise.
    pub fn new(degree: usize, modulus: u64) -> Result<Self, ArithError> {
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
        let root = primitive_root(&modulus, degree).ok_or(ArithError::Modulus {
            value: modulus.value(),
            expected: "a prime congruent to 1 modulo twice the degree",
        })?;
        Ok(NttTable {
            degree,
            modulus,
            root,
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

    /// The primitive 2N-th root of unity psi that the transform uses.
    pub fn root(&self) -> u64 {
        self.root
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

    /// For odd `galois = g` the permutation with `forward(f(X^g))[i] = forward(f)[perm[i]]`.
    ///
    /// # Panics
    /// When `galois` is even: then `X -> X^g` is no automorphism.
    pub fn automorphism_permutation(&self, galois: u64) -> Vec<u32> {
        assert!(galois % 2 == 1, "expected an odd Galois element, got {galois}");
        let order = 2 * self.degree as u64;
        let shift = u32::BITS - self.degree.trailing_zeros();
        (0..self.degree as u32)
            .map(|i| {
                let exponent = 2 * u64::from(i.reverse_bits() >> shift) + 1;
                let image = (galois % order) * exponent % order;
                ((image / 2) as u32).reverse_bits() >> shift
            })
            .collect()
    }

    pub(crate) fn integer_roots(&self) -> &IntegerRoots {
        self.integer.get_or_init(|| {
            let (forward, inverse) = self.powers();
            let q = &self.modulus;
            let scale = q.inv(self.degree as u64).unwrap_or(1);
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
    pub(crate) fn double_roots(&self) -> &Roots<f64> {
        let modulus = self.modulus.value() as f64;
        let pair = |w: u64| {
            let root = self.modulus.to_centered(w) as f64;
            (root, root / modulus)
        };
        self.double.get_or_init(|| self.vector_roots(modulus, 1.0 / modulus, pair))
    }

    /// The roots as integers, each with `floor(w 2^52 / q)`.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn radix52_roots(&self) -> &Roots<u64> {
        let modulus = self.modulus.value();
        let pair = |w: u64| (w, ((u128::from(w) << 52) / u128::from(modulus)) as u64);
        self.radix52.get_or_init(|| self.vector_roots(modulus, 0, pair))
    }

    #[cfg(target_arch = "x86_64")]
    fn vector_roots<T>(&self, modulus: T, reciprocal: T, pair: impl Fn(u64) -> (T, T)) -> Roots<T> {
        let (forward, inverse) = self.powers();
        let tree = |powers: &[u64]| {
            let (root, ratio) = powers.iter().map(|&w| pair(w)).unzip();
            Tree { root, ratio }
        };
        let scale = self.modulus.inv(self.degree as u64).unwrap_or(1);
        Roots {
            forward: tree(&forward),
            inverse: tree(&inverse),
            modulus,
            reciprocal,
            scale: pair(scale),
            scaled_last: pair(self.modulus.mul(scale, inverse[1])),
        }
    }

    /// Powers of psi and of its inverse, in tree order.
    fn powers(&self) -> (Vec<u64>, Vec<u64>) {
        let shift = u32::BITS - self.degree.trailing_zeros();
        let tree = |base: u64| {
            let mut out = vec![0; self.degree];
            let mut power = 1;
            for i in 0..self.degree as u32 {
                out[(i.reverse_bits() >> shift) as usize] = power;
                power = self.modulus.mul(power, base);
            }
            out
        };
        // psi^(2N) = 1, so the inverse is psi^(2N - 1).
        let inverse = self.modulus.pow(self.root, 2 * self.degree as u64 - 1);
        (tree(self.root), tree(inverse))
    }

    fn check(&self, data: &[u64]) {
        assert_eq!(data.len(), self.degree, "expected as many residues as the degree");
    }
}
