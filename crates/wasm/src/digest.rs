//! BLAKE3 hashes for JavaScript, which uploads are checked by.

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;

/// Bytes that are copied in at once.
const PIECE: u32 = 1 << 20;

/// The BLAKE3 hash of `data`, 32 bytes.
#[wasm_bindgen]
pub fn blake3(data: &Uint8Array) -> Uint8Array {
    let mut hash = JsBlake3::new();
    hash.update(data);
    hash.digest()
}

/// The same of data that comes piece by piece.
#[wasm_bindgen(js_name = Blake3)]
#[derive(Default)]
pub struct JsBlake3(::blake3::Hasher);

#[wasm_bindgen(js_class = Blake3)]
impl JsBlake3 {
    /// Of nothing yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> JsBlake3 {
        JsBlake3::default()
    }

    /// The next bytes.
    pub fn update(&mut self, data: &Uint8Array) {
        let mut piece = vec![0; data.length().min(PIECE) as usize];
        let mut start = 0;
        while start < data.length() {
            let end = data.length().min(start + PIECE);
            let piece = &mut piece[..(end - start) as usize];
            data.subarray(start, end).copy_to(piece);
            self.0.update(piece);
            start = end;
        }
    }

    /// The hash of all that came, 32 bytes.
    pub fn digest(&self) -> Uint8Array {
        arrays::out(self.0.finalize().as_bytes())
    }
}
