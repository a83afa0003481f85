//! Paillier, Damgård–Jurik and Okamoto–Uchiyama against formulas written out with plain long
//! integers.

use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages, Table};
use ciphervec_he_secret::damgard_jurik;
use ciphervec_he_secret::factoring::{NoisePool, Pooled};
use ciphervec_he_secret::paillier::{self, Noise, NoiseSource, SecretKey};
use ciphervec_he_secret::{Error, wire};
use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, Odd, Resize};
use std::sync::OnceLock;

/// Keys of 512 bits, one a scheme, made once.
fn keys() -> &'static [SecretKey] {
    static KEYS: OnceLock<Vec<SecretKey>> = OnceLock::new();
    KEYS.get_or_init(|| {
        vec![
            paillier::insecure_generate(512, Noise::ShortExponent).unwrap(),
            paillier::insecure_generate(512, Noise::Uniform).unwrap(),
            paillier::insecure_generate(512, Noise::Subgroup).unwrap(),
            damgard_jurik::insecure_generate(512, 2).unwrap(),
            damgard_jurik::insecure_generate(512, 3).unwrap(),
        ]
    })
}

fn reversed(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().rev().copied().collect()
}

fn number(big_endian: &[u8]) -> BoxedUint {
    BoxedUint::from_le_slice_vartime(&reversed(big_endian))
}

/// Plain arithmetic modulo `m`.
struct Plain(BoxedUint);

impl Plain {
    fn reduce(&self, x: &BoxedUint) -> BoxedUint {
        x.rem_vartime(&NonZero::new(self.0.clone()).unwrap())
    }

    fn mul(&self, x: &BoxedUint, y: &BoxedUint) -> BoxedUint {
        self.reduce(&x.concatenating_mul(y))
    }

    fn pow(&self, x: &BoxedUint, exponent: &BoxedUint) -> BoxedUint {
        let x = self.reduce(x).resize_unchecked(self.0.bits_precision());
        x.pow_mod(exponent, &Odd::new(self.0.clone()).unwrap())
    }

    /// A signed number as a residue.
    fn signed(&self, x: i64) -> BoxedUint {
        let absolute = BoxedUint::from(x.unsigned_abs()).resize_unchecked(self.0.bits_precision());
        if x < 0 { self.0.wrapping_sub(&absolute) } else { absolute }
    }
}

fn power(n: &BoxedUint, k: u32) -> BoxedUint {
    (1..k).fold(n.clone(), |power, _| power.concatenating_mul(n))
}

/// n, n^s and n^(s + 1) of a key.
fn moduli(key: &SecretKey) -> (BoxedUint, Plain, Plain) {
    let n = number(&key.public().modulus());
    let s = key.public().s();
    (n.clone(), Plain(power(&n, s)), Plain(power(&n, s + 1)))
}

fn values(messages: &Messages) -> Vec<i64> {
    (0..messages.len()).map(|at| messages.to_i64(at).unwrap()).collect()
}

const EDGES: [i64; 10] = [0, 1, -1, 2, -2, 77, -12_345, i64::MAX, -i64::MAX, 1 << 40];

#[test]
fn messages_come_back_from_both_sides() {
    let messages = Messages::from_i64(&EDGES);
    for key in keys() {
        for table in [key.public().encrypt(2, 5, &messages), key.encrypt(2, 5, &messages)] {
            let table = table.unwrap();
            // By the smaller prime alone, by both, and by both with the check.
            let widest = Evaluate::message_bits(key.public());
            for bits in [64, widest / 2 + 20, widest] {
                let found = key.decrypt(&table, bits).unwrap();
                assert_eq!(found.width(), bits.div_ceil(64) as usize);
                assert_eq!(values(&found), EDGES, "{:?} {bits}", key.public());
            }
        }
    }
}

#[test]
fn the_widest_messages_come_back() {
    for key in keys() {
        let bits = Evaluate::message_bits(key.public());
        let mut messages = Messages::zeros(bits.div_ceil(64) as usize, 2);
        // 2^(bits - 1) - 1 and its negative.
        for bit in 0..bits - 1 {
            messages.row_mut(0)[bit as usize / 64] |= 1 << (bit % 64);
        }
        let negative: Vec<u64> = messages.row(0).iter().map(|word| !word).collect();
        messages.row_mut(1).copy_from_slice(&negative);
        messages.row_mut(1)[0] |= 1;
        let table = key.encrypt(1, 2, &messages).unwrap();
        let found = key.decrypt(&table, bits).unwrap();
        assert_eq!((found.row(0), found.row(1)), (messages.row(0), messages.row(1)));
        assert!(matches!(key.decrypt(&table, bits - 1), Err(Error::Bound)));
        assert!(matches!(key.decrypt(&table, 64), Err(Error::Bound)));
        // One more does not fit.
        messages.row_mut(1)[0] &= !1;
        assert!(matches!(key.encrypt(1, 2, &messages), Err(Error::Range { .. })));
    }
}

#[test]
fn ciphertexts_are_what_the_formula_says() {
    for key in keys() {
        let (n, limit, modulus) = moduli(key);
        let group = key.public().group();
        for m in [0, 5, -5, i64::MAX] {
            // (1 + n)^m r^(n^s), all by plain arithmetic, is decrypted.
            let r = BoxedUint::from(0x1234_5678_9abc_def1u64);
            let generator = n.wrapping_add(BoxedUint::one());
            let message = modulus.pow(&generator, &limit.signed(m));
            let c = modulus.mul(&message, &modulus.pow(&r, &limit.0));
            if key.public().noise_kind() != Noise::Subgroup {
                let table = group.from_integer(&c.to_be_bytes()).unwrap();
                assert_eq!(values(&key.decrypt(&table, 64).unwrap()), [m]);
                assert_eq!(number(&group.to_integer(&table).unwrap()), c);
            }
            // And back: what is encrypted is the message's power times an n^s-th residue, one that
            // the order kills.
            let table = key.public().encrypt(1, 1, &Messages::from_i64(&[m])).unwrap();
            let found = number(&group.to_integer(&table).unwrap());
            let inverse = modulus.pow(&generator, &limit.signed(-m));
            let noise = modulus.mul(&found, &inverse);
            let primes = primes(key);
            let one = BoxedUint::one();
            let order =
                primes[0].wrapping_sub(&one).concatenating_mul(primes[1].wrapping_sub(&one));
            assert!(bool::from(modulus.pow(&noise, &order).is_one()));
            assert!(!bool::from(noise.is_one()));
        }
    }
}

/// The primes of a key, read from its bytes as `crates/he/src/scheme.rs` lays them out.
fn primes(key: &SecretKey) -> [BoxedUint; 2] {
    let bytes = key.to_bytes();
    let public = key.public().to_bytes().len();
    let width = 512 / 16 + 4;
    [0, 1].map(|at| BoxedUint::from_le_slice_vartime(&bytes[public + at * width..][..width]))
}

#[test]
fn generated_primes_keep_every_promise() {
    for key in keys() {
        let [p, q] = primes(key);
        assert_eq!(p.concatenating_mul(&q), number(&key.public().modulus()));
        assert_eq!(key.public().bits(), 512);
        assert_eq!((p.as_words()[0] & 3, q.as_words()[0] & 3), (3, 3));
        assert!(crypto_primes::is_prime(crypto_primes::Flavor::Any, &p));
        assert!(crypto_primes::is_prime(crypto_primes::Flavor::Any, &q));
        assert!(q.wrapping_sub(&p).bits() > 190);
    }
}

#[test]
fn the_homomorphisms_hold() {
    let (a, b) = ([5i64, -7, 1 << 30, -1, 0, 12], [-5i64, 100, 3, -1, 9, -(1 << 33)]);
    for key in keys() {
        let public = key.public();
        let [x, y] = [a, b].map(|values| key.encrypt(2, 3, &Messages::from_i64(&values)).unwrap());
        let decrypted = |table: &_| values(&key.decrypt(table, 80).unwrap());
        let map = |f: fn(i64, i64) -> i64| a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect();
        let expected: Vec<i64> = map(|a, b| a + b);
        assert_eq!(decrypted(&public.add(&x, &y).unwrap()), expected);
        assert_eq!(decrypted(&public.add_plain(&x, &Messages::from_i64(&b)).unwrap()), expected);
        let expected: Vec<i64> = map(|a, b| a - b);
        assert_eq!(decrypted(&public.add(&x, &public.negate(&y).unwrap()).unwrap()), expected);
        let factors = [1i64, -1, 1 << 20, -30, i64::MIN, 0];
        let product = public.multiply_plain(&x, &Messages::from_i64(&factors)).unwrap();
        let expected: Vec<i64> = a.iter().zip(&factors).map(|(a, f)| a * f).collect();
        assert_eq!(decrypted(&product), expected);
        let sum = public.weighted_sum_vartime(&x, &[3, -4]).unwrap();
        assert_eq!((sum.rows(), sum.columns()), (1, 3));
        assert_eq!(decrypted(&sum), [15 + 4, -21, 3 * (1 << 30) - 48]);
        let row = x.transposed().columns_in(0..1).unwrap().transposed();
        let sum = public.weighted_sum_along_vartime(&row, &[1000, 1, -1]).unwrap();
        assert_eq!(decrypted(&sum), [5000 - 7 - (1 << 30)]);
        // 2^64 − 1 and −2^64: on the wide path nothing fits a word, and the sum of each column
        // still does.
        let mut wide = Messages::zeros(2, 2);
        wide.row_mut(0).copy_from_slice(&[u64::MAX, 0]);
        wide.row_mut(1).copy_from_slice(&[0, u64::MAX]);
        let same = key.encrypt(2, 1, &Messages::from_i64(&[-9, -9])).unwrap();
        assert_eq!(decrypted(&public.weighted_sum_wide_vartime(&same, &wide).unwrap()), [9]);
        let same = same.transposed();
        assert_eq!(decrypted(&public.weighted_sum_wide_along_vartime(&same, &wide).unwrap()), [9]);
        let three = Messages::from_i64(&[1000, 1, -1]);
        let sum = public.weighted_sum_wide_along_vartime(&row, &three).unwrap();
        assert_eq!(decrypted(&sum), [5000 - 7 - (1 << 30)]);
        for refused in [
            public.weighted_sum_wide_vartime(&x, &three),
            public.weighted_sum_wide_along_vartime(&x, &three),
            public.weighted_sum_wide_along_vartime(&row, &wide),
        ] {
            assert!(matches!(refused, Err(Error::Range { .. })));
        }
    }
}

#[test]
fn rerandomising_changes_the_bytes_and_not_the_value() {
    for key in keys() {
        let table = key.encrypt(1, 3, &Messages::from_i64(&[1, -2, 3])).unwrap();
        let mut other = table.clone();
        key.public().rerandomise(&mut other).unwrap();
        let [before, after] = [&table, &other].map(|table| key.public().table_to_bytes(table));
        let size = (before.len() - wire::HEADER_LEN - 8) / 3;
        for (before, after) in before[wire::HEADER_LEN + 8..]
            .chunks(size)
            .zip(after[wire::HEADER_LEN + 8..].chunks(size))
        {
            assert_ne!(before, after);
        }
        assert_eq!(values(&key.decrypt(&other, 64).unwrap()), [1, -2, 3]);
    }
}

#[test]
fn keys_and_ciphertexts_round_trip() {
    for key in keys() {
        let again = SecretKey::insecure_from_bytes(&key.to_bytes()).unwrap();
        let public = paillier::PublicKey::insecure_from_bytes(&key.public().to_bytes()).unwrap();
        assert_eq!(again.to_bytes(), key.to_bytes());
        assert_eq!(public.to_bytes(), key.public().to_bytes());
        assert_eq!(public.key_id(), key.public().key_id());
        let table = public.encrypt(2, 2, &Messages::from_i64(&[1, 2, 3, -4])).unwrap();
        let bytes = public.table_to_bytes(&table);
        let read = again.public().table_from_bytes(&bytes).unwrap();
        assert_eq!(values(&again.decrypt(&read, 64).unwrap()), [1, 2, 3, -4]);
        assert_eq!(public.table_to_bytes(&read), bytes);
        let owner = again.encrypt(1, 1, &Messages::from_i64(&[9])).unwrap();
        assert_eq!(values(&key.decrypt(&owner, 64).unwrap()), [9]);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    /// Any sums of products, in any order of operations, against 128-bit integers.
    #[test]
    fn linear_algebra_is_exact(
        which in 0usize..5,
        rows in 1usize..5,
        columns in 1usize..5,
        numbers in proptest::collection::vec(proptest::num::i32::ANY, 16),
        weights in proptest::collection::vec(-70_000i64..70_000, 4),
        scale in proptest::num::i32::ANY,
    ) {
        let key = &keys()[which];
        let public = key.public();
        let numbers: Vec<i64> = numbers[..rows * columns].iter().map(|&x| i64::from(x)).collect();
        let weights = &weights[..rows];
        let table = public.encrypt(rows, columns, &Messages::from_i64(&numbers)).unwrap();
        let sums = public.weighted_sum_vartime(&table, weights).unwrap();
        let factors = Messages::from_i64(&vec![i64::from(scale); columns]);
        let scaled = public.multiply_plain(&sums, &factors).unwrap();
        let shifted = public.add_plain(&scaled, &factors).unwrap();
        let result = public.negate(&public.add(&shifted, &sums).unwrap()).unwrap();
        let bytes = public.table_to_bytes(&result);
        let found = key.decrypt(&public.table_from_bytes(&bytes).unwrap(), 100).unwrap();
        for column in 0..columns {
            let sum: i128 = (0..rows)
                .map(|row| i128::from(numbers[row * columns + column]) * i128::from(weights[row]))
                .sum();
            let scale = i128::from(scale);
            let expected = -(sum * scale + scale + sum);
            let row = found.row(column);
            let value = i128::from(row[0]) | i128::from(row[1] as i64) << 64;
            proptest::prop_assert_eq!(value, expected);
        }
    }
}

#[test]
fn a_key_with_a_pool_takes_its_noise_from_there() {
    for key in keys() {
        let pool = NoisePool::new(key);
        pool.fill(key, 4).unwrap();
        let pooled = Pooled::new(key.public(), &pool).unwrap();
        let sealed = pooled.encrypt(1, 3, &Messages::from_i64(&[5, -6, 7])).unwrap();
        assert_eq!(values(&key.decrypt(&sealed, 8).unwrap()), [5, -6, 7]);
        assert_eq!(pool.len(), 1);
        let mut fresh = sealed.columns_in(0..1).unwrap();
        pooled.rerandomise(&mut fresh).unwrap();
        assert_eq!(values(&key.decrypt(&fresh, 8).unwrap()), [5]);
        let error = pooled.encrypt(1, 1, &Messages::from_i64(&[1])).unwrap_err();
        assert_eq!(error, Error::Exhausted { asked: 1, left: 0 });
    }
    let [first, second, ..] = keys() else { panic!("two keys") };
    assert!(matches!(
        Pooled::new(second.public(), &NoisePool::new(first)),
        Err(Error::WrongKey { .. })
    ));
}
