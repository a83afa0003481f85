//! Shares of a key: as many as are needed give it back, any of them; and every share that does not belong is named.

use ciphervec_owner::Keys;
use ciphervec_owner::protect::shares::{Share, ShareError};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Outcome = Result<(), Box<dyn Error>>;

const MASTER: [u8; 32] = *b"an example of a master secret...";
const VALUE: usize = 32;

fn keys() -> Keys {
    Keys::from_master(MASTER)
}

fn refused(shares: &[&Share]) -> ShareError {
    match Keys::combine(shares) {
        Err(ciphervec_owner::Error::Share(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// GF(2⁸) with the polynomial x⁸ + x⁴ + x³ + x + 1, by shifting and adding.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1b };
        b >>= 1;
    }
    product
}

/// Lagrange's interpolation at zero, by the book.
fn at_zero(points: &[(u8, u8)]) -> u8 {
    let inverse = |x: u8| (1..=255).find(|y| times(x, *y) == 1).unwrap();
    points.iter().fold(0, |sum, (x, y)| {
        let others = points.iter().filter(|(other, _)| other != x);
        sum ^ others.fold(*y, |term, (other, _)| times(term, times(*other, inverse(other ^ x))))
    })
}

/// Number and value, as they stand in the file.
fn point(share: &Share) -> (u8, Vec<u8>) {
    let bytes = share.to_bytes();
    let end = bytes.len() - 32;
    (share.number(), bytes[end - VALUE..end].to_vec())
}

#[test]
fn any_that_are_enough_give_the_key_back() -> Outcome {
    let shares = keys().split(2, 3)?;
    for pair in [[0, 1], [1, 2], [2, 0]].map(|pair| pair.map(|at| &shares[at])) {
        assert!(Keys::combine(&pair)?.same(&keys()));
    }
    assert!(Keys::combine(&shares.iter().collect::<Vec<_>>())?.same(&keys()), "more are no harm");
    for (need, of) in [(2, 2), (3, 5), (255, 255)] {
        let shares = keys().split(need, of)?;
        assert_eq!((shares.len(), shares[0].need(), shares[0].of()), (of.into(), need, of));
        let last: Vec<_> = shares.iter().rev().take(need.into()).collect();
        assert!(Keys::combine(&last)?.same(&keys()), "{need} of {of}");
    }
    Ok(())
}

#[test]
fn they_are_points_of_shamirs_polynomials() -> Outcome {
    let shares = keys().split(3, 5)?;
    let points: Vec<_> = [4, 0, 2].iter().map(|at| point(&shares[*at])).collect();
    for (byte, expected) in MASTER.iter().enumerate() {
        let line: Vec<_> = points.iter().map(|(x, values)| (*x, values[byte])).collect();
        assert_eq!(at_zero(&line), *expected, "byte {byte}");
        assert_eq!(line.len(), 3);
    }
    Ok(())
}

#[test]
fn one_that_is_not_enough_tells_nothing() -> Outcome {
    // Over 4,096 splits a byte of one share takes every value, that of the secret too, about 16 times: a chance of less than
    // 2^-40 that one of 256 is outside of 1 to 64, by Poisson.
    let mut seen = [0_u32; 256];
    for _ in 0..4096 {
        seen[usize::from(point(&keys().split(2, 2)?[0]).1[0])] += 1;
    }
    assert!(seen.iter().all(|count| (1..=64).contains(count)), "{seen:?}");
    Ok(())
}

#[test]
fn a_share_that_does_not_belong_is_named() -> Outcome {
    let (shares, again) = (keys().split(2, 3)?, keys().split(2, 3)?);
    let foreign = Keys::generate()?.split(2, 3)?;
    for (other, key) in
        [(&again[2], keys()), (&foreign[2], Keys::combine(&[&foreign[0], &foreign[1]])?)]
    {
        let error = refused(&[&shares[0], other]);
        assert!(matches!(error, ShareError::OtherSplit { number: 3, first: 1, .. }), "{error}");
        assert!(error.to_string().contains(&key.key_id().to_string()), "{error}");
    }
    assert!(matches!(refused(&[&shares[0], &shares[0]]), ShareError::Twice { number: 1 }));
    assert!(matches!(refused(&[&shares[0]]), ShareError::Few { need: 2, given: 1, .. }));
    assert!(matches!(refused(&[]), ShareError::Few { given: 0, .. }));
    for (need, of) in [(0, 0), (0, 3), (1, 3), (1, 1), (4, 3), (2, 0)] {
        let error = keys().split(need, of);
        assert!(
            matches!(error, Err(ciphervec_owner::Error::Share(ShareError::Numbers { .. }))),
            "{need} of {of}"
        );
    }
    Ok(())
}

#[test]
fn a_share_that_was_changed_is_found_before_anything_is_put_together() -> Outcome {
    let shares = keys().split(2, 3)?;
    let bytes = shares[1].to_bytes();
    let mut changed = 0;
    for at in 0..bytes.len() - 32 {
        let mut bad = bytes.to_vec();
        bad[at] ^= 1;
        assert!(Share::from_bytes(&bad).is_err(), "byte {at}");
        let end = bad.len() - 32;
        let checksum = blake3::hash(&bad[..end]);
        bad[end..].copy_from_slice(checksum.as_bytes());
        let Ok(bad) = Share::from_bytes(&bad) else { continue };
        let error = refused(&[&shares[0], &bad]);
        changed += usize::from(matches!(error, ShareError::Changed { number: 2, .. }));
    }
    assert_eq!(changed, VALUE, "each byte of the value; the rest does not parse");
    for length in 0..bytes.len() {
        assert!(Share::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    Ok(())
}

#[test]
fn a_dealer_who_lies_about_the_key_is_told() -> Outcome {
    // Hashes, split and checksum are right, and the key id is another's: only the key itself shows it.
    let forged: Vec<_> = keys().split(2, 2)?.iter().map(|share| forged(share, [9; 16])).collect();
    let error = refused(&forged.iter().collect::<Vec<_>>());
    assert!(matches!(error, ShareError::OtherKey { .. }), "{error}");
    Ok(())
}

/// The share with another key id, all else made to fit.
fn forged(share: &Share, key_id: [u8; 16]) -> Share {
    let mut bytes = share.to_bytes().to_vec();
    bytes[16..32].copy_from_slice(&key_id);
    let hashes = 48..48 + 32 * usize::from(share.of());
    let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 split of a key");
    hasher.update(&[share.need(), share.of()]).update(&key_id).update(&bytes[hashes]);
    bytes[32..48].copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    let end = bytes.len() - 32;
    let checksum = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(checksum.as_bytes());
    Share::from_bytes(&bytes).unwrap()
}

#[test]
fn nothing_secret_is_printed() -> Outcome {
    let share = keys().split(2, 3)?.remove(0);
    let (_, value) = point(&share);
    let shown = format!("{share:?}");
    assert!(
        shown.contains("redacted") && !shown.contains(&ciphervec_owner::decode::hex(&value[..4])),
        "{shown}"
    );
    Ok(())
}

fn stored(number: u8) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/v1/at-rest");
    folder.join(format!("share-{number}"))
}

#[test]
fn the_stored_shares_give_the_key() -> Outcome {
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !stored(1).exists() {
        for share in keys().split(2, 3)? {
            fs::write(stored(share.number()), &*share.to_bytes())?;
        }
    }
    let shares = [Share::load(&stored(1))?, Share::load(&stored(3))?];
    for share in &shares {
        assert_eq!(*share.to_bytes(), fs::read(stored(share.number()))?);
    }
    assert!(Keys::combine(&[&shares[0], &shares[1]])?.same(&keys()));
    Ok(())
}
