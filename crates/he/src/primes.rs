//! Primes: a length and a condition enter, random primes leave. Both sides.
//!
//! A modulus from outside enters too; a refusal or nothing leaves.
//!
//! Primality is the strengthened Baillie–PSW test of crypto-primes. Candidates start at a fresh
//! number of the operating system's generator each time.

use crate::biguint;
use crate::error::{Error, Result};
use crypto_bigint::{BoxedUint, Odd};
use crypto_primes::hazmat::MillerRabin;
use std::sync::OnceLock;

#[cfg(feature = "client")]
use core::num::NonZeroU32;
#[cfg(feature = "client")]
use crypto_primes::{Flavor, hazmat::SmallFactorsSieve};

/// Numbers from outside may have no prime factor below this.
const SMALL: usize = 1 << 16;

/// A uniform number of at most `bits` bits.
///
/// # Errors
/// [`Error::Randomness`].
pub(crate) fn random_bits(bits: u32) -> Result<BoxedUint> {
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
pub(crate) fn random_below(bound: &BoxedUint) -> Result<BoxedUint> {
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
pub(crate) fn check_modulus(what: &'static str, modulus: &BoxedUint, bits: u32) -> Result<()> {
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
fn small_factor(value: &BoxedUint) -> Option<u64> {
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

/// Whether the number is prime, as far as the strengthened Baillie–PSW test can tell.
#[cfg(feature = "client")]
pub(crate) fn is_prime(value: &BoxedUint) -> bool {
    crypto_primes::is_prime(Flavor::Any, value)
}

/// A random prime of exactly `bits` bits, congruent to 3 modulo 4, its two highest bits set, that
/// `accept` accepts.
///
/// # Errors
/// [`Error::Randomness`]; [`Error::Range`] for fewer than 32 bits.
#[cfg(feature = "client")]
pub(crate) fn random_prime(bits: u32, accept: impl Fn(&BoxedUint) -> bool) -> Result<BoxedUint> {
    let length = NonZeroU32::new(bits).filter(|bits| bits.get() >= 32).ok_or(Error::Range {
        what: "a prime's length",
        expected: "at least 32 bits".to_owned(),
        actual: bits.to_string(),
    })?;
    loop {
        let mut start = random_bits(bits)?;
        set_bits(&mut start, &[0, 1, bits - 1, bits - 2]);
        let sieve = SmallFactorsSieve::new(start, length, false)
            .map_err(|error| Error::malformed("a prime", error.to_string()))?;
        let found = sieve
            .filter(|candidate| candidate.as_words()[0] & 3 == 3)
            .find(|candidate| is_prime(candidate) && accept(candidate));
        // None: the sieve ran into 2^bits, so start again elsewhere.
        if let Some(prime) = found {
            return Ok(prime);
        }
    }
}

/// A random prime of exactly `bits` bits that is `2 order k + 1` for an odd `k`, so congruent to 3
/// modulo 4 and with a subgroup of prime `order`; its two highest bits set.
///
/// # Errors
/// [`Error::Randomness`]; [`Error::Range`] unless the order is shorter by 16 bits.
#[cfg(feature = "client")]
pub(crate) fn random_prime_above(
    bits: u32,
    order: &BoxedUint,
    accept: impl Fn(&BoxedUint) -> bool,
) -> Result<BoxedUint> {
    if order.bits() + 16 > bits {
        return Err(Error::Range {
            what: "the order of a subgroup",
            expected: format!("at most {} bits", bits.saturating_sub(16)),
            actual: order.bits().to_string(),
        });
    }
    // Candidates step by 4 * order from a random start that is 2 * order * odd + 1.
    let step = biguint::resized(order, bits + 64).shl(2);
    let half = biguint::resized(order, bits + 64).shl(1);
    loop {
        let mut start = biguint::resized(&random_bits(bits)?, bits + 64);
        set_bits(&mut start, &[bits - 1, bits - 2]);
        let rest = biguint::resized(&biguint::reduced(&start, &step), bits + 64);
        let mut candidate =
            start.wrapping_sub(&rest).wrapping_add(&half).wrapping_add(biguint::small(1));
        for _ in 0..16 * bits {
            if candidate.bits() > bits {
                break;
            }
            let value = biguint::resized(&candidate, bits);
            let high = value.bit_vartime(bits - 1) && value.bit_vartime(bits - 2);
            if high && small_factor(&value).is_none() && is_prime(&value) && accept(&value) {
                return Ok(value);
            }
            candidate = candidate.wrapping_add(&step);
        }
    }
}

#[cfg(feature = "client")]
fn set_bits(value: &mut BoxedUint, bits: &[u32]) {
    for &bit in bits {
        value.as_mut_words()[bit as usize / 64] |= 1 << (bit % 64);
    }
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;

    #[test]
    fn primes_have_the_asked_form() {
        let prime = random_prime(256, |_| true).unwrap();
        assert_eq!((prime.bits(), prime.as_words()[0] & 3), (256, 3));
        assert!(prime.bit_vartime(254) && is_prime(&prime));
        let order = random_prime(96, |_| true).unwrap();
        let above = random_prime_above(256, &order, |_| true).unwrap();
        assert_eq!((above.bits(), above.as_words()[0] & 3), (256, 3));
        assert!(above.bit_vartime(254) && is_prime(&above));
        assert!(biguint::is_one(&biguint::reduced(&above, &order)));
        assert!(random_prime_above(100, &order, |_| true).is_err());
        assert!(random_prime(31, |_| true).is_err());
    }

    #[test]
    fn a_condition_is_kept() {
        let prime = random_prime(64, |p| p.as_words()[0] % 3 == 1).unwrap();
        assert_eq!(prime.as_words()[0] % 3, 1);
    }

    #[test]
    fn bad_moduli_are_refused() {
        let [p, q] = [0, 1].map(|_| random_prime(128, |_| true).unwrap());
        let good = biguint::product(&p, &q);
        check_modulus("a key", &good, 256).unwrap();
        let refused = |modulus: &BoxedUint, bits| {
            check_modulus("a key", modulus, bits).unwrap_err().to_string()
        };
        assert!(refused(&good, 255).contains("255 bits expected, 256 came"));
        assert!(refused(&good.wrapping_sub(biguint::small(1)), 256).contains("even"));
        assert!(refused(&p, 128).contains("prime"));
        assert!(refused(&biguint::product(&p, &p), 256).contains("square"));
        for small in [3u64, 251, 65_521] {
            let weak = biguint::trimmed(&biguint::product(&good, &biguint::small(small)));
            assert_eq!(small_factor(&weak), Some(small));
            assert!(refused(&weak, weak.bits()).contains("65,536"));
        }
        assert_eq!(small_factor(&biguint::small(65_537)), None);
    }

    #[test]
    fn uniform_numbers_stay_below_their_bound() {
        let bound = biguint::small(5);
        let mut seen = [0; 5];
        for _ in 0..400 {
            seen[random_below(&bound).unwrap().as_words()[0] as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|&count| count > 50), "{seen:?}");
        assert_eq!(random_bits(9).unwrap().as_words()[0] >> 9, 0);
    }
}
