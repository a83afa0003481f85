//! Exponential ElGamal against the definition, integers, published encodings and hostile bytes.

use ciphervec_he_secret::Error;
use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages, Table};
use ciphervec_he_secret::elgamal::shared_noise::{SharedNoiseKey, SharedNoiseTable};
use ciphervec_he_secret::elgamal::{Ciphertexts, DiscreteLog, MESSAGE_BITS, PublicKey, SecretKey};
use ciphervec_he_secret::wire::{self, Header, Kind};
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::{Scalar, traits::Identity};
use proptest::prelude::*;
use std::sync::LazyLock;

static KEY: LazyLock<SecretKey> = LazyLock::new(|| SecretKey::generate().unwrap());

const BOUND: i64 = 1 << (MESSAGE_BITS - 1);

fn encrypt(rows: usize, columns: usize, values: &[i64]) -> Ciphertexts {
    KEY.public().encrypt(rows, columns, &Messages::from_i64(values)).unwrap()
}

fn decrypt(table: &Ciphertexts) -> Vec<i64> {
    let messages = KEY.decrypt(table, MESSAGE_BITS).unwrap();
    (0..messages.len()).map(|index| messages.to_i64(index).unwrap()).collect()
}

/// The pairs of points in a serialised table.
fn points(table: &Ciphertexts) -> Vec<[RistrettoPoint; 2]> {
    let bytes = table.to_bytes();
    let point =
        |bytes: &[u8]| CompressedRistretto::from_slice(bytes).unwrap().decompress().unwrap();
    bytes[wire::HEADER_LEN + 8..]
        .chunks_exact(64)
        .map(|pair| [point(&pair[..32]), point(&pair[32..])])
        .collect()
}

fn secret(key: &SecretKey) -> Scalar {
    let bytes = key.to_bytes();
    Scalar::from_canonical_bytes(bytes[wire::HEADER_LEN..].try_into().unwrap()).unwrap()
}

fn signed(value: i64) -> Scalar {
    let magnitude = Scalar::from(value.unsigned_abs());
    if value < 0 { -magnitude } else { magnitude }
}

#[test]
fn ciphertexts_are_those_of_the_definition() {
    let x = secret(&KEY);
    assert_eq!((G * x).compress().0, *KEY.public().encoded());
    let values = [0, 1, -1, 12_345, BOUND - 1, 1 - BOUND];
    let by_public = encrypt(2, 3, &values);
    let by_owner = KEY.encrypt(2, 3, &Messages::from_i64(&values)).unwrap();
    for table in [by_public, by_owner] {
        for ([one, two], value) in points(&table).into_iter().zip(values) {
            assert_ne!(one, RistrettoPoint::identity());
            assert_eq!(two - one * x, G * signed(value));
        }
        assert_eq!((table.rows(), table.columns()), (2, 3));
        assert_eq!(decrypt(&table), values);
    }
}

#[test]
fn noise_is_fresh_and_rerandomising_changes_every_point() {
    let mut table = encrypt(1, 3, &[7, 7, 7]);
    let before = points(&table);
    assert!(before[0] != before[1] && before[1] != before[2]);
    KEY.public().rerandomise(&mut table).unwrap();
    for (old, new) in before.iter().zip(points(&table)) {
        assert!(old[0] != new[0] && old[1] != new[1]);
    }
    assert_eq!(decrypt(&table), [7, 7, 7]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn scalars_follow_integers(a in -(1i64 << 33)..1 << 33, b in -(1i64 << 33)..1 << 33, f in -3i64..4) {
        let public = KEY.public();
        let (left, right) = (encrypt(1, 1, &[a]), encrypt(1, 1, &[b]));
        let plain = Messages::from_i64(&[b]);
        prop_assert_eq!(decrypt(&public.add(&left, &right).unwrap()), [a + b]);
        prop_assert_eq!(decrypt(&public.add_plain(&left, &plain).unwrap()), [a + b]);
        prop_assert_eq!(decrypt(&public.negate(&left).unwrap()), [-a]);
        let product = public.multiply_plain(&left, &Messages::from_i64(&[f])).unwrap();
        prop_assert_eq!(decrypt(&product), [a * f]);
    }

    #[test]
    fn weighted_sums_follow_integers(
        rows in 1usize..20,
        columns in 1usize..6,
        seed in any::<u64>(),
    ) {
        let mut state = seed;
        let mut draw = |bits: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as i64 % (1 << bits) - (1 << (bits - 1))
        };
        let values: Vec<i64> = (0..rows * columns).map(|_| draw(14)).collect();
        let weights: Vec<i64> = (0..rows).map(|_| draw(12)).collect();
        let expected: Vec<i64> = (0..columns)
            .map(|column| (0..rows).map(|row| weights[row] * values[row * columns + column]).sum())
            .collect();
        let public = KEY.public();
        let table = encrypt(rows, columns, &values);
        prop_assert_eq!(&decrypt(&public.weighted_sum_vartime(&table, &weights).unwrap()), &expected);
        let first = table.columns_in(0..1).unwrap().transposed();
        let along = public.weighted_sum_along_vartime(&first, &weights).unwrap();
        prop_assert_eq!(decrypt(&along)[0], expected[0]);
        let factors = Messages::from_i64(&weights);
        prop_assert_eq!(&decrypt(&public.weighted_sum_wide_vartime(&table, &factors).unwrap()), &expected);
        let along = public.weighted_sum_wide_along_vartime(&first, &factors).unwrap();
        prop_assert_eq!(decrypt(&along)[0], expected[0]);

        let key = SharedNoiseKey::generate(rows).unwrap();
        let shared = key.encrypt(columns, &Messages::from_i64(&values)).unwrap();
        let shared = SharedNoiseTable::from_bytes(key.key_id(), &shared.to_bytes()).unwrap();
        let sums = shared.weighted_sum_vartime(&weights).unwrap();
        let scores = key.decrypt(&sums, &weights, MESSAGE_BITS).unwrap();
        let scores: Vec<i64> = (0..columns).map(|at| scores.to_i64(at).unwrap()).collect();
        prop_assert_eq!(scores, expected);
    }
}

#[test]
fn factors_of_every_width_multiply() {
    let public = KEY.public();
    let table = encrypt(1, 4, &[1, -1, 3, 0]);
    let wide = i64::MAX;
    for factors in
        [[5, -5, 0, 7], [1 << 30, 1 << 30, -(1 << 30), 1 << 47], [wide, wide, -wide, i64::MIN]]
    {
        let product = public.multiply_plain(&table, &Messages::from_i64(&factors)).unwrap();
        let x = secret(&KEY);
        for (([one, two], value), factor) in points(&product).iter().zip([1, -1, 3, 0]).zip(factors)
        {
            assert_eq!(two - one * x, G * (signed(value) * signed(factor)), "{value} {factor}");
        }
    }
    // Three words: 2^128 − 1, and −2^64.
    let mut factors = Messages::zeros(3, 2);
    factors.row_mut(0).copy_from_slice(&[u64::MAX, u64::MAX, 0]);
    factors.row_mut(1).copy_from_slice(&[0, u64::MAX, u64::MAX]);
    let twos = encrypt(1, 2, &[2, 2]);
    let sum = public.weighted_sum_wide_along_vartime(&twos, &factors).unwrap();
    let product = public.multiply_plain(&twos, &factors).unwrap();
    let radix = Scalar::from(u64::MAX) + Scalar::ONE;
    let expected = [radix * radix - Scalar::ONE, -radix];
    for ([one, two], factor) in points(&product).iter().zip(expected) {
        assert_eq!(two - one * secret(&KEY), G * (factor + factor));
    }
    let [one, two] = points(&sum)[0];
    let total = expected[0] + expected[1];
    assert_eq!(two - one * secret(&KEY), G * (total + total));
    let wider = public.weighted_sum_wide_along_vartime(&table, &factors);
    assert!(matches!(wider, Err(Error::Range { .. })));
}

#[test]
fn tables_are_cut_turned_and_joined() {
    let table = encrypt(2, 3, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(decrypt(&table.transposed()), [1, 4, 2, 5, 3, 6]);
    assert_eq!(decrypt(&table.columns_in(1..3).unwrap()), [2, 3, 5, 6]);
    let joined = Ciphertexts::beside(&[&table.columns_in(2..3).unwrap(), &table]).unwrap();
    assert_eq!((joined.rows(), joined.columns()), (2, 4));
    assert_eq!(decrypt(&joined), [3, 1, 2, 3, 6, 4, 5, 6]);
    assert!(matches!(table.columns_in(1..4), Err(Error::Range { .. })));
    assert!(matches!(Ciphertexts::beside(&[]), Err(Error::Range { .. })));
    assert!(matches!(
        Ciphertexts::beside(&[&table, &encrypt(1, 1, &[0])]),
        Err(Error::Range { .. })
    ));
}

#[test]
fn a_result_beyond_its_bound_is_refused_without_its_value() {
    let table = encrypt(1, 1, &[1 << 20]);
    assert!(KEY.decrypt(&table, 22).is_ok());
    assert_eq!(KEY.decrypt(&table, 21).unwrap_err(), Error::Bound);
    let top = encrypt(1, 1, &[BOUND - 1]);
    let over = KEY.public().add_plain(&top, &Messages::from_i64(&[1])).unwrap();
    assert_eq!(KEY.decrypt(&over, MESSAGE_BITS).unwrap_err(), Error::Bound);
    assert!(matches!(KEY.decrypt(&table, MESSAGE_BITS + 1), Err(Error::Range { .. })));
    for message in [BOUND, -BOUND, i64::MIN] {
        let error = KEY.public().encrypt(1, 1, &Messages::from_i64(&[message])).unwrap_err();
        assert!(!error.to_string().contains(&message.to_string()));
    }
}

#[test]
fn other_keys_and_wrong_counts_are_refused() {
    let other = SecretKey::generate().unwrap();
    let table = encrypt(1, 2, &[1, 2]);
    let wrong = |result: Result<Ciphertexts, Error>| matches!(result, Err(Error::WrongKey { .. }));
    let public = other.public();
    assert!(wrong(public.add(&table, &table)) && wrong(public.negate(&table)));
    assert!(wrong(public.add_plain(&table, &Messages::from_i64(&[1, 2]))));
    assert!(wrong(public.weighted_sum_along_vartime(&table, &[1, 2])));
    assert!(wrong(public.table_from_bytes(&table.to_bytes())));
    assert!(matches!(other.decrypt(&table, 20), Err(Error::WrongKey { .. })));
    let range = |result: Result<Ciphertexts, Error>| matches!(result, Err(Error::Range { .. }));
    let public = KEY.public();
    assert!(range(public.add(&table, &table.transposed())));
    assert!(range(public.add_plain(&table, &Messages::from_i64(&[1]))));
    assert!(range(public.multiply_plain(&table, &Messages::from_i64(&[1]))));
    assert!(range(public.weighted_sum_vartime(&table, &[1, 2])));
    assert!(range(public.weighted_sum_along_vartime(&table, &[1])));
    assert!(range(public.encrypt(usize::MAX, 2, &Messages::from_i64(&[1]))));
}

#[test]
fn keys_travel_as_bytes_and_debug_shows_no_secret() {
    let public = PublicKey::from_bytes(&KEY.public().to_bytes()).unwrap();
    assert_eq!(&public, KEY.public());
    let secret_key = SecretKey::from_bytes(&KEY.to_bytes()).unwrap();
    assert_eq!(*secret_key.to_bytes(), *KEY.to_bytes());
    let table = public.encrypt(1, 1, &Messages::from_i64(&[-5])).unwrap();
    assert_eq!(secret_key.decrypt(&table, 8).unwrap().to_i64(0), Some(-5));
    let shown = format!("{:?} {:?}", &*KEY, SharedNoiseKey::from_seed([0xab; 32], 2));
    assert!(shown.contains("redacted") && !shown.contains("171") && shown.len() < 120, "{shown}");
}

/// The frame with another payload or key, its checksum right again.
fn forge(bytes: &[u8], kind: Kind, change: impl FnOnce(&mut Vec<u8>, &mut Header)) -> Vec<u8> {
    let (mut header, payload) = wire::open(kind, bytes).unwrap();
    let mut payload = payload.to_vec();
    change(&mut payload, &mut header);
    header.frame(&payload)
}

#[test]
fn encodings_that_rfc_9496_forbids_are_refused_everywhere() {
    let text = include_str!("../../../../vectors/ristretto255.txt");
    let lines: Vec<[u8; 32]> = text
        .lines()
        .filter(|line| line.len() == 64)
        .map(|line| {
            std::array::from_fn(|at| u8::from_str_radix(&line[2 * at..2 * at + 2], 16).unwrap())
        })
        .collect();
    let (multiples, invalid) = lines.split_at(16);
    for (index, encoded) in multiples.iter().enumerate() {
        let point = G * Scalar::from(index as u64);
        assert_eq!(point.compress().0, *encoded);
        assert_eq!(DiscreteLog::shared().of(&point, 5), Some(index as i64));
    }
    let table = encrypt(1, 2, &[1, 2]).to_bytes();
    // The neutral element is a point, but none that an honest key or encryption has.
    for encoded in invalid.iter().chain([&multiples[0]]) {
        for at in [0, 32, 64, 96] {
            let forged = forge(&table, Kind::Ciphertexts, |payload, _| {
                payload[8 + at..][..32].copy_from_slice(encoded);
            });
            assert!(matches!(KEY.public().table_from_bytes(&forged), Err(Error::Malformed { .. })));
        }
        let key = forge(&KEY.public().to_bytes(), Kind::PublicKey, |payload, _| {
            payload.copy_from_slice(encoded);
        });
        assert!(matches!(PublicKey::from_bytes(&key), Err(Error::Malformed { .. })));
    }
}

type Decode = fn(&[u8]) -> Result<Vec<u8>, Error>;

fn samples() -> Vec<(Kind, Vec<u8>, Decode)> {
    static SHARED: LazyLock<SharedNoiseKey> =
        LazyLock::new(|| SharedNoiseKey::from_seed([1; 32], 2));
    let shared = SHARED.encrypt(2, &Messages::from_i64(&[1, 2, 3, 4])).unwrap();
    vec![
        (Kind::PublicKey, KEY.public().to_bytes(), |b| Ok(PublicKey::from_bytes(b)?.to_bytes())),
        (Kind::SecretKey, KEY.to_bytes().to_vec(), |b| {
            Ok(SecretKey::from_bytes(b)?.to_bytes().to_vec())
        }),
        (Kind::Ciphertexts, encrypt(1, 2, &[1, 2]).to_bytes(), |b| {
            Ok(KEY.public().table_from_bytes(b)?.to_bytes())
        }),
        (Kind::Ciphertexts, shared.to_bytes(), |b| {
            Ok(SharedNoiseTable::from_bytes(SHARED.key_id(), b)?.to_bytes())
        }),
    ]
}

#[test]
fn any_flipped_bit_is_refused_and_forged_ones_are_refused_or_canonical() {
    for (kind, bytes, decode) in samples() {
        assert_eq!(decode(&bytes).unwrap(), bytes);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged).is_err(), "{kind:?}: bit {bit}");
        }
        for bit in 0..(bytes.len() - wire::HEADER_LEN) * 8 {
            let forged = forge(&bytes, kind, |payload, _| payload[bit / 8] ^= 1 << (bit % 8));
            match decode(&forged) {
                Ok(again) => assert_eq!(again, forged, "{kind:?}: bit {bit}"),
                Err(Error::Malformed { .. }) => {}
                Err(error) => panic!("{kind:?}: bit {bit}: {error}"),
            }
        }
        for length in (0..bytes.len()).chain([bytes.len() + 1, bytes.len() + 64]) {
            let mut cut = bytes.clone();
            cut.resize(length, 0);
            assert!(decode(&cut).is_err());
        }
        for change in [-1i64, 1, 32, 64] {
            let forged = forge(&bytes, kind, |payload, _| {
                payload.resize((payload.len() as i64 + change) as usize, 0);
            });
            assert!(decode(&forged).is_err(), "{kind:?}: {change} bytes more");
        }
    }
}

#[test]
fn shapes_that_the_bytes_do_not_fill_are_refused() {
    let (table, shared) = (&samples()[2], &samples()[3]);
    let huge =
        [(u32::MAX, 2), (1 << 30, 0), (0, 1 << 30), (u32::MAX, u32::MAX), (1 << 28, 1), (2, 2)];
    for (_, bytes, decode) in [table, shared] {
        for (rows, columns) in huge {
            let forged = forge(bytes, Kind::Ciphertexts, |payload, _| {
                payload[..4].copy_from_slice(&u32::to_le_bytes(rows));
                payload[4..8].copy_from_slice(&u32::to_le_bytes(columns));
                if rows.min(columns) == 0 {
                    payload.truncate(8);
                }
            });
            let same = forged == *bytes;
            assert!(
                same || matches!(decode(&forged), Err(Error::Malformed { .. })),
                "{rows} {columns}"
            );
        }
    }
}

#[test]
fn a_shared_sum_opens_under_its_own_weights_only() {
    let key = SharedNoiseKey::generate(3).unwrap();
    let table = key.encrypt(1, &Messages::from_i64(&[10, 20, 30])).unwrap();
    let sums = table.weighted_sum_vartime(&[1, -2, 3]).unwrap();
    assert_eq!(key.decrypt(&sums, &[1, -2, 3], 10).unwrap().to_i64(0), Some(60));
    assert_eq!(key.decrypt(&sums, &[1, -2, 2], 30).unwrap_err(), Error::Bound);
    assert!(matches!(key.decrypt(&sums, &[1, -2], 10), Err(Error::Range { .. })));
    let other = SharedNoiseKey::from_seed([3; 32], 3);
    assert!(matches!(other.decrypt(&sums, &[1, -2, 3], 10), Err(Error::WrongKey { .. })));
    // A longer embedding under the same seed: the dimensions before it keep their keys.
    let longer = SharedNoiseKey::from_seed(*key.seed(), 5);
    assert_eq!(longer.decrypt(&sums, &[1, -2, 3, 0, 0], 10).unwrap().to_i64(0), Some(60));
}
