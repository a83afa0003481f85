//! Powers of big integers, which only secrets need.

pub(crate) use ciphervec_he::biguint::*;
use crypto_bigint::{BoxedUint, Odd};

/// `base^exponent` modulo any `modulus`; for small exponents.
pub(crate) fn power_small(base: &BoxedUint, exponent: u32, modulus: &BoxedUint) -> BoxedUint {
    (0..exponent).fold(BoxedUint::one(), |power, _| product_mod(&power, base, modulus))
}

/// `base^exponent` modulo an odd `modulus`.
///
/// # Panics
/// For an even modulus.
pub(crate) fn power_mod(base: &BoxedUint, exponent: &BoxedUint, modulus: &BoxedUint) -> BoxedUint {
    resized(&reduced(base, modulus), modulus.bits_precision()).pow_mod(exponent, &odd(modulus))
}

fn odd(value: &BoxedUint) -> Odd<BoxedUint> {
    value.to_odd().into_option().expect("the modulus is odd")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(seed: u8, words: usize) -> BoxedUint {
        let mut out = vec![0; words];
        ciphervec_arith::Stream::new(&[seed; 32], 1).uniform_bits(64, &mut out);
        from_words(&out)
    }

    #[test]
    fn bytes_and_words_round_trip() {
        let value = number(1, 5);
        assert_eq!(from_bytes(&to_bytes(&value, 40)), value);
        assert_eq!(from_words(&to_words(&value, 7)), value);
        assert_eq!(to_bytes(&small(0x0102), 3), [2, 1, 0]);
        assert_eq!(from_bytes(&[1, 2, 0]), small(0x0201));
        assert_eq!(to_words(&from_bytes(&[]), 1), [0]);
    }

    #[test]
    fn digits_are_those_of_repeated_division() {
        let base = number(2, 3);
        let value = number(3, 11);
        let parts = digits(&value, &base, 4, 3);
        assert_eq!(joined(&parts, &base, 3), value);
        let (quotient, rest) = divided(&value, &base);
        assert_eq!(from_words(&parts[..3]), rest);
        assert_eq!(from_words(&parts[3..6]), divided(&quotient, &base).1);
    }

    #[test]
    fn small_cases_by_hand() {
        assert_eq!(inverse_mod(&small(3), &small(7)), Some(small(5)));
        assert_eq!(inverse_mod(&small(3), &small(16)), Some(small(11)));
        assert_eq!(inverse_mod(&small(6), &small(9)), None);
        assert_eq!(power_mod(&small(5), &small(3), &small(13)), small(8));
        assert_eq!(raised(&small(10), 30), from_words(&[0x4674_edea_4000_0000, 0xc_9f2c_9cd0]));
        assert_eq!(
            [jacobi_vartime(&small(2), &small(15)), jacobi_vartime(&small(7), &small(15))],
            [1, -1]
        );
        assert_eq!(jacobi_vartime(&small(5), &small(15)), 0);
        assert!(is_one(&gcd(&small(35), &small(12))));
    }
}
