//! The client of private lookup for JavaScript: it holds a key, encrypts indices and decrypts answers.

use ciphervec_owner::lookup::{Client, Documents, Spec};
use ciphervec_owner::protect::keyfile::{self, Protection, Sort};
use js_sys::{Float64Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::{Failure, Result};
use crate::memory;
use crate::secret_file;
use crate::wipe;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &'static str = r#"
/** What a server says of its tables. */
export interface LookupFacts {
  strategy: string; pooling: string; limit: number; tables: number; rows: number; columns: number; padding: boolean;
  errorBound: number;
}
"#;

/// The client of tables that a server holds. `free()` wipes its key.
#[wasm_bindgen(js_name = LookupClient)]
pub struct JsLookupClient(Client);

impl Drop for JsLookupClient {
    fn drop(&mut self) {
        wipe::stack();
    }
}

#[wasm_bindgen(js_class = LookupClient)]
impl JsLookupClient {
    /// A fresh key for the tables that a server described. Throws CorruptData or UnsupportedVersion.
    pub fn generate(description: &Uint8Array) -> Result<JsLookupClient> {
        let spec = Spec::from_bytes(&arrays::bytes("a description", description)?)?;
        Ok(JsLookupClient(Client::generate(spec)?))
    }

    /// What the description says.
    #[wasm_bindgen(unchecked_return_type = "LookupFacts")]
    pub fn facts(&self) -> JsValue {
        let (spec, options) = (self.0.spec(), self.0.spec().options());
        arrays::object(&[
            ("strategy", options.strategy.as_str().into()),
            ("pooling", options.pooling.as_str().into()),
            ("limit", options.limit.into()),
            ("tables", spec.tables().into()),
            ("rows", spec.choices().into()),
            ("columns", spec.columns().into()),
            ("padding", (spec.rows() > spec.choices()).into()),
            ("errorBound", spec.error_bound().into()),
        ])
    }

    /// The public name of the key.
    #[wasm_bindgen(getter, js_name = keyId)]
    pub fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// The evaluation keys that the server needs first; undefined if it needs none. Throws OutOfMemory where they are more than
    /// fits: those of compact transport are, in most engines, and a native client makes them from the same key file.
    pub fn keys(&self) -> Result<Option<Uint8Array>> {
        if let Some(recipe) = self.0.recipe() {
            // Masks are expanded while keys are made, and the bytes are put together beside them.
            memory::expect("making keys for this lookup", 4 * recipe.key_bytes()? as u64)?;
        }
        Ok(self.0.keys()?.map(|keys| arrays::out(&keys)))
    }

    /// Encrypts documents: `indices` has the rows of every table for each token, one token after the other, `offsets` where
    /// each document begins, and its end.
    pub fn query(&self, indices: &[i32], offsets: &[u32]) -> Result<Uint8Array> {
        let indices: Vec<i64> = indices.iter().copied().map(i64::from).collect();
        let offsets: Vec<usize> = offsets.iter().map(|&offset| offset as usize).collect();
        let documents = Documents::new(&indices, self.0.spec().tables(), &offsets)?;
        Ok(arrays::out(&self.0.query(&documents)?))
    }

    /// The numbers of an answer, row after row, `columns` of the facts in each.
    pub fn decode(&self, answer: &Uint8Array) -> Result<Float64Array> {
        let numbers = self.0.decode(&arrays::bytes("an answer", answer)?)?;
        Ok(Float64Array::from(numbers.as_slice()))
    }

    /// The bytes of a key file under a passphrase; in clear only where `allowPlaintext` asks for that.
    #[wasm_bindgen(js_name = toFile)]
    pub fn to_file(
        &self,
        passphrase: Option<String>,
        allow_plaintext: Option<bool>,
    ) -> Result<Uint8Array> {
        secret_file::sealed(passphrase, allow_plaintext, |words| {
            let protection = words.map_or(Protection::Plaintext, Protection::Passphrase);
            let (secret, label) = (self.0.to_secret_bytes(), self.0.label());
            Ok(keyfile::encode_secret(&secret, Sort::Scheme, &label, protection)?)
        })
    }

    /// Reads what `toFile` gave. Throws WrongKey for another passphrase, CorruptData, UnsupportedVersion.
    #[wasm_bindgen(js_name = fromFile)]
    pub fn from_file(data: &Uint8Array, passphrase: Option<String>) -> Result<JsLookupClient> {
        let (secret, label) = secret_file::opened(data, passphrase, |bytes, words| {
            Ok(keyfile::decode_secret(bytes, Sort::Scheme, words)?)
        })?;
        let client = Client::from_secret_bytes(&secret)?;
        if client.label() != label {
            let message =
                "the key file names another key than the one it holds; restore it from a copy";
            return Err(Failure::corrupt(message));
        }
        Ok(JsLookupClient(client))
    }
}
