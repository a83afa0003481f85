//! The description of an index for JavaScript, checked. Nothing in it is secret.

use ciphervec_owner::IndexSpec;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::{Failure, Result, Sort};
use crate::security;

/// What both sides know about an index: name, dimension, metric, mode, precision and scheme. Nothing secret.
#[wasm_bindgen(js_name = IndexSpec)]
pub struct JsIndexSpec(#[wasm_bindgen(skip)] pub IndexSpec);

#[wasm_bindgen(js_class = IndexSpec)]
impl JsIndexSpec {
    /// By default `cosine`, `sealed`, `standard` and `lattice`. `bits` is the length of the modulus of an additively homomorphic
    /// scheme, `incarnation` 16 random bytes that tell a collection from others of its name.
    #[wasm_bindgen(constructor)]
    #[expect(
        clippy::too_many_arguments,
        reason = "one call of JavaScript's, most of them left out"
    )]
    pub fn new(
        collection: &str,
        dimension: u32,
        metric: Option<String>,
        mode: Option<String>,
        precision: Option<String>,
        scheme: Option<String>,
        bits: Option<u32>,
        incarnation: Option<Uint8Array>,
    ) -> Result<JsIndexSpec> {
        let metric = metric.as_deref().unwrap_or("cosine").parse()?;
        let mode = mode.as_deref().unwrap_or("sealed").parse()?;
        let precision = precision.as_deref().unwrap_or("standard").parse()?;
        let scheme = scheme.as_deref().unwrap_or("lattice").parse()?;
        let spec = IndexSpec::new(collection, dimension, metric, mode, precision)?;
        let spec = spec.with_scheme(scheme, bits)?;
        let incarnation = incarnation.map(|bytes| arrays::one("an incarnation", &bytes));
        Ok(JsIndexSpec(match incarnation.transpose()? {
            Some(incarnation) => spec.with_incarnation(incarnation),
            None => spec,
        }))
    }

    /// The collection's name.
    #[wasm_bindgen(getter)]
    pub fn collection(&self) -> String {
        self.0.collection().to_owned()
    }

    /// Numbers per vector.
    #[wasm_bindgen(getter)]
    pub fn dimension(&self) -> usize {
        self.0.dimension()
    }

    /// `cosine`, `ip`, `l2` or `hamming`.
    #[wasm_bindgen(getter)]
    pub fn metric(&self) -> String {
        self.0.metric().as_str().to_owned()
    }

    /// `sealed`, `sealed-query`, `sealed-index` or `open`.
    #[wasm_bindgen(getter)]
    pub fn mode(&self) -> String {
        self.0.mode().as_str().to_owned()
    }

    /// `standard`, `small` or `wide`.
    #[wasm_bindgen(getter)]
    pub fn precision(&self) -> String {
        self.0.precision().as_str().to_owned()
    }

    /// `lattice`, or the name of an additively homomorphic scheme.
    #[wasm_bindgen(getter)]
    pub fn scheme(&self) -> String {
        self.0.scheme().as_str().to_owned()
    }

    /// What descriptions on disk and on the wire call the scheme.
    #[wasm_bindgen(getter, js_name = storedScheme)]
    pub fn stored_scheme(&self) -> String {
        self.0.scheme().stored_name().to_owned()
    }

    /// Length of the modulus of the index's own key pair, undefined where there is none.
    #[wasm_bindgen(getter)]
    pub fn bits(&self) -> Option<u32> {
        self.0.bits()
    }

    /// The 16 random bytes that tell a collection from others of its name; undefined where an index was made by hand, or by
    /// release 0.1.
    #[wasm_bindgen(getter)]
    pub fn incarnation(&self) -> Option<Uint8Array> {
        self.0.incarnation().map(|bytes| arrays::out(bytes))
    }

    /// What the index rests on and what the server learns.
    #[wasm_bindgen(unchecked_return_type = "SecurityStatement")]
    pub fn security(&self) -> JsValue {
        security::statement(&self.0.security())
    }

    /// What `fromBytes` takes, on either side.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.0.to_bytes())
    }

    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsIndexSpec> {
        read(&arrays::bytes("an index description", data)?).map(JsIndexSpec)
    }

    /// Whether both say the same.
    pub fn equals(&self, other: &JsIndexSpec) -> bool {
        self.0 == other.0
    }
}

/// Bytes that parse into a forbidden choice are damaged bytes, whoever made them.
fn read(bytes: &[u8]) -> Result<IndexSpec> {
    IndexSpec::from_bytes(bytes).map_err(|error| {
        let failure = Failure::from(error);
        match failure.sort {
            Sort::CorruptData | Sort::UnsupportedVersion => failure,
            _ => Failure::corrupt(format!("an index description: {}", failure.message)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_descriptions_are_called_that_whatever_they_parse_into() {
        let spec = JsIndexSpec::new("notes", 8, None, None, None, None, None, None);
        let bytes = spec.map(|spec| spec.0.to_bytes()).unwrap_or_default();
        assert!(read(&bytes).is_ok());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let sort = read(&damaged).err().map(|failure| failure.sort);
                assert!(
                    matches!(sort, None | Some(Sort::CorruptData | Sort::UnsupportedVersion)),
                    "byte {at}, bit {bit}: {sort:?}"
                );
            }
        }
    }
}
