//! The root key of segments, which the keys of a segment's secrets derive from. It is the owner's own, a writer's, or the one
//! before a rotation. Owner and writer.

use crate::index::spec::IndexSpec;
use crate::keys::Keys;
use crate::protect::aead::AeadKey;
use ciphervec_he_secret::keys::{MasterKey, Purpose};
use ciphervec_he_secret::wire::KeyId;
use std::sync::Arc;

/// A root key with what is derived from it for one index. `Debug` is redacted; wiped on drop.
pub struct SegmentRootKey {
    /// What segments under it say they are sealed with: a writer's segments name their owner's key.
    key: KeyId,
    master: Arc<MasterKey>,
    aead: AeadKey,
}

impl core::fmt::Debug for SegmentRootKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SegmentRootKey({}, redacted)", self.key)
    }
}

impl SegmentRootKey {
    pub(crate) fn new(master: Arc<MasterKey>, key: KeyId, spec: &IndexSpec) -> Self {
        let binding = spec.binding();
        let aead = AeadKey::new(*master.derive(Purpose::Aead, &[&binding]).expose());
        SegmentRootKey { key, master, aead }
    }

    /// The key of sidecars and records.
    pub fn aead(&self) -> &AeadKey {
        &self.aead
    }

    pub(crate) fn key_id(&self) -> KeyId {
        self.key
    }

    pub(crate) fn master(&self) -> &MasterKey {
        &self.master
    }
}

/// What an index that changed its keys needs beside the present ones.
#[derive(Default)]
pub struct RotationState<'a> {
    /// The seed of the public masks where it is not the one that the keys derive: segments of one index share their masks,
    /// and so they outlive the keys that the index began with.
    pub mask_seed: Option<[u8; 32]>,
    /// The keys that some segments are still sealed under.
    pub previous: Option<&'a Keys>,
}
