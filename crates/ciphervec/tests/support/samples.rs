//! Nothing enters, a small valid object of every kind leaves, with the decoder that reads it.

use super::decoders;
use ciphervec::aead::AeadKey;
use ciphervec::filter::FilterTags;
use ciphervec::id::Id;
use ciphervec::keyfile::{self, MIN_LOG_N, Protection};
use ciphervec::records::{Place, RecordBatch};
use ciphervec::sidecar::Sidecar;
use ciphervec::store::{Change, NewSegment, Store};
use std::error::Error;

/// How an object protects itself against chance, so that a test can make changed bytes fit again, as a forger would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// Not at all: the store or an AEAD around it does.
    None,
    /// BLAKE3 of all before in the last 32 bytes.
    Last32,
}

impl Checksum {
    pub fn fit(self, bytes: &mut [u8]) {
        match (self, bytes.len().checked_sub(32)) {
            (Self::Last32, Some(end)) => {
                let checksum = blake3::hash(&bytes[..end]);
                bytes[end..].copy_from_slice(checksum.as_bytes());
            }
            _ => {}
        }
    }
}

/// One kind of object.
pub struct Sample {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub decode: fn(&[u8]) -> bool,
    pub checksum: Checksum,
}

/// One of each kind.
pub fn all() -> Result<Vec<Sample>, Box<dyn Error>> {
    let plain = |name, bytes, decode| Sample { name, bytes, decode, checksum: Checksum::None };
    let sealed = |name, bytes, decode| Sample { name, bytes, decode, checksum: Checksum::Last32 };
    let cheap = Protection::PassphraseWithCost("open sesame", MIN_LOG_N);
    Ok(vec![
        plain("number id", Id::from(-5).to_bytes(), decoders::id as fn(&[u8]) -> bool),
        plain("text id", Id::from("näher").to_bytes(), decoders::id),
        plain("sidecar", sidecar()?, decoders::sidecar),
        plain("records", records()?, decoders::records),
        plain("filter tags", filter_tags()?, decoders::filter_tags),
        sealed("manifest", manifest()?, decoders::manifest),
        sealed(
            "key file",
            keyfile::encode(&[3; 32], &[4; 16], cheap)?.to_vec(),
            decoders::key_file,
        ),
        sealed(
            "plaintext key file",
            keyfile::encode(&[3; 32], &[4; 16], Protection::Plaintext)?.to_vec(),
            decoders::key_file,
        ),
    ])
}

fn ids() -> Vec<Id> {
    vec![Id::from("alpha"), Id::from(7), Id::from("ω")]
}

fn sidecar() -> Result<Vec<u8>, Box<dyn Error>> {
    let sidecar = Sidecar { ids: ids(), norms: vec![1.0, 0.0, 2.5], level: 7, rows: 3 };
    Ok(sidecar.to_plain_bytes()?.to_vec())
}

fn records() -> Result<Vec<u8>, Box<dyn Error>> {
    let rows: Vec<_> = ids().into_iter().zip([b"one".to_vec(), Vec::new(), vec![9; 70]]).collect();
    let place = Place { collection: b"faces", segment: &[1; 16] };
    Ok(RecordBatch::seal(&AeadKey::new([1; 32]), &[2; 32], place, &rows)?)
}

fn filter_tags() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut tags = FilterTags::new();
    tags.push(&[[1; 16], [2; 16]])?;
    tags.push(&[])?;
    tags.push(&[[2; 16]])?;
    Ok(tags.to_bytes())
}

fn manifest() -> Result<Vec<u8>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    let mut store = Store::create(&path, b"spec")?;
    let segment = |id| {
        let blobs = vec![("segment".to_owned(), vec![id; 9]), ("sidecar".to_owned(), vec![id])];
        NewSegment { id: [id; 16], rows: 40, blobs }
    };
    store.commit(Change {
        add: vec![segment(1), segment(2)],
        delete_rows: vec![([1; 16], vec![3]), ([2; 16], (4..30).collect())],
        attachments: vec![("evaluation-keys".to_owned(), vec![5; 5])],
        ..Change::default()
    })?;
    Ok(std::fs::read(path.join("manifest-00000000000000000002"))?)
}
