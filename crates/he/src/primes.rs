//! Random numbers of a length or below a bound, and the check of a modulus that comes from outside.
//!
//! One Miller–Rabin test to base 2 shows that a modulus is composite. The primes of secret keys are
//! drawn in `ciphervec-he-secret`.

use crate::biguint;
use crate::error::{Error, Result};
use crypto_bigint::{BoxedUint, Odd};
use crypto_primes::hazmat::MillerRabin;
use std::sync::OnceLock;

/// Numbers from outside may have no prime factor below this.
const SMALL: usize = 1 << 16;

/// A uniform number of at most `bits` bits.
///
/// # Errors
/// [`Error::Randomness`].
pub fn random_bits(bits: u32) -> Result<BoxedUint> {
    let mut bytes = zeroize::Zeroizing::new(vec![0; bits.div_ceil(8) as usize]);
    crate::random::fill(&mut bytes)?;
    if !bits.is_multiple_of(8)
        && let Some(top) = bytes.last_mut()
    {
        *top &= (1 << (bits % 8)) - 1;
    }
    Ok(biguint::resized(&biguint::from_bytes(&bytes), bits))
}

/// A uniform number in `1..bound`.
///
/// # Errors
/// [`Error::Randomness`].
pub fn random_below(bound: &BoxedUint) -> Result<BoxedUint> {
    loop {
        // Every refused candidate is independent of the one that is kept.
        let value = random_bits(bound.bits())?;
        if value < *bound && !bool::from(value.is_zero()) {
            return Ok(value);
        }
    }
}

/// Whether the odd number is certainly composite.
fn is_composite(odd: Odd<BoxedUint>) -> bool {
    MillerRabin::new(odd).test_base_two().is_composite()
}

/// Refuses a modulus that no key generation makes: even, not of exactly `bits` bits, prime, a
/// square, or with a factor below 2^16. That it has exactly the promised factors only its owner can
/// know.
///
/// # Errors
/// [`Error::Malformed`] naming `what` and the reason.
pub fn check_modulus(what: &'static str, modulus: &BoxedUint, bits: u32) -> Result<()> {
    let refuse = |detail: &str| Err(Error::malformed(what, detail));
    if modulus.bits_vartime() != bits {
        return Err(Error::malformed(
            what,
            format!("a modulus of {bits} bits expected, {} came", modulus.bits_vartime()),
        ));
    }
    let Some(odd) = modulus.to_odd().into_option() else {
        return refuse("the modulus is even");
    };
    if small_factor(modulus).is_some() {
        return refuse("the modulus has a factor below 65,536");
    }
    if !is_composite(odd) {
        return refuse("the modulus is prime");
    }
    let root = modulus.floor_sqrt_vartime();
    if biguint::product(&root, &root) == *modulus {
        return refuse("the modulus is a square");
    }
    Ok(())
}

/// The smallest prime factor below 2^16, if there is one.
pub fn small_factor(value: &BoxedUint) -> Option<u64> {
    small_primes().iter().find_map(|(product, primes)| {
        let rest = biguint::reduced(value, &biguint::small(*product)).as_words()[0];
        primes.iter().copied().find(|prime| rest.is_multiple_of(*prime))
    })
}

/// The primes below 2^16, in runs whose product fits a word: one long division serves a run.
fn small_primes() -> &'static [(u64, Vec<u64>)] {
    static RUNS: OnceLock<Vec<(u64, Vec<u64>)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let mut composite = vec![false; SMALL];
        let mut runs: Vec<(u64, Vec<u64>)> = vec![(1, Vec::new())];
        for candidate in 2..SMALL {
            if composite[candidate] {
                continue;
            }
            (candidate * candidate..SMALL)
                .step_by(candidate)
                .for_each(|multiple| composite[multiple] = true);
            let prime = candidate as u64;
            match runs.last_mut() {
                Some((product, primes)) if product.checked_mul(prime).is_some() => {
                    *product *= prime;
                    primes.push(prime);
                }
                _ => runs.push((prime, vec![prime])),
            }
        }
        runs
    })
}
