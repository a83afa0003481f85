//! The key of one segment, wrapped to the owner's public key: a writer wraps it, and the owner alone opens it. Owner and
//! writer.
//!
//! The HPKE `info` is `ciphervec v1 segment-key` and, each after its length, the frame's version, its scheme and parameters,
//! the owner's key id, the index's binding, the segment's id and the writer's name: a wrap opens for one segment only.
//!
//! Lengths are u64. A segment of a writer is sealed under the 32 bytes of its wrap in place of the master key; its frame names
//! the owner's key id.

use super::root_key::SegmentRootKey;
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::protect::aead;
use crate::protect::hybrid::{self, Pair, SealedKey};
pub use ciphervec::search::wrap::*;
use ciphervec_he_secret::keys::{MasterKey, Purpose, Secret};
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::{self, KeyId, Kind, Reader};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// A pair that segments' keys are wrapped to: one for each index, owner's key and writer's name.
pub(super) struct WriterPair(Pair);

impl WriterPair {
    pub fn derive(master: &MasterKey, spec: &IndexSpec, writer: &str) -> Self {
        let seed: Secret =
            master.derive(Purpose::WriterPair, &[&spec.binding(), writer.as_bytes()]);
        WriterPair(Pair::derive(seed.expose()))
    }

    pub fn public_bytes(&self) -> Vec<u8> {
        self.0.public_bytes()
    }

    /// The key in `wrap`, and when it was sealed: zero where the wrap does not say.
    ///
    /// # Errors
    /// [`crate::protect::aead::EnvelopeError::Unauthentic`] for one that is addressed to another pair or place.
    pub fn open(
        &self,
        spec: &IndexSpec,
        wrap: &WrappedKey<'_>,
    ) -> Result<(Zeroizing<[u8; 32]>, u64)> {
        let info = info(spec, wrap.owner, wrap.segment, wrap.writer);
        let unauthentic = || {
            Error::Envelope(aead::EnvelopeError::Unauthentic { what: Kind::SegmentKey.as_str() })
        };
        if wrap.suite == SUITE {
            let key = self.0.open(&info, wrap.encapsulated, wrap.sealed).ok_or_else(unauthentic)?;
            return Ok((key, 0));
        }
        let opened: Zeroizing<[u8; 32 + TIME]> =
            self.0.open(&info, wrap.encapsulated, wrap.sealed).ok_or_else(unauthentic)?;
        let (key, time) = opened.split_first_chunk().ok_or_else(unauthentic)?;
        let time = time.first_chunk().ok_or_else(unauthentic)?;
        Ok((Zeroizing::new(*key), u64::from_le_bytes(*time)))
    }
}

/// Pairs that an owner has derived already: deriving one takes as long as opening a wrap.
#[derive(Default)]
pub(super) struct WriterPairs(Mutex<HashMap<(KeyId, String), Arc<WriterPair>>>);

/// Names of writers whose pairs are kept: wraps of a server's may name any number.
const KEPT_PAIRS: usize = 256;

impl WriterPairs {
    /// The pair of a writer under this root key.
    pub fn pair(&self, root: &SegmentRootKey, spec: &IndexSpec, writer: &str) -> Arc<WriterPair> {
        let place = (root.key_id(), writer.to_owned());
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = lock().get(&place) {
            return Arc::clone(pair);
        }
        let pair = Arc::new(WriterPair::derive(root.master(), spec, writer));
        let mut kept = lock();
        if kept.len() >= KEPT_PAIRS {
            kept.clear();
        }
        kept.insert(place, Arc::clone(&pair));
        pair
    }
}

/// Refuses a suite of a later release; whether it is the one with `more` added.
pub(super) fn expect_suite(reader: &mut Reader<'_>, more: u16) -> Result<bool> {
    let suite = u16::from_le_bytes(reader.array()?);
    let known = suite == SUITE || suite == SUITE + more;
    if known { Ok(suite != SUITE) } else { Err(unknown_suite(reader, SUITE + more, suite)) }
}

/// Checks that `public` is a key of the suite.
pub(super) fn check_public(public: &[u8]) -> Result<()> {
    if hybrid::is_public(public) { Ok(()) } else { Err(unusable()) }
}

/// Wraps the `key` of a segment, and the time of its sealing, to the pair of `public`.
///
/// # Errors
/// A public key that is none; no randomness.
pub(super) fn wrap(
    spec: &IndexSpec,
    public: &[u8],
    owner: KeyId,
    writer: &str,
    segment: SegmentId,
    key: &[u8; 32],
    time: u64,
) -> Result<Vec<u8>> {
    let info = info(spec, owner, segment, writer);
    let mut timed = Zeroizing::new([0; 32 + TIME]);
    let (head, tail) = timed.split_at_mut(32);
    head.copy_from_slice(key);
    tail.copy_from_slice(&time.to_le_bytes());
    let SealedKey { encapsulated, sealed } =
        hybrid::seal(public, &info, timed.as_slice())?.ok_or_else(unusable)?;
    let (encapsulated, sealed) = (encapsulated.as_slice(), sealed.as_slice());
    let wrapped = WrappedKey { segment, owner, writer, suite: TIMED, encapsulated, sealed };
    Ok(wrapped.to_bytes(spec))
}

fn info(spec: &IndexSpec, owner: KeyId, segment: SegmentId, writer: &str) -> Vec<u8> {
    let scheme = [spec.wire_scheme() as u8];
    let parts: [&[u8]; 7] = [
        &wire::VERSION.to_le_bytes(),
        &scheme,
        &spec.param_id().0,
        &owner.0,
        &spec.binding(),
        &segment.0,
        writer.as_bytes(),
    ];
    aead::associated_data("ciphervec v1 segment-key", &parts)
}

fn unusable() -> Error {
    let detail = "its public key is none of the suite; ask the owner for the card again";
    let what = Kind::WriterCard.as_str();
    Error::Scheme(ciphervec_he_secret::Error::Malformed { what, detail: detail.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, Mode, Precision};

    #[test]
    fn a_wrap_opens_for_its_segment_its_index_its_owner_and_its_writer_only() -> Result<()> {
        let spec =
            |name| IndexSpec::new(name, 8, Metric::Cosine, Mode::Sealed, Precision::Standard);
        let (here, there) = (spec("here")?, spec("there")?);
        let master = MasterKey::from_bytes([3; 32]);
        let pair = WriterPair::derive(&master, &here, "door");
        let (segment, owner) = (SegmentId([5; 16]), master.key_id());
        let key = [9; 32];
        let bytes = wrap(&here, &pair.public_bytes(), owner, "door", segment, &key, 9)?;
        let read = WrappedKey::read(&here, &bytes)?;
        assert_eq!((read.segment, read.owner, read.writer), (segment, owner, "door"));
        let (opened, time) = pair.open(&here, &read)?;
        assert_eq!((*opened, time), (key, 9));
        assert_eq!(read.to_bytes(&here), bytes);
        assert!(WrappedKey::read(&there, &bytes).is_err());
        let moved = [
            WrappedKey { segment: SegmentId([6; 16]), ..read.clone() },
            WrappedKey { owner: KeyId([1; 8]), ..read.clone() },
            WrappedKey { writer: "gate", ..read.clone() },
        ];
        assert!(moved.iter().all(|wrap| pair.open(&here, wrap).is_err()));
        for (of, name) in [(&there, "door"), (&here, "gate")] {
            assert!(WriterPair::derive(&master, of, name).open(&here, &read).is_err());
        }
        let stranger = WriterPair::derive(&MasterKey::from_bytes([4; 32]), &here, "door");
        assert!(stranger.open(&here, &read).is_err());
        let again = wrap(&here, &pair.public_bytes(), owner, "door", segment, &key, 9)?;
        assert_ne!(again, bytes);
        Ok(())
    }
}
