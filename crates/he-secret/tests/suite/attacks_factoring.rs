//! Attacks on the schemes that rest on factoring: each succeeds on a weakened fixture and fails on
//! the product.

use ciphervec_he_secret::Error;
use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages};
use ciphervec_he_secret::okamoto_uchiyama;
use ciphervec_he_secret::paillier::{
    self, Ciphertexts, FactoringKey, Noise, NoiseSource, SecretKey,
};
use crypto_bigint::{BoxedUint, ConcatenatingMul, Gcd, NonZero, Odd, Resize};

fn number(big_endian: &[u8]) -> BoxedUint {
    let bytes: Vec<u8> = big_endian.iter().rev().copied().collect();
    BoxedUint::from_le_slice_vartime(&bytes)
}

fn reduce(x: &BoxedUint, m: &BoxedUint) -> BoxedUint {
    x.rem_vartime(&NonZero::new(m.clone()).unwrap())
}

fn pow(x: &BoxedUint, exponent: &BoxedUint, m: &BoxedUint) -> BoxedUint {
    reduce(x, m)
        .resize_unchecked(m.bits_precision())
        .pow_mod(exponent, &Odd::new(m.clone()).unwrap())
}

fn integer(key: &impl NoiseSource, table: &Ciphertexts) -> BoxedUint {
    number(&key.group().to_integer(table).unwrap())
}

/// The message of `c`, if its noise is `r^n` for an `r` in 1..=100: c r^-n = 1 + n m.
fn search_noise(c: &BoxedUint, n: &BoxedUint) -> Option<BoxedUint> {
    let squared = n.concatenating_mul(n);
    (1..=100u64).find_map(|r| {
        let noise = pow(&BoxedUint::from(r), n, &squared);
        let inverse = noise.invert_odd_mod(&Odd::new(squared.clone()).unwrap()).unwrap();
        let candidate = reduce(&c.concatenating_mul(&inverse), &squared);
        let (message, rest) = candidate.div_rem_vartime(&NonZero::new(n.clone()).unwrap());
        bool::from(rest.is_one()).then_some(message)
    })
}

#[test]
fn noise_from_a_hundred_roots_is_found_and_the_pools_is_not() {
    for noise in [Noise::Uniform, Noise::ShortExponent, Noise::Subgroup] {
        let key = paillier::insecure_generate(512, noise).unwrap();
        let n = number(&key.public().modulus());
        let squared = n.concatenating_mul(&n);
        // The table of the 2022 study: r from 1 to 100. No key is needed to read the message.
        let message = BoxedUint::from(271_828u64);
        let power = message.concatenating_mul(&n).wrapping_add(BoxedUint::one());
        let weak = power.concatenating_mul(&pow(&BoxedUint::from(61u64), &n, &squared));
        assert_eq!(search_noise(&reduce(&weak, &squared), &n).unwrap(), message);
        // Ours, from a pool and fresh, from either side.
        let pool = paillier::NoisePool::new(&key);
        pool.fill(&key, 1).unwrap();
        let messages = Messages::from_i64(&[271_828]);
        for table in [
            pool.encrypt(key.public(), 1, 1, &messages),
            key.public().encrypt(1, 1, &messages),
            key.encrypt(1, 1, &messages),
        ] {
            assert!(search_noise(&integer(&key, &table.unwrap()), &n).is_none());
        }
    }
}

const TEMPLATE: [i64; 24] = [
    3, -7, 120, -128, 127, 0, 1, -1, 64, 99, -100, 5, 6, -6, 77, 2, -2, 90, -33, 12, 8, -9, 41, 127,
];

/// One score whose weights are 1, 2^9, 2^18, ...: all of the template, if it is answered.
fn greedy_score(key: &SecretKey) -> Ciphertexts {
    let table = key.encrypt(1, TEMPLATE.len(), &Messages::from_i64(&TEMPLATE)).unwrap();
    let mut weights = Messages::zeros(4, TEMPLATE.len());
    for at in 0..TEMPLATE.len() {
        weights.row_mut(at)[at * 9 / 64] = 1 << (at * 9 % 64);
    }
    let weighted = key.public().multiply_plain(&table, &weights).unwrap();
    key.public().weighted_sum_along_vartime(&weighted, &[1; TEMPLATE.len()]).unwrap()
}

#[test]
fn one_unbounded_score_is_the_template_and_a_bounded_one_is_refused() {
    let key = paillier::insecure_generate(512, Noise::ShortExponent).unwrap();
    let score = greedy_score(&key);
    // Answered without a bound, the score falls apart into signed digits of nine bits.
    let answer = key.decrypt(&score, Evaluate::message_bits(key.public())).unwrap();
    let mut carry = 0;
    let found: Vec<i64> = (0..TEMPLATE.len())
        .map(|at| {
            let (word, shift) = (at * 9 / 64, at * 9 % 64);
            let low = answer.row(0)[word] >> shift;
            let high = if shift > 55 { answer.row(0)[word + 1] << (64 - shift) } else { 0 };
            let digit = ((low | high) & 511) as i64 + carry;
            carry = i64::from(digit >= 256);
            digit - 512 * carry
        })
        .collect();
    assert_eq!(found, TEMPLATE);
    // 24 coordinates of 8 bits with weights of 12: no honest score is wider than 25 bits.
    assert!(matches!(key.decrypt(&score, 26), Err(Error::Bound)));
    let message = key.decrypt(&score, 26).unwrap_err().to_string();
    assert!(!message.chars().any(|c| c.is_ascii_digit()), "{message}");
}

#[test]
fn decrypting_beyond_p_gives_p_away_and_is_refused() {
    let key = okamoto_uchiyama::insecure_generate(768, okamoto_uchiyama::Noise::Full).unwrap();
    let n = number(&key.public().modulus());
    // Anybody can make an encryption of 2^300, which p of 256 bits is far below.
    let one = key.public().encrypt(1, 1, &Messages::from_i64(&[1])).unwrap();
    let mut factor = Messages::zeros(5, 1);
    factor.row_mut(0)[4] = 1 << 44;
    let table = key.public().multiply_plain(&one, &factor).unwrap();
    let large = BoxedUint::one().resize_unchecked(768).shl(300);
    let answer = number(&key.hazmat_decrypt_unchecked(&table).unwrap());
    let found = large.wrapping_sub(&answer).gcd(&n);
    assert_eq!(found.bits(), 256);
    assert!(bool::from(reduce(&n, &found).is_zero()));
    // The product answers nothing, whatever bound is declared.
    for bits in [1, 64, FactoringKey::message_bits(key.public())] {
        assert!(matches!(key.decrypt(&table, bits), Err(Error::Bound)));
    }
}

#[test]
fn a_fault_in_one_half_factors_the_modulus_and_is_caught() {
    for noise in [Noise::Uniform, Noise::ShortExponent, Noise::Subgroup] {
        let key = paillier::insecure_generate(512, noise).unwrap();
        let n = number(&key.public().modulus());
        let message = 1_000_003;
        let table = key.encrypt(1, 1, &Messages::from_i64(&[message])).unwrap();
        // Unchecked: right modulo one prime, wrong modulo the other (Boneh, DeMillo, Lipton).
        let wrong = number(&key.hazmat_decrypt_unchecked(&table).unwrap());
        let wrong = wrong.resize_unchecked(512);
        let right = BoxedUint::from(message as u64).resize_unchecked(512);
        let difference =
            if wrong > right { wrong.wrapping_sub(right) } else { right.wrapping_sub(wrong) };
        let factor = difference.gcd(&n);
        assert_eq!(factor.bits(), 256);
        assert!(bool::from(reduce(&n, &factor).is_zero()));
        // Checked: by one prime alone, by the range, and by a random combination where the range is
        // full.
        let widest = Evaluate::message_bits(key.public());
        for bits in [40, 300, widest - 66] {
            assert!(matches!(key.hazmat_decrypt_faulty(&table, bits), Err(Error::Bound)), "{bits}");
        }
        assert!(matches!(key.hazmat_decrypt_faulty(&table, widest), Err(Error::Fault)));
        assert_eq!(key.decrypt(&table, widest).unwrap().to_i64(0), Some(message));
        // Noise that is wrong modulo one prime never leaves.
        for columns in [1, 2, 9] {
            assert!(matches!(key.hazmat_noise_faulty(columns), Err(Error::Fault)));
        }
    }
    let key = okamoto_uchiyama::insecure_generate(768, okamoto_uchiyama::Noise::Full).unwrap();
    assert!(matches!(key.hazmat_noise_faulty(3), Err(Error::Fault)));
}
