//! Random primes of a length and a condition, for secret keys.
//!
//! Primality is the strengthened Baillie–PSW test of crypto-primes. Candidates start at a fresh
//! number of the operating system's generator each time.

pub(crate) use ciphervec_he::primes::*;

use crate::biguint;
use crate::error::{Error, Result};
use core::num::NonZeroU32;
use crypto_bigint::BoxedUint;
use crypto_primes::{Flavor, hazmat::SmallFactorsSieve};

/// Whether the number is prime, as far as the strengthened Baillie–PSW test can tell.
pub(crate) fn is_prime(value: &BoxedUint) -> bool {
    crypto_primes::is_prime(Flavor::Any, value)
}

/// A random prime of exactly `bits` bits, congruent to 3 modulo 4, its two highest bits set, that
/// `accept` accepts.
///
/// # Errors
/// [`Error::Randomness`]; [`Error::Range`] for fewer than 32 bits.
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

fn set_bits(value: &mut BoxedUint, bits: &[u32]) {
    for &bit in bits {
        value.as_mut_words()[bit as usize / 64] |= 1 << (bit % 64);
    }
}

#[cfg(test)]
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
