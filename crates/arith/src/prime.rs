//! Finds primes that carry a negacyclic transform, and roots of unity modulo them. For public
//! numbers only.

use crate::error::ArithError;
use crate::modulus::Modulus;

/// The first twelve primes: as Miller-Rabin bases they decide every number below 3.3e24 (Sorenson
/// and Webster).
const WITNESSES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// Whether `n < 2^62` is prime; `false` at or above.
pub fn is_prime(n: u64) -> bool {
    if n < 2 {
        return false;
    }
    if let Some(p) = WITNESSES.into_iter().find(|&p| n.is_multiple_of(p)) {
        return n == p;
    }
    let Ok(modulus) = Modulus::new(n) else {
        return false;
    };
    let shift = (n - 1).trailing_zeros();
    let odd = (n - 1) >> shift;
    WITNESSES.into_iter().all(|base| {
        let mut x = modulus.pow(base, odd);
        if x == 1 || x == n - 1 {
            return true;
        }
        (1..shift).any(|_| {
            x = modulus.mul(x, x);
            x == n - 1
        })
    })
}

/// The `count` largest primes below `2^bits` that are 1 modulo `2 degree`, descending.
///
/// # Errors
/// [`ArithError::Degree`] unless `degree` is a power of two up to `2^32`, [`ArithError::Modulus`]
/// unless `2 <= bits <= 62`, [`ArithError::Primes`] when there are too few.
pub fn ntt_primes(bits: u32, degree: usize, count: usize) -> Result<Vec<u64>, ArithError> {
    if !degree.is_power_of_two() || degree as u64 > 1 << 32 {
        return Err(ArithError::Degree { degree, expected: "a power of two up to 2^32" });
    }
    if !(2..=62).contains(&bits) {
        return Err(ArithError::Modulus {
            value: u64::from(bits),
            expected: "a size of 2 to 62 bits",
        });
    }
    let step = 2 * degree as u64;
    let top = ((1u64 << bits) - 1) / step * step + 1;
    let first = if top >> bits == 0 { top } else { top.saturating_sub(step) };
    let mut primes = Vec::new();
    let mut candidate = first;
    while primes.len() < count && candidate > 1 {
        if is_prime(candidate) {
            primes.push(candidate);
        }
        candidate = candidate.saturating_sub(step);
    }
    if primes.len() < count {
        return Err(ArithError::Primes {
            expected: count,
            found: primes.len(),
            bits,
            congruence: step,
        });
    }
    Ok(primes)
}

/// An element of order exactly `2 degree` modulo the prime `q`, from the smallest base that gives
/// one.
pub(crate) fn primitive_root(modulus: &Modulus, degree: usize) -> Option<u64> {
    let order = 2 * degree as u64;
    let q = modulus.value();
    if !(q - 1).is_multiple_of(order) {
        return None;
    }
    (2..q)
        .map(|g| modulus.pow(g, (q - 1) / order))
        .find(|&root| modulus.pow(root, degree as u64) == q - 1)
}
