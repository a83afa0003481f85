//! The owner of one index: everything that needs a secret.

use super::form::{self, Expected, KeyHolderHalf, PackingChoice};
use super::root_key::{RotationState, SegmentRootKey};
use super::seal::{SealedSegment, seal};
use super::wrap::WriterPairs;
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::keys::Keys;
use crate::protect::aead::AeadKey;
use crate::protect::filter;
use crate::protect::id::Id;
use ciphervec_he_secret::keys::{Purpose, Secret};
use ciphervec_he_secret::lattice::ring::EvaluationKeys;
use ciphervec_he_secret::wire::KeyId;
use std::sync::Arc;

/// Everything that needs a secret, for one index.
pub struct Owner {
    spec: IndexSpec,
    root: SegmentRootKey,
    /// The owner's root key before a rotation that is under way.
    previous: Option<Arc<SegmentRootKey>>,
    filter: Secret,
    mask_seed: [u8; 32],
    pairs: WriterPairs,
    form: Box<dyn KeyHolderHalf>,
}

impl core::fmt::Debug for Owner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Owner({:?}, key {}, redacted)", self.spec, self.key_id())
    }
}

impl Owner {
    /// The owner of `spec` under `keys`. In mode `open` the keys are replaced by [`Keys::public`]: nothing is secret there.
    ///
    /// # Errors
    /// If the parameters were refused.
    pub fn new(keys: &Keys, spec: IndexSpec) -> Result<Self> {
        Self::with_rotation(keys, spec, &RotationState::default())
    }

    /// The same for an index whose keys were changed, or are being changed.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_rotation(keys: &Keys, spec: IndexSpec, state: &RotationState<'_>) -> Result<Self> {
        let public = Keys::public();
        let form = form::of(&spec);
        let keys = if form.seals() { keys } else { &public };
        let mask_seed = state.mask_seed.unwrap_or_else(|| keys.mask_seed(&spec));
        let root =
            |keys: &Keys| SegmentRootKey::new(Arc::clone(&keys.master), keys.key_id(), &spec);
        Ok(Owner {
            root: root(keys),
            previous: state.previous.map(|keys| Arc::new(root(keys))),
            filter: keys.master.derive(Purpose::Filter, &[&spec.binding()]),
            mask_seed,
            pairs: WriterPairs::default(),
            form: form.key_holder(&spec, mask_seed)?,
            spec,
        })
    }

    /// The description.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// The public name of the keys in use.
    pub fn key_id(&self) -> KeyId {
        self.root.key_id()
    }

    /// The owner's root key, which its own segments are sealed under.
    pub fn root(&self) -> &SegmentRootKey {
        &self.root
    }

    /// The root key before a rotation that is under way.
    pub fn previous(&self) -> Option<&Arc<SegmentRootKey>> {
        self.previous.as_ref()
    }

    /// The key of the owner's own sidecars and records.
    pub fn aead(&self) -> &AeadKey {
        self.root.aead()
    }

    /// The seed of the public masks.
    pub fn mask_seed(&self) -> &[u8; 32] {
        &self.mask_seed
    }

    /// What a server needs to answer encrypted queries of `epoch`; `None` in the modes whose queries are plain.
    ///
    /// # Errors
    /// Parameters that were refused.
    pub fn evaluation(&self, epoch: u32) -> Result<Option<Arc<EvaluationKeys>>> {
        self.form.evaluation_keys(&self.root, epoch)
    }

    /// Takes in the evaluation keys that a server holds, where they are not those of
    /// [`Self::evaluation`]: of releases that drew them at random. Answers are checked against the tree
    /// that the server expands with them, so they must be known to be the owner's.
    ///
    /// # Errors
    /// Damaged bytes, another key or index; a mode without.
    pub fn hold_evaluation(&self, bytes: &[u8]) -> Result<()> {
        self.form.hold_evaluation(&self.root, bytes)
    }

    pub(super) fn pairs(&self) -> &WriterPairs {
        &self.pairs
    }

    pub(super) fn form(&self) -> &dyn KeyHolderHalf {
        self.form.as_ref()
    }

    /// The keyed hash of a filterable field's value: equal values have equal tags, and that is what the server sees.
    pub fn filter_tag(&self, field: &str, value: &[u8]) -> filter::FilterTag {
        filter::tag(self.filter.expose(), field, value)
    }

    /// Seals rows (row-major, `ids.len() × dimension`) under a nonce that is drawn now and never again.
    ///
    /// # Errors
    /// Rows that fail the checks, another number of ids than rows, an id given twice, no rows, or too many.
    pub fn seal(&self, rows: &[f32], ids: &[Id]) -> Result<SealedSegment> {
        self.seal_expecting(rows, ids, &Expected::rows(ids.len()))
    }

    /// As [`Self::seal`], packed for an index like the `expected` one: bulk loads in several segments want the
    /// level that suits their sum.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn seal_expecting(
        &self,
        rows: &[f32],
        ids: &[Id],
        expected: &Expected,
    ) -> Result<SealedSegment> {
        self.seal_around(rows, ids, expected, &[])
    }

    /// As [`Self::seal_expecting`], of rows less a centre, which the sidecar keeps; an empty one is the origin.
    ///
    /// # Errors
    /// As [`Self::seal`]; a centre under another metric than `l2`, or of another length.
    pub fn seal_around(
        &self,
        rows: &[f32],
        ids: &[Id],
        expected: &Expected,
        centre: &[f32],
    ) -> Result<SealedSegment> {
        let encryptor = form::sealing(&self.spec).encryptor(self.form.as_ref())?;
        seal(&self.spec, &self.root, encryptor, rows, ids, expected, centre)
    }

    /// Whether a segment of so many rows at this level is packed as suits an index like the `expected` one, or nearly so:
    /// segments that are not are worth sealing again.
    ///
    /// # Errors
    /// A level that is none.
    pub fn suits(&self, rows: usize, level: u8, expected: &Expected) -> Result<bool> {
        self.form.suits(rows, level, expected)
    }

    /// How most rows of such an index are packed; `None` in modes without a choice.
    ///
    /// # Errors
    /// A description that has no layout.
    pub fn packing(&self, expected: &Expected) -> Result<Option<PackingChoice>> {
        self.form.packing(expected)
    }
}

impl Keys {
    /// What a server needs to answer encrypted queries of `epoch`: Galois keys for the modes that encrypt queries, `None` for
    /// the others, whose server needs no key at all.
    ///
    /// # Errors
    /// Parameters that were refused.
    pub fn evaluation(&self, spec: &IndexSpec, epoch: u32) -> Result<Option<Arc<EvaluationKeys>>> {
        Owner::new(self, spec.clone())?.evaluation(epoch)
    }
}
