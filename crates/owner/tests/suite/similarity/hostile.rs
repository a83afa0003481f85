//! Bytes from outside: flipped, cut, lengthened, spliced. They are refused, or read canonically.

use super::plain::{Plain, PlainTable};
use super::rows::*;
use ciphervec_he_secret::wire::{HEADER_LEN, VERSION};
use ciphervec_owner::Metric;
use ciphervec_owner::similarity::additive::{
    EncryptedScores, EncryptedVectors, GridPrecision, Layout, OwnerScores, Probes, Vectors,
};

const BITS: u32 = 200;

/// Makes the outer checksum and length fit, as an attacker would.
pub fn fit(bytes: &mut [u8]) {
    if bytes.len() < HEADER_LEN {
        return;
    }
    let length = (bytes.len() - HEADER_LEN) as u64;
    bytes[24..32].copy_from_slice(&length.to_le_bytes());
    let (head, payload) = bytes.split_at_mut(HEADER_LEN);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&head[..32]).update(payload);
    head[32..].copy_from_slice(hasher.finalize().as_bytes());
}

struct Sample {
    name: String,
    bytes: Vec<u8>,
    /// Whether the bytes are accepted; if so, writing them again must give the same.
    read: fn(&Plain, &[u8]) -> bool,
}

fn samples(scheme: &Plain) -> Vec<Sample> {
    let mut samples = Vec::new();
    for layout in LAYOUTS {
        for count in [1, 3, 9] {
            let spec = spec(3, Metric::Cosine, GridPrecision::Small, layout);
            let vectors = Vectors::quantize(&spec, &rows(Metric::Cosine, 3, count, 1)).unwrap();
            let gallery = EncryptedVectors::encrypt(&spec, scheme, &vectors).unwrap();
            let probes = Probes::quantize(&spec, &rows(Metric::Cosine, 3, 2, 2)).unwrap();
            let scores = gallery.score(scheme, &probes).unwrap();
            samples.push(Sample {
                name: format!("{count} vectors, {layout:?}"),
                bytes: gallery.to_bytes(scheme).unwrap(),
                read: |scheme, bytes| {
                    EncryptedVectors::<PlainTable>::from_bytes(scheme, bytes)
                        .map(|read| assert_eq!(read.to_bytes(scheme).unwrap(), bytes))
                        .is_ok()
                },
            });
            samples.push(Sample {
                name: format!("scores of {count} vectors, {layout:?}"),
                bytes: scores.to_bytes(scheme).unwrap(),
                read: |scheme, bytes| {
                    EncryptedScores::<PlainTable>::from_bytes(scheme, bytes)
                        .map(|read| {
                            assert_eq!(read.to_bytes(scheme).unwrap(), bytes);
                            // Whatever they hold, opening them is an answer or an error.
                            let _ = read.open(scheme);
                        })
                        .is_ok()
                },
            });
        }
    }
    for precision in PRECISIONS {
        let spec = spec(3, Metric::Cosine, precision, Layout::Elements);
        let probes = Probes::quantize(&spec, &rows(Metric::Cosine, 3, 2, 2)).unwrap();
        samples.push(Sample {
            name: format!("probes, {precision:?}"),
            bytes: probes.to_bytes(),
            read: |_, bytes| {
                Probes::from_bytes(bytes).map(|read| assert_eq!(read.to_bytes(), bytes)).is_ok()
            },
        });
    }
    samples
}

#[test]
fn every_flipped_bit_is_refused_and_forged_ones_are_read_canonically() {
    let scheme = Plain::new(BITS);
    for sample in samples(&scheme) {
        assert!((sample.read)(&scheme, &sample.bytes), "{}", sample.name);
        for bit in 0..sample.bytes.len() * 8 {
            let mut bytes = sample.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!(sample.read)(&scheme, &bytes), "{}: bit {bit}", sample.name);
            fit(&mut bytes);
            (sample.read)(&scheme, &bytes);
        }
    }
}

#[test]
fn cut_and_lengthened_bytes_are_refused_even_when_forged() {
    let scheme = Plain::new(BITS);
    for sample in samples(&scheme) {
        for length in (0..sample.bytes.len()).chain([sample.bytes.len() + 1]) {
            let mut bytes = sample.bytes.clone();
            bytes.resize(length, 0);
            assert!(!(sample.read)(&scheme, &bytes), "{}: {length}", sample.name);
            fit(&mut bytes);
            assert!(!(sample.read)(&scheme, &bytes), "{}: {length}, forged", sample.name);
        }
    }
}

#[test]
fn objects_of_other_kinds_and_keys_are_refused() {
    let scheme = Plain::new(BITS);
    let all = samples(&scheme);
    for sample in &all {
        for other in &all {
            let same = sample.bytes[7] == other.bytes[7];
            assert!(
                same || !(sample.read)(&scheme, &other.bytes),
                "{} as {}",
                other.name,
                sample.name
            );
        }
    }
    let other = Plain::with_key(BITS, *b"otherkey");
    let longer = Plain::new(400);
    for sample in all.iter().filter(|sample| !sample.name.starts_with("probes")) {
        assert!(!(sample.read)(&other, &sample.bytes), "{}", sample.name);
        assert!(!(sample.read)(&longer, &sample.bytes), "{}", sample.name);
        // The outer frame claims the other key, the inner one does not.
        let mut bytes = sample.bytes.clone();
        bytes[16..24].copy_from_slice(b"otherkey");
        fit(&mut bytes);
        assert!(!(sample.read)(&other, &bytes), "{}", sample.name);
    }
}

/// Counts that promise more than the bytes hold, or nothing at all.
#[test]
fn forged_counts_are_refused_before_anything_is_allocated() {
    let scheme = Plain::new(BITS);
    for sample in samples(&scheme) {
        // The description takes 7 bytes; one or two counts follow.
        for at in [HEADER_LEN, HEADER_LEN + 7, HEADER_LEN + 11] {
            for count in [0u32, 2, 1000, 4097, 1 << 24, u32::MAX] {
                let mut bytes = sample.bytes.clone();
                if bytes[at..at + 4] == count.to_le_bytes() {
                    continue;
                }
                bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
                fit(&mut bytes);
                let accepted = (sample.read)(&scheme, &bytes);
                // Scores do not show how many dimensions were compared: another number is another description.
                let free = at == HEADER_LEN && sample.name.starts_with("scores");
                assert!(free || !accepted, "{}: {count} at {at}", sample.name);
            }
        }
    }
}

#[test]
fn a_future_version_says_so() {
    let scheme = Plain::new(BITS);
    for sample in samples(&scheme) {
        let mut bytes = sample.bytes.clone();
        bytes[4..6].copy_from_slice(&(VERSION + 1).to_le_bytes());
        assert!(!(sample.read)(&scheme, &bytes), "{}", sample.name);
    }
}
