//! Sealed records of one segment for JavaScript. Either side holds them, only the owner opens them.

use ciphervec_owner::protect::records::RecordBatch;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::Result;

/// The sealed metadata and documents of one segment's rows.
#[wasm_bindgen(js_name = RecordBatch)]
pub struct JsRecordBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl JsRecordBatch {
    /// Takes in untrusted bytes, noting once where each record lies.
    pub fn read(bytes: Vec<u8>) -> Result<Self> {
        let batch = RecordBatch::parse(&bytes)?;
        let sizes: Vec<usize> =
            (0..batch.rows()).filter_map(|row| batch.ciphertext(row)).map(<[u8]>::len).collect();
        // The records are the tail of the bytes, one after the other.
        let mut end = bytes.len() - sizes.iter().sum::<usize>();
        let mut ends = vec![end];
        for size in sizes {
            end += size;
            ends.push(end);
        }
        Ok(JsRecordBatch { bytes, ends })
    }

    /// The sealed record of one row.
    pub fn ciphertext(&self, row: usize) -> Option<&[u8]> {
        let (start, end) = (*self.ends.get(row)?, *self.ends.get(row + 1)?);
        self.bytes.get(start..end)
    }
}

#[wasm_bindgen(js_class = RecordBatch)]
impl JsRecordBatch {
    /// Bytes of all.
    #[wasm_bindgen(getter)]
    pub fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    /// Records.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> usize {
        self.ends.len() - 1
    }

    /// What a server stores.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.bytes)
    }

    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsRecordBatch> {
        JsRecordBatch::read(arrays::bytes("sealed records", data)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphervec_owner::Id;
    use ciphervec_owner::protect::aead::AeadKey;
    use ciphervec_owner::protect::records::{Place, seal_records};

    #[test]
    fn every_record_is_found_where_the_core_finds_it() {
        let rows: Vec<_> = (0..5).map(|row| (Id::from(row), vec![7; row as usize * 3])).collect();
        let place = Place { collection: &[1; 32], segment: &[2; 16] };
        let bytes = seal_records(&AeadKey::new([3; 32]), place, &rows).expect("sealed");
        let parsed = RecordBatch::parse(&bytes).expect("sealed just now");
        let batch = JsRecordBatch::read(bytes.clone()).expect("sealed just now");
        assert_eq!(batch.length(), 5);
        for row in 0..6 {
            assert_eq!(batch.ciphertext(row), parsed.ciphertext(row as u32), "row {row}");
        }
    }
}
