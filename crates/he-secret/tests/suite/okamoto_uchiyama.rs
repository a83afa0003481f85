//! Okamoto–Uchiyama against the paper's formulas written out with plain long integers.

use ciphervec_he_secret::Error;
use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages, Table};
use ciphervec_he_secret::okamoto_uchiyama::{self, Noise, NoiseSource, PublicKey, SecretKey};
use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, Odd, Resize};
use std::sync::OnceLock;

const BITS: u32 = 768;

fn keys() -> &'static [SecretKey; 2] {
    static KEYS: OnceLock<[SecretKey; 2]> = OnceLock::new();
    KEYS.get_or_init(|| {
        [Noise::Full, Noise::Short]
            .map(|noise| okamoto_uchiyama::insecure_generate(BITS, noise).unwrap())
    })
}

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

/// p and q, read from the key's bytes.
fn primes(key: &SecretKey) -> [BoxedUint; 2] {
    let bytes = key.to_bytes();
    let (public, width) = (key.public().to_bytes().len(), 32);
    [0, 1].map(|at| BoxedUint::from_le_slice_vartime(&bytes[public + at * width..][..width]))
}

fn values(messages: &Messages) -> Vec<i64> {
    (0..messages.len()).map(|at| messages.to_i64(at).unwrap()).collect()
}

const EDGES: [i64; 8] = [0, 1, -1, 99, -12_345, i64::MAX, -i64::MAX, i64::MIN];

#[test]
fn messages_come_back_from_both_sides() {
    for key in keys() {
        let mut wide = Messages::zeros(2, EDGES.len());
        for (at, &value) in EDGES.iter().enumerate() {
            let sign = if value < 0 { u64::MAX } else { 0 };
            wide.row_mut(at).copy_from_slice(&[value as u64, sign]);
        }
        for messages in [Messages::from_i64(&EDGES), wide] {
            for table in [key.public().encrypt(2, 4, &messages), key.encrypt(2, 4, &messages)] {
                let found = key.decrypt(&table.unwrap(), 80).unwrap();
                assert_eq!(values(&found), EDGES);
            }
        }
    }
}

#[test]
fn the_widest_messages_come_back_and_wider_ones_are_refused() {
    for key in keys() {
        let bits = Evaluate::message_bits(key.public());
        assert_eq!(bits, BITS / 3 - 66);
        let mut messages = Messages::zeros(bits.div_ceil(64) as usize, 2);
        for bit in 0..bits - 1 {
            messages.row_mut(0)[bit as usize / 64] |= 1 << (bit % 64);
        }
        let negative: Vec<u64> = messages.row(0).iter().map(|word| !word).collect();
        messages.row_mut(1).copy_from_slice(&negative);
        messages.row_mut(1)[0] |= 1;
        for table in [key.public().encrypt(1, 2, &messages), key.encrypt(1, 2, &messages)] {
            let table = table.unwrap();
            let found = key.decrypt(&table, bits).unwrap();
            assert_eq!((found.row(0), found.row(1)), (messages.row(0), messages.row(1)));
            assert!(matches!(key.decrypt(&table, bits - 1), Err(Error::Bound)));
            let doubled = key.public().add(&table, &table).unwrap();
            assert!(matches!(key.decrypt(&doubled, bits), Err(Error::Bound)));
        }
        messages.row_mut(1)[0] &= !1;
        for refused in [key.public().encrypt(1, 2, &messages), key.encrypt(1, 2, &messages)] {
            assert!(matches!(refused, Err(Error::Range { .. })));
        }
        let table = key.encrypt(1, 1, &Messages::from_i64(&[1])).unwrap();
        assert!(matches!(key.decrypt(&table, bits + 1), Err(Error::Range { .. })));
    }
}

#[test]
fn ciphertexts_are_what_the_formula_says() {
    for key in keys() {
        let [p, q] = primes(key);
        let n = number(&key.public().modulus());
        assert_eq!((n.bits(), p.bits()), (BITS, BITS / 3));
        let p2 = p.concatenating_mul(&p);
        assert_eq!(reduce(&p2.concatenating_mul(&q), &n), BoxedUint::zero());
        let g = number(&key.public().generator());
        let one = BoxedUint::one();
        let p1 = p.wrapping_sub(&one);
        // L(x) = (x - 1) / p; m = L(c^(p-1)) / L(g^(p-1)) modulo p.
        let log = |x: &BoxedUint| {
            let x = pow(x, &p1, &p2).wrapping_sub(&one);
            x.div_rem_vartime(&NonZero::new(p.clone()).unwrap())
                .0
                .resize_unchecked(p.bits_precision())
        };
        let inverse = log(&g).invert_odd_mod(&Odd::new(p.clone()).unwrap()).unwrap();
        for m in [0u64, 1, 4711, u64::MAX >> 1] {
            let message = Messages::from_i64(&[m as i64]);
            for table in [key.public().encrypt(1, 1, &message), key.encrypt(1, 1, &message)] {
                let c = number(&key.public().group().to_integer(&table.unwrap()).unwrap());
                let found = reduce(&log(&c).concatenating_mul(&inverse), &p);
                assert_eq!(found, BoxedUint::from(m));
            }
            let r = BoxedUint::from(0xdead_beef_1234_5677u64);
            let h = pow(&g, &n, &n);
            let c = pow(&g, &BoxedUint::from(m), &n).concatenating_mul(&pow(&h, &r, &n));
            let table = key.public().group().from_integer(&reduce(&c, &n).to_be_bytes()).unwrap();
            assert_eq!(values(&key.decrypt(&table, 70).unwrap()), [m as i64]);
        }
    }
}

#[test]
fn the_homomorphisms_hold() {
    let (a, b) = ([5i64, -7, 1 << 30, -1], [-5i64, 100, 3, -1]);
    for key in keys() {
        let public = key.public();
        let [x, y] = [a, b].map(|values| key.encrypt(2, 2, &Messages::from_i64(&values)).unwrap());
        let decrypted = |table: &_| values(&key.decrypt(table, 80).unwrap());
        let sums: Vec<i64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(decrypted(&public.add(&x, &y).unwrap()), sums);
        assert_eq!(decrypted(&public.add_plain(&x, &Messages::from_i64(&b)).unwrap()), sums);
        assert_eq!(decrypted(&public.negate(&x).unwrap()), a.map(|a| -a));
        let product = public.multiply_plain(&x, &Messages::from_i64(&[3, -3, -9, 0])).unwrap();
        assert_eq!(decrypted(&product), [15, 21, -9 * (1 << 30), 0]);
        assert_eq!(
            decrypted(&public.weighted_sum_vartime(&x, &[2, -1]).unwrap()),
            [10 - (1 << 30), -13]
        );
        let row = x.transposed().columns_in(1..2).unwrap().transposed();
        let sum = public.weighted_sum_along_vartime(&row, &[1, 7]).unwrap();
        assert_eq!(decrypted(&sum), [(1 << 30) - 7]);
        let sum = public.weighted_sum_wide_vartime(&x, &Messages::from_i64(&[2, -1])).unwrap();
        assert_eq!(decrypted(&sum), [10 - (1 << 30), -13]);
        let sum = public.weighted_sum_wide_along_vartime(&row, &Messages::from_i64(&[1, 7]));
        assert_eq!(decrypted(&sum.unwrap()), [(1 << 30) - 7]);
        let mut other = x.clone();
        public.rerandomise(&mut other).unwrap();
        assert_ne!(public.table_to_bytes(&x), public.table_to_bytes(&other));
        assert_eq!(decrypted(&other), a);
    }
}

#[test]
fn keys_round_trip_and_bad_ones_are_refused() {
    for key in keys() {
        let again = SecretKey::insecure_from_bytes(&key.to_bytes()).unwrap();
        let public = PublicKey::insecure_from_bytes(&key.public().to_bytes()).unwrap();
        assert_eq!(again.to_bytes(), key.to_bytes());
        assert_eq!(
            (public.to_bytes(), public.key_id()),
            (key.public().to_bytes(), key.public().key_id())
        );
        let table = public.encrypt(1, 1, &Messages::from_i64(&[-3])).unwrap();
        assert_eq!(values(&again.decrypt(&table, 64).unwrap()), [-3]);
        assert!(matches!(
            PublicKey::from_bytes(&key.public().to_bytes()),
            Err(Error::Range { .. })
        ));
        assert!(matches!(SecretKey::from_bytes(&key.to_bytes()), Err(Error::Range { .. })));
        assert!(key.security().insecure && !key.security().post_quantum);
        assert!(format!("{key:?}").contains("redacted"));
    }
    assert!(matches!(
        keys()[0].decrypt(&keys()[1].encrypt(1, 1, &Messages::from_i64(&[1])).unwrap(), 64),
        Err(Error::WrongKey { .. })
    ));
    assert!(okamoto_uchiyama::generate(1024).is_err());
}
