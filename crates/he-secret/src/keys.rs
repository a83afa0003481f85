//! Master key: 32 secret bytes, and one derived secret for every purpose and context. Owner only.

use crate::error::Result;
use crate::wire::KeyId;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

pub use crate::random::random_bytes;

/// What a derived secret is for: one BLAKE3 context string each, so that no two uses ever share a
/// key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Purpose {
    /// The ternary secret of one segment.
    SegmentSecret,
    /// The query key of one epoch.
    QueryKey,
    /// The public masks of the evaluation keys of one epoch.
    EvaluationMask,
    /// The noise of the evaluation keys of one epoch.
    EvaluationNoise,
    /// The key of the keyed hash that draws nonces.
    Nonce,
    /// The public mask seed of one collection.
    MaskSeed,
    /// Authenticated encryption of sidecars and records.
    Aead,
    /// Keyed hashes of filterable fields.
    Filter,
    /// The public name of the master key.
    KeyId,
    /// The pair that writers wrap their segments' keys to.
    WriterPair,
    /// What an owner knows its own writers' cards by.
    WriterCard,
    /// What those who open shared keys know the list of recipients by.
    SharedKeys,
    /// The secret weights that answers about one segment are checked with.
    AnswerCheck,
    /// What an owner authenticates the states of a collection with.
    State,
    /// The master key of a tenant.
    Tenant,
    /// The master key of one collection.
    Collection,
}

impl Purpose {
    fn context(self) -> &'static str {
        match self {
            Purpose::SegmentSecret => "ciphervec v1 segment-secret",
            Purpose::QueryKey => "ciphervec v1 query-key",
            Purpose::EvaluationMask => "ciphervec v1 evaluation-mask",
            Purpose::EvaluationNoise => "ciphervec v1 evaluation-noise",
            Purpose::Nonce => "ciphervec v1 nonce",
            Purpose::MaskSeed => "ciphervec v1 mask-seed",
            Purpose::Aead => "ciphervec v1 aead",
            Purpose::Filter => "ciphervec v1 filter",
            Purpose::KeyId => "ciphervec v1 key-id",
            Purpose::WriterPair => "ciphervec v1 writer-pair",
            Purpose::WriterCard => "ciphervec v1 writer-card",
            Purpose::SharedKeys => "ciphervec v1 shared-keys",
            Purpose::AnswerCheck => "ciphervec v1 answer-check",
            Purpose::State => "ciphervec v1 state",
            Purpose::Tenant => "ciphervec v1 tenant",
            Purpose::Collection => "ciphervec v1 collection",
        }
    }
}

/// 32 secret bytes, wiped on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The bytes, for the one primitive they were derived for.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// The owner's root key. Everything else is derived from it.
pub struct MasterKey(Secret);

impl core::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "MasterKey({}, redacted)", self.key_id())
    }
}

impl MasterKey {
    /// A fresh key from the operating system's generator.
    ///
    /// # Errors
    /// [`crate::Error::Randomness`] if the generator fails.
    pub fn generate() -> Result<Self> {
        Ok(MasterKey(Secret(random_bytes()?)))
    }

    /// A key from its 32 bytes, as a key file holds them.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        MasterKey(Secret(bytes))
    }

    /// The 32 bytes, for writing a key file.
    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }

    /// Sixteen public bytes that name this key; [`KeyId`] is their first half.
    pub fn fingerprint(&self) -> [u8; 16] {
        let digest = self.derive(Purpose::KeyId, &[]);
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&digest.0[..16]);
        fingerprint
    }

    /// The public name of this key.
    pub fn key_id(&self) -> KeyId {
        KeyId::of_hash(self.derive(Purpose::KeyId, &[]).expose())
    }

    /// The master key of what is named so: whoever holds it learns nothing of this one, or of any other that is derived
    /// of it.
    pub fn subkey(&self, purpose: Purpose, name: &str) -> Self {
        MasterKey(self.derive(purpose, &[name.as_bytes()]))
    }

    /// Whether it is the same key, in a time that says nothing about either.
    pub fn same(&self, other: &Self) -> bool {
        self.0.expose().ct_eq(other.0.expose()).into()
    }

    /// BLAKE3 `derive_key` with the purpose's context over master ‖ parts, every part prefixed by
    /// its length.
    pub fn derive(&self, purpose: Purpose, parts: &[&[u8]]) -> Secret {
        let mut hasher = blake3::Hasher::new_derive_key(purpose.context());
        hasher.update(self.0.expose());
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let secret = Secret(*hasher.finalize().as_bytes());
        hasher.zeroize();
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_parts_separate() {
        let master = MasterKey::from_bytes([1; 32]);
        let one = master.derive(Purpose::Aead, &[b"ab", b"c"]);
        assert_eq!(one.expose(), master.derive(Purpose::Aead, &[b"ab", b"c"]).expose());
        assert_ne!(one.expose(), master.derive(Purpose::Aead, &[b"a", b"bc"]).expose());
        assert_ne!(one.expose(), master.derive(Purpose::Filter, &[b"ab", b"c"]).expose());
        assert_ne!(master.key_id(), MasterKey::from_bytes([2; 32]).key_id());
        assert!(master.same(&MasterKey::from_bytes([1; 32])));
        let mut near = [1; 32];
        near[31] ^= 128;
        assert!(!master.same(&MasterKey::from_bytes(near)));
    }

    /// BLAKE3's `derive_key` of the `blake3` package for Python over 32 ones, the name's length and the name.
    #[test]
    fn subkeys_are_those_of_the_formula() {
        let of = |purpose, name| *MasterKey::from_bytes([1; 32]).subkey(purpose, name).expose();
        let shown = |bytes: [u8; 32]| bytes.map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(
            shown(of(Purpose::Tenant, "acme")),
            "5da07a86be8c4452fceb96e6fc76be636eb2dbd421016641e3310fd07fa43d37"
        );
        assert_eq!(
            shown(of(Purpose::Collection, "acme")),
            "04df785fbebc1026d3f440e7cade03364230054620cb42639411af0d5bdd8194"
        );
    }

    #[test]
    fn debug_shows_no_secret() {
        let master = MasterKey::from_bytes([0xab; 32]);
        let shown = format!("{master:?} {:?}", master.derive(Purpose::Filter, &[]));
        assert!(!shown.contains("171") && !shown.to_lowercase().contains("abab"));
    }
}
