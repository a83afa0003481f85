//! Every decoder meets flipped, cut, lengthened, spliced and random bytes; it refuses them or reads them canonically.
//! The fuzz targets run the same functions (`tests/suite/support/decoders/`) under libFuzzer.

use crate::support::decoders::{self, Checksum};
use crate::support::samples::{self, Sample};
use proptest::prelude::*;
use std::error::Error;
use std::sync::LazyLock;

type Outcome = Result<(), Box<dyn Error>>;

static SAMPLES: LazyLock<Vec<Sample>> =
    LazyLock::new(|| samples::small().expect("valid objects can be made"));
static FRAMES: LazyLock<Vec<Sample>> = LazyLock::new(samples::frames);

#[test]
fn every_sample_is_accepted() {
    for sample in SAMPLES.iter().chain(FRAMES.iter()) {
        assert!((sample.decode)(&sample.bytes), "{}", sample.name);
    }
}

/// Frames of the ring form are long and slow to read: every bit of their heads, and a spread of the rest.
#[test]
fn any_flipped_bit_of_a_frame_is_refused_and_forged_ones_never_panic() {
    for sample in FRAMES.iter() {
        let bits = sample.bytes.len() * 8;
        for bit in (0..bits).filter(|bit| *bit < 1500 || bit % 1009 == 0 || bits - bit < 300) {
            let mut bytes = sample.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!(sample.decode)(&bytes), "{}: bit {bit}", sample.name);
            sample.checksum.fit(&mut bytes);
            (sample.decode)(&bytes);
        }
    }
}

#[test]
fn cut_and_lengthened_frames_are_refused_even_when_forged() {
    for sample in FRAMES.iter() {
        let whole = sample.bytes.len();
        let near =
            |length: &usize| *length < 200 || length.is_multiple_of(509) || whole - length < 70;
        for length in (0..whole).filter(near).chain([whole + 1, whole + 8, whole + 1000]) {
            let mut bytes = sample.bytes.clone();
            bytes.resize(length, 0);
            assert!(!(sample.decode)(&bytes), "{}: {length} bytes", sample.name);
            sample.checksum.fit(&mut bytes);
            assert!(!(sample.decode)(&bytes), "{}: {length} bytes, forged", sample.name);
        }
    }
}

/// The same of keys, at fewer places.
#[test]
fn changed_and_cut_large_keys_are_refused_or_read_canonically() {
    for sample in samples::large() {
        assert!((sample.decode)(&sample.bytes));
        let whole = sample.bytes.len();
        let spread = (0..whole).step_by(whole / 29);
        for place in spread.chain([24, 63, 64, whole - 1]) {
            let mut changed = sample.bytes.clone();
            changed[place] ^= 1 << (place % 8);
            let mut cut = sample.bytes[..place].to_vec();
            assert!(!(sample.decode)(&changed) && !(sample.decode)(&cut), "byte {place}");
            sample.checksum.fit(&mut changed);
            (sample.decode)(&changed);
            sample.checksum.fit(&mut cut);
            assert!(!(sample.decode)(&cut), "{place} bytes, forged");
        }
        for (seed, edits) in (0..40u64).map(|seed| (seed, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        {
            let edits: Vec<u8> = (0..22).map(|k| (edits.rotate_left(k * 7) ^ seed) as u8).collect();
            decoders::edited(&sample.bytes, sample.decode, &edits);
        }
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
        for length in
            (0..sample.bytes.len()).chain([sample.bytes.len() + 1, sample.bytes.len() + 1000])
        {
            let mut bytes = sample.bytes.clone();
            bytes.resize(length, 0);
            for fit in [Checksum::None, sample.checksum] {
                fit.fit(&mut bytes);
                let accepted = (sample.decode)(&bytes);
                // Text to the end of what holds it: its holder gives its length.
                let open_ended =
                    sample.name == "text id" || sample.target == "spec" && fit == Checksum::Frame;
                assert!(!accepted || open_ended, "{}: {length} bytes", sample.name);
            }
        }
    }
}

/// Puts the largest lengths at every place where one could be declared.
#[test]
fn huge_declared_lengths_are_refused_or_read_canonically() {
    for sample in SAMPLES.iter().chain(FRAMES.iter()) {
        // All fields of a frame but the numbers themselves stand in its first bytes.
        let end =
            sample.bytes.len().min(if sample.checksum == Checksum::Frame { 180 } else { 2000 });
        for width in [2, 4, 8] {
            for at in 0..end.saturating_sub(width) {
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
        edits.into_iter().for_each(|(kind, at, value)| decoders::change(&mut bytes, kind, at, value));
        if fit {
            sample.checksum.fit(&mut bytes);
        }
        (sample.decode)(&bytes);
    }

    #[test]
    fn edited_frames_never_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let sample = which.get(&FRAMES);
        decoders::edited(&sample.bytes, sample.decode, &edits);
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
        decoders::forged(sample.checksum, sample.decode, &bytes);
    }
}

/// Seeds for the fuzz targets of small objects (frames are edited from valid ones inside the target):
/// `CIPHERVEC_FUZZ_CORPUS=<folder> cargo test -p ciphervec --test suite corpus`.
#[test]
fn corpus_is_written_where_asked() -> Outcome {
    let Ok(folder) = std::env::var("CIPHERVEC_FUZZ_CORPUS") else { return Ok(()) };
    for sample in SAMPLES.iter() {
        let target = std::path::Path::new(&folder).join(sample.target);
        std::fs::create_dir_all(&target)?;
        std::fs::write(target.join(sample.name.replace(' ', "-")), &sample.bytes)?;
    }
    Ok(())
}
