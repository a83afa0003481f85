//! Untrusted bytes enter each decoder; whether they were accepted leaves. A panic is a finding: what is accepted must
//! be what its own encoder writes, byte for byte. Shared by the tests on stable Rust and by the fuzz targets.

use ciphervec::filter::FilterTags;
use ciphervec::id::Id;
use ciphervec::keyfile::{self, Protection};
use ciphervec::records::RecordBatch;
use ciphervec::sidecar::Sidecar;
use ciphervec::store::Manifest;

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

/// A batch of sealed records.
pub fn records(bytes: &[u8]) -> bool {
    RecordBatch::parse(bytes).is_ok_and(|batch| {
        let rows = batch.rows();
        let mut written = bytes[..16].to_vec();
        (0..rows).for_each(|row| written.extend(batch.tag(row).expect("a tag for each row")));
        let mut end = 0u64;
        written.extend(end.to_le_bytes());
        let ciphertext = |row| batch.ciphertext(row).expect("a ciphertext for each row");
        for row in 0..rows {
            end += ciphertext(row).len() as u64;
            written.extend(end.to_le_bytes());
        }
        (0..rows).for_each(|row| written.extend(ciphertext(row)));
        assert_eq!(written, bytes);
        assert_eq!((batch.tag(rows), batch.ciphertext(rows)), (None, None));
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
    keyfile::label(bytes).is_ok_and(|label| {
        if label.encrypted {
            assert!((keyfile::MIN_LOG_N..=keyfile::MAX_LOG_N).contains(&label.log_n));
        } else {
            let (master, key_id) = keyfile::decode(bytes, None).expect("a whole plaintext file");
            let written = keyfile::encode(&master, &key_id, Protection::Plaintext);
            assert_eq!(*written.expect("plaintext needs nothing"), *bytes);
        }
        true
    })
}
