//! What sealing and opening segments of an index in the compact form share: scheme, masks, and the secrets of a segment. Owner
//! only.

use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::search::root_key::SegmentRootKey;
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::lattice::compact::{
    AnswerCheck, CheckWeights, Compact, Masks, SegmentKey, Width, Witness,
};
use zeroize::Zeroizing;

/// Quantized queries, which removing the masks takes again.
pub type Integers = Zeroizing<Vec<i64>>;

/// What opens a segment, once a query has needed it. Wiped on drop.
pub struct SegmentSecrets {
    pub key: SegmentKey,
    /// Of segments with a witness.
    pub check: Option<AnswerCheck>,
}

/// What sealing and opening segments of one index share.
pub struct Context {
    pub spec: IndexSpec,
    pub width: Width,
    pub scheme: Compact,
    pub masks: Masks,
}

impl Context {
    pub fn new(spec: IndexSpec, width: Width, mask_seed: [u8; 32]) -> Result<Self> {
        let scheme = Compact::new(width)?;
        let masks = Masks::new(&scheme, mask_seed, spec.dimension());
        Ok(Context { spec, width, scheme, masks })
    }

    /// The secrets of a segment, and its check where it has a witness.
    ///
    /// # Errors
    /// A witness of another length than rows and dimension ask for.
    pub fn secrets(
        &self,
        root: &SegmentRootKey,
        id: SegmentId,
        rows: usize,
        witness: &[u8],
    ) -> Result<SegmentSecrets> {
        let (scheme, master, binding) = (&self.scheme, root.master(), self.spec.binding());
        let check = self.witness(id, rows, witness)?.map(|witness| {
            let weights = CheckWeights::derive(scheme, master, &binding, id, rows);
            AnswerCheck::new(weights, &witness, self.spec.dimension())
        });
        Ok(SegmentSecrets { key: SegmentKey::derive(scheme, master, &binding, id, rows), check })
    }

    /// The witness in a segment's sidecar; `None` for segments from before there were any.
    pub fn witness<'a>(
        &self,
        segment: SegmentId,
        rows: usize,
        bytes: &'a [u8],
    ) -> Result<Option<Witness<'a>>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let read = Witness::read(&self.scheme, rows, self.spec.dimension(), bytes);
        let detail = || {
            let expected = Witness::len(&self.scheme, rows, self.spec.dimension());
            format!("a witness of {expected} bytes expected, {} came", bytes.len())
        };
        let segment = segment.to_string();
        read.map(Some).ok_or_else(|| Error::Directory { segment, detail: detail() })
    }
}
