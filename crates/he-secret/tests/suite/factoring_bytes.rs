//! Hostile bytes for the keys, ciphertexts and pools of the schemes that rest on factoring.

use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages};
use ciphervec_he_secret::okamoto_uchiyama;
use ciphervec_he_secret::paillier::{self, Noise, NoisePool, NoiseSource, PublicKey, SecretKey};
use ciphervec_he_secret::wire::HEADER_LEN;
use ciphervec_he_secret::{Error, damgard_jurik};

/// Makes length, key id (for keys) and checksum fit a payload, as a forger would.
fn forged(bytes: &[u8], public_len: Option<usize>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let length = (bytes.len() - HEADER_LEN) as u64;
    bytes[24..32].copy_from_slice(&length.to_le_bytes());
    if let Some(public_len) = public_len {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 additive-key-id");
        hasher.update(&bytes[6..7]).update(&bytes[HEADER_LEN..HEADER_LEN + public_len]);
        let id = hasher.finalize();
        bytes[16..24].copy_from_slice(&id.as_bytes()[..8]);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..32]).update(&bytes[HEADER_LEN..]);
    let checksum = *hasher.finalize().as_bytes();
    bytes[32..64].copy_from_slice(&checksum);
    bytes
}

/// Every flipped bit is an error as it is; with a checksum that fits, an error or the object whose
/// bytes these are.
fn flip_all(
    bytes: &[u8],
    public_len: Option<usize>,
    again: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> usize {
    assert_eq!(again(bytes).as_deref(), Some(bytes));
    let mut accepted = 0;
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(again(&damaged).is_none(), "bit {bit}");
        let damaged = forged(&damaged, public_len);
        if damaged == bytes {
            continue;
        }
        if let Some(read) = again(&damaged) {
            assert_eq!(read, damaged, "bit {bit}");
            accepted += 1;
        }
    }
    for length in 0..bytes.len() {
        assert!(again(&bytes[..length]).is_none());
        if length >= HEADER_LEN && public_len.is_none() {
            assert!(again(&forged(&bytes[..length], None)).is_none());
        }
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert!(again(&longer).is_none() && again(&forged(&longer, public_len)).is_none());
    accepted
}

fn keys() -> Vec<SecretKey> {
    vec![
        paillier::insecure_generate(256, Noise::Uniform).unwrap(),
        paillier::insecure_generate(256, Noise::ShortExponent).unwrap(),
        paillier::insecure_generate(256, Noise::Subgroup).unwrap(),
        damgard_jurik::insecure_generate(256, 2).unwrap(),
    ]
}

#[test]
fn flipped_bits_of_keys_are_errors_or_canonical() {
    for key in keys() {
        let bytes = key.public().to_bytes();
        let public_len = bytes.len() - HEADER_LEN;
        let read = |bytes: &[u8]| Some(PublicKey::insecure_from_bytes(bytes).ok()?.to_bytes());
        flip_all(&bytes, Some(public_len), read);
        let read =
            |bytes: &[u8]| Some(SecretKey::insecure_from_bytes(bytes).ok()?.to_bytes().to_vec());
        let accepted = flip_all(&key.to_bytes(), Some(public_len), read);
        // A key is bound to its primes; only the base of short-exponent noise is free.
        if key.public().noise_kind() != Noise::ShortExponent {
            assert_eq!(accepted, 0);
        }
    }
    let key = okamoto_uchiyama::insecure_generate(256, okamoto_uchiyama::Noise::Full).unwrap();
    let public_len = key.public().to_bytes().len() - HEADER_LEN;
    flip_all(&key.public().to_bytes(), Some(public_len), |bytes| {
        Some(okamoto_uchiyama::PublicKey::insecure_from_bytes(bytes).ok()?.to_bytes())
    });
    flip_all(&key.to_bytes(), Some(public_len), |bytes| {
        Some(okamoto_uchiyama::SecretKey::insecure_from_bytes(bytes).ok()?.to_bytes().to_vec())
    });
}

#[test]
fn flipped_bits_of_ciphertexts_and_pools_are_errors_or_canonical() {
    for key in keys() {
        let public = key.public();
        let table = key.encrypt(1, 2, &Messages::from_i64(&[1, 2])).unwrap();
        flip_all(&public.table_to_bytes(&table), None, |bytes| {
            Some(public.table_to_bytes(&public.table_from_bytes(bytes).ok()?))
        });
        let pool = NoisePool::new(public);
        pool.fill(&key, 2).unwrap();
        flip_all(&pool.into_bytes(public).unwrap(), None, |bytes| {
            let pool = NoisePool::from_bytes(public, bytes).ok()?;
            Some(pool.into_bytes(public).unwrap().to_vec())
        });
    }
}

/// Writes one digit into the first ciphertext, with a checksum that fits.
fn with_digit(bytes: &[u8], at: usize, digit: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let start = HEADER_LEN + 8 + at * digit.len();
    bytes[start..start + digit.len()].copy_from_slice(digit);
    forged(&bytes, None)
}

#[test]
fn ciphertexts_out_of_range_or_not_units_are_refused() {
    let key = paillier::insecure_generate(256, Noise::ShortExponent).unwrap();
    let public = key.public();
    let table = key.encrypt(3, 4, &Messages::from_i64(&[5; 12])).unwrap();
    let bytes = public.table_to_bytes(&table);
    let mut n = public.modulus();
    n.reverse();
    let public_len = public.to_bytes().len();
    let mut p = key.to_bytes()[public_len..public_len + 20].to_vec();
    p.resize(32, 0);
    let mut past = n.clone();
    past[0] += 2;
    let refused = |bytes: &[u8]| public.table_from_bytes(bytes).unwrap_err().to_string();
    assert!(refused(&with_digit(&bytes, 0, &n)).contains("not below"));
    assert!(refused(&with_digit(&bytes, 1, &past)).contains("not below"));
    assert!(refused(&with_digit(&bytes, 1, &[255; 32])).contains("not below"));
    assert!(refused(&with_digit(&bytes, 0, &p)).contains("shares a factor"));
    assert!(refused(&with_digit(&bytes, 0, &[0; 32])).contains("shares a factor"));
    // A zero in the second digit is an encryption without a message, and fine.
    assert!(public.table_from_bytes(&with_digit(&bytes, 1, &[0; 32])).is_ok());
    // Counts that the bytes do not hold, up to products that overflow; nothing is allocated for
    // them.
    for (rows, columns) in [(0u32, 4u32), (3, 0), (4, 3 + 1), (u32::MAX, u32::MAX), (12, u32::MAX)]
    {
        let mut changed = bytes.clone();
        changed[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&rows.to_le_bytes());
        changed[HEADER_LEN + 4..HEADER_LEN + 8].copy_from_slice(&columns.to_le_bytes());
        assert!(refused(&forged(&changed, None)).contains("promised"));
    }
    let group = public.group();
    let mut squared = vec![0xff; 64];
    assert!(group.from_integer(&squared).is_err());
    squared.push(0);
    assert!(group.from_integer(&squared).is_err() && group.from_integer(&[]).is_err());
    p.reverse();
    assert!(group.from_integer(&p).is_err());
    assert_eq!(
        key.decrypt(&group.from_integer(&[0, 0, 1]).unwrap(), 10).unwrap().to_i64(0),
        Some(0)
    );
}

#[test]
fn objects_of_other_keys_are_refused_by_name() {
    let [one, two] =
        [0, 1].map(|_| paillier::insecure_generate(256, Noise::ShortExponent).unwrap());
    let messages = Messages::from_i64(&[1]);
    let mine = one.encrypt(1, 1, &messages).unwrap();
    let theirs = two.encrypt(1, 1, &messages).unwrap();
    let wrong = |error: Error| {
        assert!(matches!(error, Error::WrongKey { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&one.public().key_id().to_string()), "{text}");
    };
    let public = one.public();
    wrong(public.add(&mine, &theirs).unwrap_err());
    wrong(public.negate(&theirs).unwrap_err());
    wrong(public.add_plain(&theirs, &messages).unwrap_err());
    wrong(public.multiply_plain(&theirs, &messages).unwrap_err());
    wrong(public.weighted_sum_vartime(&theirs, &[1]).unwrap_err());
    wrong(public.weighted_sum_along_vartime(&theirs, &[1]).unwrap_err());
    wrong(public.rerandomise(&mut theirs.clone()).unwrap_err());
    wrong(one.decrypt(&theirs, 10).unwrap_err());
    wrong(public.table_from_bytes(&two.public().table_to_bytes(&theirs)).unwrap_err());
    wrong(NoisePool::new(&two).fill(public, 1).unwrap_err());
    wrong(NoisePool::new(&two).encrypt(public, 1, 1, &messages).unwrap_err());
    let pool = NoisePool::new(&two).into_bytes(&two).unwrap();
    wrong(NoisePool::from_bytes(public, &pool).unwrap_err());
}

#[test]
fn insecure_and_malformed_keys_are_refused() {
    let key = paillier::insecure_generate(512, Noise::ShortExponent).unwrap();
    for error in [
        PublicKey::from_bytes(&key.public().to_bytes()).unwrap_err(),
        SecretKey::from_bytes(&key.to_bytes()).unwrap_err(),
        paillier::generate(1024).unwrap_err(),
        paillier::generate(2056).unwrap_err(),
        damgard_jurik::generate(2048, 4).unwrap_err(),
        damgard_jurik::generate(8192, 1).unwrap_err(),
        PublicKey::from_modulus(&key.public().modulus(), false).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Range { .. }), "{error}");
    }
    assert!(key.security().insecure && key.security().bits == 0 && !key.security().post_quantum);
    let even = {
        let mut n = key.public().modulus();
        n[63] ^= 1;
        n
    };
    assert!(PublicKey::from_modulus(&even, true).unwrap_err().to_string().contains("even"));
    // Forged bases of the noise: 0, 1, n - 1, n, and one with Jacobi symbol -1.
    let bytes = key.public().to_bytes();
    let public_len = bytes.len() - HEADER_LEN;
    let mut n = key.public().modulus();
    n.reverse();
    let mut less = n.clone();
    less[0] -= 1;
    let mut one = vec![0; 64];
    one[0] = 1;
    for base in [vec![0; 64], one, less, n] {
        let mut changed = bytes.clone();
        changed[HEADER_LEN + public_len - 64..].copy_from_slice(&base);
        let error =
            PublicKey::insecure_from_bytes(&forged(&changed, Some(public_len))).unwrap_err();
        assert!(error.to_string().contains("between 1 and n - 1"), "{error}");
    }
    let refused = (2..=255u8).any(|base| {
        let mut changed = bytes.clone();
        changed[HEADER_LEN + public_len - 64..].fill(0);
        changed[HEADER_LEN + public_len - 64] = base;
        PublicKey::insecure_from_bytes(&forged(&changed, Some(public_len)))
            .is_err_and(|error| error.to_string().contains("Jacobi"))
    });
    assert!(refused);
    // Primes that cannot make a key.
    let secret = key.to_bytes();
    let p: Vec<u8> = secret[bytes.len()..bytes.len() + 36].iter().rev().copied().collect();
    let refused = |p: &[u8], q: &[u8]| SecretKey::from_primes(p, q, true).unwrap_err().to_string();
    assert!(refused(&p, &p).contains("close"));
    let mut composite: Vec<u8> =
        secret[bytes.len() + 36..bytes.len() + 72].iter().rev().copied().collect();
    composite[35] ^= 1;
    assert!(refused(&p, &composite).contains("not prime"));
    assert!(format!("{key:?}").contains("redacted"));
}

#[test]
fn a_pool_hands_every_element_out_once() {
    let key = paillier::insecure_generate(256, Noise::Subgroup).unwrap();
    let public = key.public();
    let pool = NoisePool::new(public);
    pool.fill(&key, 100).unwrap();
    pool.fill(public, 3).unwrap();
    assert_eq!(pool.len(), 103);
    let messages = Messages::from_i64(&[7; 50]);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..2 {
        let table = pool.encrypt(public, 10, 5, &messages).unwrap();
        let bytes = public.table_to_bytes(&table);
        for element in bytes[HEADER_LEN + 8..].chunks(64) {
            assert!(seen.insert(element.to_vec()));
        }
        let found = key.decrypt(&table, 10).unwrap();
        assert!((0..50).all(|at| found.to_i64(at) == Some(7)));
    }
    // Three are left: an error that uses none, or fresh noise if asked for.
    let error = pool.encrypt(public, 1, 4, &Messages::from_i64(&[1; 4])).unwrap_err();
    assert_eq!(error, Error::Exhausted { asked: 4, left: 3 });
    assert!(pool.encrypt_or_draw(public, 1, 4, &Messages::from_i64(&[1; 4])).is_ok());
    assert_eq!(pool.len(), 3);
    let mut table = key.encrypt(1, 3, &Messages::from_i64(&[1, 2, 3])).unwrap();
    pool.rerandomise(public, &mut table).unwrap();
    assert_eq!(key.decrypt(&table, 10).unwrap().to_i64(2), Some(3));
    assert!(pool.is_empty());
    assert!(format!("{pool:?}").contains("redacted"));
    // Filled by one thread while another takes.
    std::thread::scope(|scope| {
        scope.spawn(|| pool.fill(&key, 200).unwrap());
        let mut taken = 0;
        while taken < 200 {
            taken += usize::from(pool.encrypt(public, 1, 1, &Messages::from_i64(&[1])).is_ok());
        }
    });
    assert!(pool.is_empty());
}
