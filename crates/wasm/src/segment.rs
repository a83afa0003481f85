//! What one sealing call made: the server's part and the owner's part. Both sides hold it.

use ciphervec_owner::SegmentId;
use ciphervec_owner::search::SealedSegment;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::Result;

/// The 16 bytes of a segment's id.
///
/// # Errors
/// `InvalidInput` for another length.
pub fn id(bytes: &[u8]) -> Result<SegmentId> {
    Ok(SegmentId(arrays::exact("a segment id", bytes)?))
}

/// Several of them.
///
/// # Errors
/// As [`id`].
pub fn ids(arrays: &[Uint8Array]) -> Result<Vec<SegmentId>> {
    Ok(arrays::exacts("a segment id", arrays)?.into_iter().map(SegmentId).collect())
}

/// An immutable batch of sealed vectors. `segment` is for the server, `sidecar` for the owner, wherever it is kept.
#[wasm_bindgen(js_name = SealedSegment)]
pub struct JsSealedSegment(#[wasm_bindgen(skip)] pub SealedSegment);

#[wasm_bindgen(js_class = SealedSegment)]
impl JsSealedSegment {
    /// Its name, 16 bytes, which is the nonce it was sealed under.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> Uint8Array {
        arrays::out(&self.0.id.0)
    }

    /// Vectors sealed.
    #[wasm_bindgen(getter)]
    pub fn rows(&self) -> u32 {
        self.0.rows
    }

    /// The level it is packed for; 0 in modes without a query tree.
    #[wasm_bindgen(getter)]
    pub fn level(&self) -> u8 {
        self.0.level
    }

    /// What a server stores and scans: a new copy with each call.
    #[wasm_bindgen(getter)]
    pub fn segment(&self) -> Uint8Array {
        arrays::out(&self.0.segment)
    }

    /// Ids and norms, encrypted: what `Owner.addTo` takes.
    #[wasm_bindgen(getter)]
    pub fn sidecar(&self) -> Uint8Array {
        arrays::out(&self.0.sidecar)
    }

    /// Bytes of the server's part.
    #[wasm_bindgen(getter)]
    pub fn nbytes(&self) -> usize {
        self.0.segment.len()
    }
}
