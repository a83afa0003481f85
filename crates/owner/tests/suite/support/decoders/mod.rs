//! The decoders of untrusted bytes: each says whether it accepted them. A panic is a finding: what is accepted must be what its
//! own encoder writes, byte for byte. Shared by the tests on stable Rust and by the fuzz targets.

mod ckks;
mod elgamal;
mod factoring;
mod folded;
mod halves;
mod keyed;
mod lookup;
mod pairs;
pub mod program;
mod retrieval;
mod similarity;
mod writers;

pub use ckks::CKKS;
pub use elgamal::ELGAMAL;
pub use factoring::FACTORING;
pub use folded::FOLDED;
pub use halves::{ELGAMAL_INDEX, Halves, OPEN, SEALED, SEALED_INDEX, SEALED_QUERY};
pub use keyed::KEYED;
pub use lookup::{LOOKUP, LOOKUP_TOKENS};
pub use pairs::PAIRS;
pub use program::{PROGRAM, PUBLIC_PROGRAM};
pub use retrieval::RETRIEVAL;
pub use similarity::SIMILARITY;
pub use writers::WRITERS;

use ciphervec_owner::members::{MemberCard, MemberList, Role};
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::protect::id::Id;
use ciphervec_owner::protect::keyfile::{self, KeyfileError, Protection};
use ciphervec_owner::protect::passkey::Question;
use ciphervec_owner::protect::records::{RecordBatch, head_len, record_lens};
use ciphervec_owner::protect::shares::Share;
use ciphervec_owner::protect::sidecar::Sidecar;
use ciphervec_owner::protect::wrapped::WrappedFile;
use ciphervec_owner::sharing::{Recipient, SharedKeys};
use ciphervec_owner::store::Manifest;
use ciphervec_owner::{IndexSpec, Keys};

/// How an object protects itself against chance, so that changed bytes can be made to fit again, as a
/// forger would: none of these checksums has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// Not at all: what stands around it does.
    None,
    /// BLAKE3 of all before, in the last 32 bytes.
    Last32,
    /// BLAKE3 of bytes 0 to 31 and of those from 64 on, in bytes 32 to 63; their number in bytes 24 to 31.
    Frame,
}

impl Checksum {
    /// Makes length and checksum fit the bytes.
    pub fn fit(self, bytes: &mut [u8]) {
        match self {
            Self::Last32 if bytes.len() >= 32 => {
                let end = bytes.len() - 32;
                let checksum = blake3::hash(&bytes[..end]);
                bytes[end..].copy_from_slice(checksum.as_bytes());
            }
            Self::Frame if bytes.len() >= 64 => {
                let length = bytes.len() as u64 - 64;
                bytes[24..32].copy_from_slice(&length.to_le_bytes());
                let mut hasher = blake3::Hasher::new();
                hasher.update(&bytes[..32]).update(&bytes[64..]);
                bytes[32..64].copy_from_slice(hasher.finalize().as_bytes());
            }
            _ => {}
        }
    }
}

/// Decodes bytes as they are, and again with a checksum that fits: a fuzzer does not find one by chance.
pub fn forged(checksum: Checksum, decode: impl Fn(&[u8]) -> bool, bytes: &[u8]) {
    decode(bytes);
    let mut bytes = bytes.to_vec();
    checksum.fit(&mut bytes);
    decode(&bytes);
}

/// Decodes a valid frame after the edits that `bytes` describe, with a checksum that fits: frames of the
/// ring form are tens of kilobytes of numbers, which a fuzzer would spend its life rebuilding.
pub fn edited(valid: &[u8], decode: impl Fn(&[u8]) -> bool, bytes: &[u8]) {
    decode(bytes);
    let mut frame = valid.to_vec();
    for edit in bytes.chunks(11).take(64) {
        let mut fixed = [0; 11];
        fixed[..edit.len()].copy_from_slice(edit);
        let [kind, low, high, value @ ..] = fixed;
        // Most fields stand at the front: half of the edits go there.
        let place = usize::from(low) | usize::from(high) << 8;
        let place = if kind & 8 == 0 { place % 256 } else { place };
        change(&mut frame, kind % 8, place, u64::from_le_bytes(value));
    }
    Checksum::Frame.fit(&mut frame);
    decode(&frame);
}

/// One edit: sets a byte, inserts one, removes one, sets eight, repeats a piece, or cuts the end off.
pub fn change(bytes: &mut Vec<u8>, kind: u8, place: usize, value: u64) {
    let at = place % (bytes.len() + 1);
    match kind % 6 {
        0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = value as u8),
        1 => bytes.insert(at, value as u8),
        2 => drop(bytes.splice(at..(at + 1).min(bytes.len()), [])),
        3 => {
            let new = value.to_le_bytes();
            bytes.iter_mut().skip(at).zip(new).for_each(|(byte, new)| *byte = new);
        }
        4 => {
            let from = (value % (bytes.len() as u64 + 1)) as usize;
            let piece = bytes[at.min(from)..at.max(from)].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => bytes.truncate(bytes.len() - (value % 64).min(bytes.len() as u64) as usize),
    }
}

/// The public description of an index.
pub fn spec(bytes: &[u8]) -> bool {
    IndexSpec::from_bytes(bytes).is_ok_and(|spec| {
        assert_eq!(spec.to_bytes(), bytes);
        true
    })
}

/// A record id.
pub fn id(bytes: &[u8]) -> bool {
    Id::from_bytes(bytes).is_ok_and(|id| {
        assert_eq!(id.to_bytes(), bytes);
        true
    })
}

/// A folder's manifest.
pub fn manifest(bytes: &[u8]) -> bool {
    Manifest::from_bytes(bytes).is_ok_and(|manifest| {
        assert_eq!(manifest.to_bytes().expect("counts that were read can be written"), bytes);
        true
    })
}

/// A sidecar after decryption.
pub fn sidecar(bytes: &[u8]) -> bool {
    Sidecar::from_plain_bytes(bytes).is_ok_and(|sidecar| {
        assert_eq!(*sidecar.to_plain_bytes().expect("what was read is valid"), *bytes);
        true
    })
}

/// A batch of sealed records, and its head alone; what begins like one is read as a head too.
pub fn records(bytes: &[u8]) -> bool {
    let head = head_len(bytes).ok().and_then(|length| bytes.get(..length));
    let lens = head.and_then(|head| record_lens(head).ok());
    RecordBatch::parse(bytes).is_ok_and(|batch| {
        let rows = batch.rows();
        let each = (0..rows).filter_map(|row| batch.ciphertext(row)).map(|one| one.len() as u64);
        assert_eq!(lens, Some(each.collect()));
        // In version 1 rows had tags, which nothing reads.
        let tags = if bytes[8] == 1 { 16 * rows as usize } else { 0 };
        let mut written = bytes[..16 + tags].to_vec();
        let mut end = 0u64;
        written.extend(end.to_le_bytes());
        let ciphertext = |row| batch.ciphertext(row).expect("a ciphertext for each row");
        for row in 0..rows {
            end += ciphertext(row).len() as u64;
            written.extend(end.to_le_bytes());
        }
        (0..rows).for_each(|row| written.extend(ciphertext(row)));
        assert_eq!(written, bytes);
        assert_eq!(batch.ciphertext(rows), None);
        true
    })
}

/// A person's public key.
pub fn recipient(bytes: &[u8]) -> bool {
    Recipient::from_bytes(bytes).is_ok_and(|recipient| {
        assert_eq!(recipient.to_bytes(), bytes);
        true
    })
}

/// A person's public keys, for lists of members.
pub fn member_card(bytes: &[u8]) -> bool {
    MemberCard::from_bytes(bytes).is_ok_and(|card| {
        assert_eq!(card.to_bytes(), bytes);
        true
    })
}

/// The list of a collection's members. What is accepted has an owner, and every change in it was signed by one.
pub fn member_list(bytes: &[u8]) -> bool {
    MemberList::from_bytes(bytes).is_ok_and(|list| {
        assert_eq!(list.to_bytes(), bytes);
        assert!(list.members().iter().any(|one| one.role == Role::Owner));
        assert!(list.head(list.changes().len()).is_some());
        true
    })
}

/// Keys that are shared with several people.
pub fn shared_keys(bytes: &[u8]) -> bool {
    SharedKeys::from_bytes(bytes).is_ok_and(|shared| {
        assert_eq!(shared.to_bytes(), bytes);
        assert!(shared.recipients().count() > 0);
        true
    })
}

/// The filter tags of a segment.
pub fn filter_tags(bytes: &[u8]) -> bool {
    FilterTags::from_bytes(bytes).is_ok_and(|tags| {
        assert_eq!(tags.to_bytes(), bytes);
        assert_eq!(tags.matches(&[]).len(), tags.rows() as usize);
        true
    })
}

/// A key file, as far as it can be read without a passphrase.
pub fn key_file(bytes: &[u8]) -> bool {
    match keyfile::label(bytes) {
        Err(KeyfileError::Wrapped { .. }) => {
            let asked = Question::of(bytes);
            if asked.is_ok_and(|asked| asked.is_some()) {
                assert!(Keys::from_passkey_bytes(bytes, &[0; 32]).is_err());
            }
            return WrappedFile::parse(bytes).is_ok_and(|file| {
                assert_eq!(file.to_bytes(), bytes);
                true
            });
        }
        Err(KeyfileError::Share { .. }) => {
            return Share::from_bytes(bytes).is_ok_and(|share| {
                assert_eq!(*share.to_bytes(), *bytes);
                true
            });
        }
        _ => (),
    }
    keyfile::label(bytes).is_ok_and(|label| {
        if label.encrypted {
            assert!((keyfile::MIN_LOG_N..=keyfile::MAX_LOG_N).contains(&label.log_n));
        } else {
            let written = match keyfile::decode(bytes, None) {
                Ok((master, key_id)) => keyfile::encode(&master, &key_id, Protection::Plaintext),
                Err(_) => {
                    let (secret, key_id) = keyfile::decode_secret(bytes, label.sort, None)
                        .expect("a whole plaintext file");
                    keyfile::encode_secret(&secret, label.sort, &key_id, Protection::Plaintext)
                }
            };
            assert_eq!(*written.expect("plaintext needs nothing"), *bytes);
        }
        true
    })
}
