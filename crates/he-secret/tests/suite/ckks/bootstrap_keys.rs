//! Bootstrapping keys to and from files and connections: the same bytes as in memory, and nothing
//! that is cut, damaged or someone else's.

use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{BootstrapSpec, Bootstrapper, BootstrappingKeys, SecretKey};
use ciphervec_he_secret::params::Security;
use ciphervec_he_secret::wire::{HEADER_LEN, Header, Kind, Scheme};
use std::io::{self, Read, Write};
use std::sync::LazyLock;

struct Sample {
    bootstrapper: Bootstrapper,
    secret: SecretKey,
    keys: BootstrappingKeys,
    bytes: Vec<u8>,
}

/// Small enough to be read again at every place where it can be cut.
static SAMPLE: LazyLock<Sample> = LazyLock::new(|| {
    let bootstrapper = Bootstrapper::insecure_new(spec()).unwrap();
    let secret = SecretKey::generate(bootstrapper.params()).unwrap();
    let keys = secret.bootstrapping_keys(&bootstrapper).unwrap();
    let bytes = keys.to_bytes();
    Sample { bootstrapper, secret, keys, bytes }
});

fn spec() -> BootstrapSpec {
    BootstrapSpec {
        log_degree: 10,
        log_slots: 9,
        levels: 1,
        slots_to_coefficients: 1,
        coefficients_to_slots: 2,
        doublings: 2,
        digits: 2,
        special_primes: 7,
        security: Security::Classical128,
        ..BootstrapSpec::degree_32768()
    }
}

/// A connection that brings a few bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(4099);
        (&mut self.0).read(&mut buffer[..count])
    }
}

/// A disk with room for so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where the frames of the sets begin.
fn sets() -> Vec<usize> {
    let magic =
        [b"CVEC".as_slice(), &[1, 0, Scheme::Ckks as u8, Kind::EvaluationKeys as u8]].concat();
    let at = |at: &usize| SAMPLE.bytes[*at..].starts_with(&magic);
    (0..SAMPLE.bytes.len()).filter(at).collect()
}

fn read(bytes: &[u8]) -> ciphervec_he_secret::Result<BootstrappingKeys> {
    BootstrappingKeys::read_from(SAMPLE.bootstrapper.params(), &mut Trickle(bytes))
}

#[test]
fn a_stream_holds_the_same_bytes() {
    let mut streamed = Vec::new();
    SAMPLE.keys.write_to(&mut streamed).unwrap();
    assert_eq!(streamed, SAMPLE.bytes);
    assert_eq!(sets().len(), 3);
    assert_eq!(SAMPLE.bytes.len(), SAMPLE.keys.bytes());
    assert_eq!(SAMPLE.bytes.len(), SAMPLE.bootstrapper.plan().unwrap().key_bytes);
    assert_eq!(read(&streamed).unwrap().to_bytes(), SAMPLE.bytes);
    // What follows the frame is left to whoever reads on.
    streamed.extend(b"next");
    let mut rest = streamed.as_slice();
    BootstrappingKeys::read_from(SAMPLE.bootstrapper.params(), &mut rest).unwrap();
    assert_eq!(rest, b"next");
    assert!(BootstrappingKeys::from_bytes(SAMPLE.bootstrapper.params(), &streamed).is_err());
}

#[test]
fn keys_that_are_cut_say_how_many_bytes_came() {
    let length = SAMPLE.bytes.len();
    // Within the header, at the ends of the fields around every set, and between.
    let set = |at: usize| [at - 8, at - 1, at, at + 1, at + HEADER_LEN, at + HEADER_LEN + 8];
    let cuts = (0..=HEADER_LEN).chain((HEADER_LEN..length).step_by(length / 23));
    for cut in cuts.chain(sets().into_iter().flat_map(set)).chain([length - 1]) {
        let error = read(&SAMPLE.bytes[..cut]).unwrap_err();
        let Error::Malformed { detail, .. } = &error else { panic!("{cut}: {error}") };
        let (expected, came) = match cut {
            0..HEADER_LEN => (HEADER_LEN, cut),
            _ => (length - HEADER_LEN, cut - HEADER_LEN),
        };
        assert!(detail.contains(&expected.to_string()), "{cut}: {detail}");
        assert!(detail.ends_with(&format!("{came} came")), "{cut}: {detail}");
        assert!(BootstrappingKeys::from_bytes(SAMPLE.keys.params(), &SAMPLE.bytes[..cut]).is_err());
    }
}

#[test]
fn a_changed_bit_anywhere_is_found() {
    for place in (0..SAMPLE.bytes.len()).step_by(SAMPLE.bytes.len() / 23).chain(0..HEADER_LEN) {
        let mut damaged = SAMPLE.bytes.clone();
        damaged[place] ^= 4;
        assert!(read(&damaged).is_err(), "byte {place}");
    }
    let mut damaged = SAMPLE.bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let what = Kind::BootstrappingKeys.as_str();
    let error = BootstrappingKeys::from_bytes(SAMPLE.keys.params(), &damaged).unwrap_err();
    assert_eq!(error, Error::Checksum { what });
    // The sets have checksums of their own: one that is wrong counts where the whole is right.
    let header = Header {
        scheme: Scheme::Ckks,
        kind: Kind::BootstrappingKeys,
        params: SAMPLE.keys.params().param_id(),
        key: SAMPLE.keys.key_id(),
    };
    header.seal(&mut damaged);
    let what = Kind::EvaluationKeys.as_str();
    assert_eq!(read(&damaged).unwrap_err(), Error::Checksum { what });
}

#[test]
fn a_frame_that_promises_too_much_takes_no_memory_for_it() {
    let mut long = SAMPLE.bytes.clone();
    long[24..32].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let error = read(&long).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
    // Of the first set, whose frame begins after the keys to and from the sparse secret: more keys
    // than there are bytes for.
    let set = sets()[0];
    long[set + 24..][..8].copy_from_slice(&(1u64 << 50).to_le_bytes());
    long[set + HEADER_LEN + 4..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read(&long).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}

#[test]
fn keys_of_other_sets_and_full_disks_are_told_apart() {
    let other = BootstrapSpec { levels: 2, ..spec() };
    let other = Bootstrapper::insecure_new(other).unwrap();
    let mut bytes = SAMPLE.bytes.as_slice();
    let error = BootstrappingKeys::read_from(other.params(), &mut bytes).unwrap_err();
    assert!(matches!(error, Error::Parameters { .. }), "{error}");
    assert_eq!(bytes.len(), SAMPLE.bytes.len() - HEADER_LEN, "no more than the header was read");
    let stranger = SecretKey::generate(SAMPLE.keys.params()).unwrap();
    let theirs = stranger.bootstrapping_keys(&SAMPLE.bootstrapper).unwrap().to_bytes();
    let half = theirs.len() / 2;
    let mixed = [&SAMPLE.bytes[..half], &theirs[half..]].concat();
    assert!(read(&mixed).is_err());
    assert_ne!(SAMPLE.secret.key_id(), stranger.key_id());
    let error = SAMPLE.keys.write_to(&mut Full(SAMPLE.bytes.len() - 1)).unwrap_err();
    assert!(matches!(error, Error::Stream { .. }), "{error}");
    assert!(error.to_string().contains("writing bootstrapping keys failed"), "{error}");
}
