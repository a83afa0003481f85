//! Keys to a fresh sparse secret and back from it, which nobody keeps.

use super::super::base_switch::{self, Pair};
use super::super::inner::{Encapsulation, SmallPolynomial};
use super::super::keys::key_switch_key;
use super::super::{Entropy, Params};
use crate::error::Result;
use ciphervec_arith::sample::Stream;
use zeroize::Zeroizing;

/// For a sparse secret of `weight`; `dense` has the values of the secret modulo all primes.
pub(super) fn generate(
    params: &Params,
    weight: usize,
    dense: &[u64],
    entropy: &mut Entropy,
) -> Result<Encapsulation> {
    let degree = params.degree();
    let secret = sparse(degree, weight, &*entropy.seed()?, 0);
    let mut sparse = Zeroizing::new(vec![0; dense.len()]);
    for (table, limb) in params.tables().iter().zip(sparse.chunks_exact_mut(degree)) {
        secret.lift(limb, table.modulus());
        table.forward(limb);
    }
    let [to, from] = [&*sparse, dense].map(|values| Pair::of(params, values));
    let to_sparse = base_switch::generate(params, to, from, entropy)?;
    let to_dense = key_switch_key::generate(params, params.max_level(), dense, &sparse, entropy)?;
    Ok(Encapsulation::from_parts(to_sparse, to_dense))
}

/// Uniform among those with `weight` coefficients of −1 or 1 and zeros for the others. Each try
/// reads a word: its low bits are the place, the next one is the sign; places that are taken
/// are tried again.
fn sparse(degree: usize, weight: usize, seed: &[u8; 32], stream: u64) -> SmallPolynomial {
    let mut values = Zeroizing::new(vec![0i8; degree]);
    let mut stream = Stream::new(seed, stream);
    let bits = degree.trailing_zeros();
    let mut left = weight.min(degree);
    while left > 0 {
        let mut word = Zeroizing::new([0u64]);
        stream.uniform_bits(bits + 1, &mut *word);
        let place = word[0] as usize % degree;
        if values[place] == 0 {
            values[place] = if word[0] >> bits == 1 { 1 } else { -1 };
            left -= 1;
        }
    }
    SmallPolynomial::Ternary(values)
}
