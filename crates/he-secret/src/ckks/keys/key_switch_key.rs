//! Key-switching keys, of the values of two secrets modulo all primes.

use super::super::inner::{KeySwitchKey, SmallPolynomial};
use super::super::{Entropy, Params};
use crate::error::Result;
use ciphervec_arith::poly;
use zeroize::Zeroizing;

/// A key from `target` to `secret`.
pub(in super::super) fn generate(
    params: &Params,
    level: usize,
    secret: &[u64],
    target: &[u64],
    entropy: &mut Entropy,
) -> Result<KeySwitchKey> {
    let seed = *entropy.seed()?;
    let noise_seed = entropy.seed()?;
    let degree = params.degree();
    let limb = |prime: usize| prime * degree..(prime + 1) * degree;
    let digit = |digit: usize| {
        let noise = SmallPolynomial::gaussian(degree, &noise_seed, digit as u64);
        let range = params.digit_range(level, digit);
        move |index: usize, prime: usize, b: &mut [u64], a: &[u64]| {
            let table = &params.tables()[prime];
            let m = table.modulus();
            noise.lift(b, m);
            table.forward(b);
            let mut product = Zeroizing::new(vec![0; degree]);
            poly::mul(&mut product, a, &secret[limb(prime)], m);
            poly::sub_assign(b, &product, m);
            if range.contains(&index) {
                product.copy_from_slice(&target[limb(prime)]);
                poly::scalar_mul_assign(&mut product, params.special_residue(prime), m);
                poly::add_assign(b, &product, m);
            }
        }
    };
    Ok(KeySwitchKey::masked(params, level, seed, digit))
}
