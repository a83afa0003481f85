//! Keys of base switching, of the values of two secrets modulo q_0 and the first special prime.

use super::inner::{BaseSwitchKey, SmallPolynomial, tables};
use super::{Entropy, Params};
use crate::error::Result;
use ciphervec_arith::poly;
use zeroize::Zeroizing;

/// The values of a secret modulo q_0 and p.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a>([&'a [u64]; 2]);

impl<'a> Pair<'a> {
    /// Of the values modulo all primes.
    pub fn of(params: &Params, values: &'a [u64]) -> Self {
        let degree = params.degree();
        Pair([0, params.spec().primes()].map(|index| &values[index * degree..][..degree]))
    }

    /// Of those two alone.
    pub fn new(base: &'a [u64], special: &'a [u64]) -> Self {
        Pair([base, special])
    }
}

/// A key from the secret `from` to the secret `to`.
pub(super) fn generate(
    params: &Params,
    Pair(to): Pair<'_>,
    Pair(from): Pair<'_>,
    entropy: &mut Entropy,
) -> Result<BaseSwitchKey> {
    let seed = *entropy.seed()?;
    let noise_seed = entropy.seed()?;
    let noise = SmallPolynomial::gaussian(params.degree(), &noise_seed, 0);
    let linear = BaseSwitchKey::expand(params, &seed);
    let special = tables(params)[1].modulus().value();
    let limb = |index: usize| {
        let table = tables(params)[index];
        let m = table.modulus();
        let mut b = vec![0; params.degree()];
        noise.lift(&mut b, m);
        table.forward(&mut b);
        let mut product = Zeroizing::new(vec![0; params.degree()]);
        poly::mul(&mut product, &linear[index], to[index], m);
        poly::sub_assign(&mut b, &product, m);
        if index == 0 {
            product.copy_from_slice(from[index]);
            poly::scalar_mul_assign(&mut product, m.reduce(special), m);
            poly::add_assign(&mut b, &product, m);
        }
        b
    };
    let constant = [limb(0), limb(1)];
    Ok(BaseSwitchKey::from_parts(seed, constant, linear))
}
