//! Every decoder meets flipped, cut, lengthened, spliced and random bytes; it refuses them or reads them canonically.
//! The fuzz targets run the same functions (`tests/support/decoders.rs`) under libFuzzer.
#![cfg(feature = "client")]

#[path = "support/decoders.rs"]
mod decoders;
#[path = "support/samples.rs"]
mod samples;

use proptest::prelude::*;
use samples::{Checksum, Sample};
use std::error::Error;
use std::sync::LazyLock;

type Outcome = Result<(), Box<dyn Error>>;

static SAMPLES: LazyLock<Vec<Sample>> =
    LazyLock::new(|| samples::all().expect("valid objects can be made"));

#[test]
fn every_sample_is_accepted() {
    for sample in SAMPLES.iter() {
        assert!((sample.decode)(&sample.bytes), "{}", sample.name);
    }
}

/// Flips every bit; under a checksum each flip is refused, and made to fit it is refused or canonical.
#[test]
fn any_flipped_bit_is_refused_or_read_canonically() {
    for sample in SAMPLES.iter() {
        for bit in 0..sample.bytes.len() * 8 {
            let mut bytes = sample.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let accepted = (sample.decode)(&bytes);
            if sample.checksum != Checksum::None {
                assert!(!accepted, "{}: bit {bit}", sample.name);
                sample.checksum.fit(&mut bytes);
                (sample.decode)(&bytes);
            }
        }
    }
}

#[test]
fn every_truncation_and_every_appended_byte_is_refused() {
    for sample in SAMPLES.iter() {
        // A text id has no length of its own: whoever holds it gives the length.
        let open_ended = sample.name == "text id";
        for length in
            (0..sample.bytes.len()).chain([sample.bytes.len() + 1, sample.bytes.len() + 1000])
        {
            let mut bytes = sample.bytes.clone();
            bytes.resize(length, 0);
            for fit in [Checksum::None, sample.checksum] {
                fit.fit(&mut bytes);
                let accepted = (sample.decode)(&bytes);
                assert!(!accepted || open_ended, "{}: {length} bytes", sample.name);
            }
        }
    }
}

/// Puts the largest lengths at every place where one could be declared.
#[test]
fn huge_declared_lengths_are_refused_or_read_canonically() {
    for sample in SAMPLES.iter() {
        for width in [2, 4, 8] {
            for at in 0..sample.bytes.len().saturating_sub(width) {
                for byte in [0xff, 0x7f, 0x01] {
                    let mut bytes = sample.bytes.clone();
                    bytes[at..at + width].fill(byte);
                    sample.checksum.fit(&mut bytes);
                    (sample.decode)(&bytes);
                }
            }
        }
    }
}

/// An object of one kind is no object of another.
#[test]
fn kinds_are_not_taken_for_each_other() {
    for one in SAMPLES.iter() {
        for other in SAMPLES.iter() {
            if one.name.split(' ').next_back() != other.name.split(' ').next_back() {
                assert!(!(one.decode)(&other.bytes), "{} read as {}", other.name, one.name);
            }
        }
    }
}

fn edit(bytes: &mut Vec<u8>, (kind, at, value): (u8, usize, u64)) {
    let at = at % (bytes.len() + 1);
    match kind % 5 {
        0 if at < bytes.len() => bytes[at] = value as u8,
        1 => bytes.insert(at, value as u8),
        2 if at < bytes.len() => drop(bytes.remove(at)),
        3 => {
            let value = value.to_le_bytes();
            bytes.iter_mut().skip(at).zip(value).for_each(|(byte, new)| *byte = new);
        }
        _ => {
            let from = value as usize % (bytes.len() + 1);
            let piece = bytes[at.min(from)..at.max(from)].to_vec();
            bytes.splice(at..at, piece);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn edited_objects_are_refused_or_read_canonically(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<u8>(), any::<usize>(), any::<u64>()), 1..6),
        fit in any::<bool>(),
    ) {
        let sample = which.get(&SAMPLES);
        let mut bytes = sample.bytes.clone();
        edits.into_iter().for_each(|change| edit(&mut bytes, change));
        if fit {
            sample.checksum.fit(&mut bytes);
        }
        (sample.decode)(&bytes);
    }

    #[test]
    fn random_bytes_are_refused_or_read_canonically(
        which in any::<prop::sample::Index>(),
        header in 0usize..32,
        tail in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let sample = which.get(&SAMPLES);
        let mut bytes = sample.bytes[..header.min(sample.bytes.len())].to_vec();
        bytes.extend(tail);
        (sample.decode)(&bytes);
        sample.checksum.fit(&mut bytes);
        (sample.decode)(&bytes);
    }
}

/// Seeds for the fuzz targets: `CIPHERVEC_FUZZ_CORPUS=<folder> cargo test -p ciphervec --test hostile_bytes corpus`.
#[test]
fn corpus_is_written_where_asked() -> Outcome {
    let Ok(folder) = std::env::var("CIPHERVEC_FUZZ_CORPUS") else { return Ok(()) };
    for sample in SAMPLES.iter() {
        let target = sample.name.split(' ').collect::<Vec<_>>().join("_");
        let target = std::path::Path::new(&folder).join(target);
        std::fs::create_dir_all(&target)?;
        std::fs::write(target.join("valid"), &sample.bytes)?;
    }
    Ok(())
}
