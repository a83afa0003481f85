//! Changes of representation of residues: canonical, centred, of another modulus, or of 24 bits.
//!
//! Every function is free of branches on its data and panics when its slices differ in length.

use crate::backend::dispatch;
use crate::backend::operands::convert::SignedDigit;
use crate::modulus::Modulus;

/// Residues in `[0, from)`, read as integers in `(-from/2, from/2)`, become residues in `[0, to)`;
/// `to > from / 2`.
pub fn recentre(poly: &mut [u64], from: &Modulus, to: &Modulus) {
    assert!(to.value() > from.value() / 2, "expected moduli of about one size");
    dispatch::convert::recentre(poly, from.value(), to.value());
}

/// Residues in `[0, from)`, read as integers in `(-from/2, from/2)`, become residues in `[0, to)`,
/// whatever the sizes of the moduli.
///
/// # Panics
/// Also when `from` is even, or not below `2^50`.
pub fn recentre_to(out: &mut [u64], poly: &[u64], from: &Modulus, to: &Modulus) {
    assert_eq!(out.len(), poly.len(), "residues");
    from.assert_centred();
    dispatch::poly::recentre_to(out, poly, from, to);
}

/// Residues in `[0, q)` become integers in `(-q/2, q/2)`, as wrapping 64-bit words.
pub fn centre(poly: &mut [u64], m: &Modulus) {
    dispatch::convert::centre(poly, m.value());
}

/// Integers of magnitude below `q` become residues in `[0, q)`.
pub fn lift(out: &mut [u64], values: &[i64], m: &Modulus) {
    assert_eq!(out.len(), values.len(), "values");
    dispatch::convert::lift(out, values, m.value());
}

/// [`lift`] of values of -1, 0 and 1.
pub fn lift_ternary(out: &mut [u64], values: &[i8], m: &Modulus) {
    assert_eq!(out.len(), values.len(), "values");
    dispatch::convert::lift_ternary(out, values, m.value());
}

/// [`lift`] of `values + noise`.
pub fn lift_noisy(out: &mut [u64], values: &[i64], noise: &[i32], m: &Modulus) {
    assert_eq!(out.len(), values.len(), "values");
    assert_eq!(out.len(), noise.len(), "noise");
    dispatch::convert::lift_noisy(out, values, noise, m.value());
}

/// Signed digits of the upper bits of residues below `q < 2^50`, for gadget ciphertexts that are as exact
/// as their noise lets them be: with `r` the residue in `(-q/2, q/2)`,
/// `r = sum_j digit_j 2^(50 - (count - j) bits) + rest`, `|digit_j| <= 2^(bits - 1)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignedDigits {
    /// Bits a digit.
    pub bits: u32,
    /// Digits, the highest of which ends at bit 50.
    pub count: u32,
}

impl SignedDigits {
    /// Where a digit starts; [`Self::place`] of the first is how many bits are rounded away.
    pub const fn place(&self, index: u32) -> u32 {
        50 - (self.count - index) * self.bits
    }

    /// Writes digit `index` of each residue, as a residue.
    ///
    /// # Panics
    /// When the slices differ in length, the modulus is not below `2^50`, digits of no bits, or of more
    /// than 49 in all, are asked for, or there is no such digit.
    pub fn cut(&self, index: u32, out: &mut [u64], poly: &[u64], m: &Modulus) {
        assert_eq!(out.len(), poly.len(), "residues");
        assert!(m.value() >> 50 == 0, "expected a modulus below 2^50, got {}", m.value());
        assert!(self.bits > 0 && index < self.count, "expected a digit that there is");
        assert!(self.bits * self.count < 50, "expected at most 49 bits of digits");
        let half = 1u64 << (self.bits - 1);
        let halves: u64 = (0..self.count).map(|index| half << self.place(index)).sum();
        let mask = if index + 1 == self.count { u64::MAX } else { 2 * half - 1 };
        let offset = halves + (1 << (self.place(0) - 1));
        let digit = SignedDigit { offset, shift: self.place(index), mask, half };
        dispatch::convert::signed_digit(out, poly, m.value(), &digit);
    }
}

/// Modulus switching to 24 bits: `round(x 2^24 / q) mod 2^24` for residues `x` in `[0, q)`,
/// `q < 2^51`. Within `2^-27` of a tie either neighbour may come out, the same one on every
/// machine.
pub fn switch_down(out: &mut [u32], poly: &[u64], m: &Modulus) {
    assert_eq!(out.len(), poly.len(), "residues");
    assert!(m.value() >> 51 == 0, "expected a modulus below 2^51");
    dispatch::convert::switch_down(out, poly, m.value());
}

/// The way back: `round(x q / 2^24)` in `[0, q)` for `x` below `2^24`, `q < 2^51`.
pub fn switch_up(out: &mut [u64], values: &[u32], m: &Modulus) {
    assert_eq!(out.len(), values.len(), "values");
    assert!(m.value() >> 51 == 0, "expected a modulus below 2^51");
    dispatch::convert::switch_up(out, values, m.value());
}

/// Values below `2^24` become three little-endian bytes each.
pub fn pack24(out: &mut [u8], values: &[u32]) {
    assert_eq!(out.len(), values.len() * 3, "bytes");
    dispatch::convert::pack24(out, values);
}

/// The inverse of [`pack24`].
pub fn unpack24(out: &mut [u32], bytes: &[u8]) {
    assert_eq!(bytes.len(), out.len() * 3, "bytes");
    dispatch::convert::unpack24(out, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backend;
    use crate::ntt_primes;

    fn words(count: usize, limit: u64) -> Vec<u64> {
        let mut values: Vec<u64> =
            (0..count as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % limit).collect();
        values.extend([0, 1, limit / 2 - 1, limit / 2, limit / 2 + 1, limit - 1]);
        values
    }

    #[test]
    fn every_conversion_is_what_it_says_on_every_back_end() {
        let primes = ntt_primes(50, 4096, 2).unwrap();
        let [q, p] = [primes[0], primes[1]].map(|prime| Modulus::new(prime).unwrap());
        for backend in Backend::available() {
            let ran = backend.run(|| {
                for (from, to) in [(&q, &p), (&p, &q)] {
                    let values = words(1000, from.value());
                    let mut got = values.clone();
                    recentre(&mut got, from, to);
                    let expected: Vec<u64> =
                        values.iter().map(|&v| to.from_i64(from.to_centered(v))).collect();
                    assert_eq!(got, expected);
                    let mut got = values.clone();
                    centre(&mut got, from);
                    let expected: Vec<u64> =
                        values.iter().map(|&v| from.to_centered(v) as u64).collect();
                    assert_eq!(got, expected);
                    let signed: Vec<i64> = expected.iter().map(|&v| v as i64 / 2).collect();
                    let mut got = vec![0; signed.len()];
                    lift(&mut got, &signed, from);
                    let expected: Vec<u64> = signed.iter().map(|&v| from.from_i64(v)).collect();
                    assert_eq!(got, expected);
                    let noise: Vec<i32> = (0..signed.len() as i32).map(|i| i % 59 - 29).collect();
                    lift_noisy(&mut got, &signed, &noise, from);
                    let sums =
                        signed.iter().zip(&noise).map(|(&v, &e)| from.from_i64(v + i64::from(e)));
                    assert_eq!(got, sums.collect::<Vec<_>>());
                    let small: Vec<i8> = (0..signed.len()).map(|i| (i % 3) as i8 - 1).collect();
                    lift_ternary(&mut got, &small, from);
                    assert_eq!(
                        got,
                        small.iter().map(|&v| from.from_i64(i64::from(v))).collect::<Vec<_>>()
                    );
                }
            });
            assert!(ran.is_ok());
        }
    }

    #[test]
    fn signed_digits_add_up_to_the_rounded_residue_on_every_back_end() {
        let q = Modulus::new(ntt_primes(50, 4096, 1).unwrap()[0]).unwrap();
        let values = words(3000, q.value());
        for (bits, count) in [(7, 4), (7, 3), (9, 3), (1, 1), (16, 3), (7, 7)] {
            let digits = SignedDigits { bits, count };
            for backend in Backend::available() {
                let mut sums = vec![0i64; values.len()];
                let ran = backend.run(|| {
                    let mut cut = vec![0; values.len()];
                    for index in 0..count {
                        digits.cut(index, &mut cut, &values, &q);
                        for (sum, &digit) in sums.iter_mut().zip(&cut) {
                            let digit = q.to_centered(digit);
                            assert!(digit.unsigned_abs() <= 1 << (bits - 1), "{digit}");
                            *sum += digit << digits.place(index);
                        }
                    }
                });
                assert!(ran.is_ok());
                let step = 1i64 << digits.place(0);
                for (&sum, &value) in sums.iter().zip(&values) {
                    let value = q.to_centered(value);
                    assert!((sum - value).abs() <= step / 2 && sum % step == 0, "{value} {sum}");
                }
            }
        }
    }

    #[test]
    fn switching_rounds_to_nearest_on_every_back_end() {
        let q = Modulus::new(ntt_primes(50, 4096, 1).unwrap()[0]).unwrap();
        let values = words(20_000, q.value());
        let mut reference = Vec::new();
        for backend in Backend::available() {
            let mut down = vec![0; values.len()];
            let mut up = vec![0; values.len()];
            let ran = backend.run(|| {
                switch_down(&mut down, &values, &q);
                switch_up(&mut up, &down, &q);
            });
            assert!(ran.is_ok());
            for ((&value, &down), &up) in values.iter().zip(&down).zip(&up) {
                // |down q - value 2^24| <= q / 2, up to the stated doubt about ties, modulo 2^24 q.
                let (whole, scaled) = (u128::from(q.value()) << 24, u128::from(value) << 24);
                let distance = (u128::from(down) * u128::from(q.value())).abs_diff(scaled);
                let distance = distance.min(whole - distance);
                assert!(distance <= u128::from(q.value() / 2 + q.value() / (1 << 26)), "{value}");
                let exact = (u128::from(down) * u128::from(q.value()) + (1 << 23)) >> 24;
                assert_eq!(u128::from(up), exact % u128::from(q.value()));
            }
            let both = (down, up);
            if reference.is_empty() {
                reference.push(both);
            } else {
                assert_eq!(reference[0], both, "{}", backend.name());
            }
        }
    }

    #[test]
    fn three_byte_words_round_trip_on_every_back_end() {
        for backend in Backend::available() {
            for count in (0..70u32).chain([1000]) {
                let values: Vec<u32> =
                    (0..count).map(|i| i.wrapping_mul(2_654_435_761) >> 8).collect();
                let expected: Vec<u8> =
                    values.iter().flat_map(|v| v.to_le_bytes()[..3].to_vec()).collect();
                let mut bytes = vec![0; expected.len()];
                let mut back = vec![0; values.len()];
                let ran = backend.run(|| {
                    pack24(&mut bytes, &values);
                    unpack24(&mut back, &bytes);
                });
                assert!(ran.is_ok());
                assert_eq!((bytes, back), (expected, values), "{}", backend.name());
            }
        }
    }
}
