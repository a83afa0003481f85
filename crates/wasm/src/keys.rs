//! A passphrase and a file's bytes enter, the secret keys stay in here; evaluation keys leave for the server. Owner only.

use std::sync::Arc;

use ciphervec::Keys;
use ciphervec_he::lattice::ring::{EvaluationKeys, Ring};
use ciphervec_he::wire::{self, Kind};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;
use zeroize::Zeroizing;

use crate::arrays;
use crate::errors::{Failure, Result};
use crate::secret_file;
use crate::spec::JsIndexSpec;
use crate::wipe;

/// The owner's 32 secret bytes. `free()` wipes them, once every client made from them is freed too.
#[wasm_bindgen(js_name = Keys)]
pub struct JsKeys(#[wasm_bindgen(skip)] pub Arc<Keys>);

impl Drop for JsKeys {
    fn drop(&mut self) {
        wipe::stack();
    }
}

#[wasm_bindgen(js_class = Keys)]
impl JsKeys {
    /// The public name of the keys.
    #[wasm_bindgen(getter, js_name = keyId)]
    pub fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// Fresh keys from the page's cryptographic generator.
    pub fn generate() -> Result<JsKeys> {
        Ok(JsKeys(Arc::new(Keys::generate()?)))
    }

    /// Keys from their 32 bytes; the copy in here is wiped.
    #[wasm_bindgen(js_name = fromMaster)]
    pub fn from_master(master: &Uint8Array) -> Result<JsKeys> {
        let bytes = Zeroizing::new(arrays::bytes("a master key", master)?);
        Ok(JsKeys(Arc::new(Keys::from_master(arrays::exact("a master key", &bytes)?))))
    }

    /// Reads the bytes of a key file. Throws WrongKey for another passphrase, CorruptData, UnsupportedVersion.
    #[wasm_bindgen(js_name = fromFile)]
    pub fn from_file(data: &Uint8Array, passphrase: Option<String>) -> Result<JsKeys> {
        secret_file::opened(data, passphrase, |bytes, words| {
            Ok(JsKeys(Arc::new(Keys::from_file_bytes(bytes, words)?)))
        })
    }

    /// The bytes of a key file under a passphrase; in clear only where `allowPlaintext` asks for that.
    #[wasm_bindgen(js_name = toFile)]
    pub fn to_file(
        &self,
        passphrase: Option<String>,
        allow_plaintext: Option<bool>,
    ) -> Result<Uint8Array> {
        secret_file::sealed(passphrase, allow_plaintext, |words| Ok(self.0.to_file_bytes(words)?))
    }

    /// 24 words that are the key. JavaScript's text can't be wiped; the copy here is.
    #[wasm_bindgen(js_name = recoveryPhrase)]
    pub fn recovery_phrase(&self) -> JsValue {
        JsValue::from_str(&self.0.recovery_phrase())
    }

    /// Keys from those words. Throws InvalidInput, naming the word that is unknown.
    #[wasm_bindgen(js_name = fromRecoveryPhrase)]
    pub fn from_recovery_phrase(words: String) -> Result<JsKeys> {
        Ok(JsKeys(Arc::new(Keys::from_recovery_phrase(&Zeroizing::new(words))?)))
    }

    /// What a server needs to answer encrypted queries of `epoch`; empty where queries are plain.
    pub fn evaluation(&self, spec: &JsIndexSpec, epoch: Option<u32>) -> Result<JsEvaluationKeys> {
        if spec.0.scheme().is_additive() {
            return Err(Failure::input(format!(
                "under scheme {:?} the server's key is half of a pair that the index's owner holds; take owner.publicKey()",
                spec.0.scheme().as_str()
            )));
        }
        let epoch = epoch.unwrap_or(0);
        let made = self.0.evaluation(&spec.0, epoch)?;
        let bytes = made.map(|keys| keys.to_bytes()).unwrap_or_default();
        Ok(JsEvaluationKeys { bytes, epoch, key_id: self.key_id() })
    }

    /// Whether they are the same keys in full.
    pub fn same(&self, other: &JsKeys) -> bool {
        self.0.same(&other.0)
    }
}

/// What a server needs to answer queries: Galois keys where they are encrypted, the public key of an additively homomorphic
/// scheme, and nothing else. Public.
#[wasm_bindgen(js_name = EvaluationKeys)]
pub struct JsEvaluationKeys {
    bytes: Vec<u8>,
    epoch: u32,
    key_id: String,
}

#[wasm_bindgen(js_class = EvaluationKeys)]
impl JsEvaluationKeys {
    /// Bytes to send.
    #[wasm_bindgen(getter)]
    pub fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    /// The epoch of the query key they belong to.
    #[wasm_bindgen(getter)]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The public name of the owner's key.
    #[wasm_bindgen(getter, js_name = keyId)]
    pub fn key_id(&self) -> String {
        self.key_id.clone()
    }

    /// What a server takes.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.bytes)
    }

    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsEvaluationKeys> {
        JsEvaluationKeys::read(arrays::bytes("evaluation keys", data)?)
    }
}

impl JsEvaluationKeys {
    pub fn new(bytes: Vec<u8>, epoch: u32, key_id: String) -> Self {
        JsEvaluationKeys { bytes, epoch, key_id }
    }

    fn read(bytes: Vec<u8>) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(JsEvaluationKeys::new(bytes, 0, String::new()));
        }
        // The number of levels, which follows from the dimension, stands in the frame.
        let (_, payload) = wire::open(Kind::EvaluationKeys, &bytes)?;
        let levels = payload.get(44..48).and_then(|bytes| bytes.first_chunk::<4>());
        let Some(levels @ 0..=12) = levels.map(|bytes| u32::from_le_bytes(*bytes)) else {
            return Err(Failure::corrupt("evaluation keys: 0 to 12 levels expected"));
        };
        let keys = EvaluationKeys::from_bytes(&Ring::new()?, &bytes, 1 << levels)?;
        let (epoch, key_id) = (keys.epoch(), keys.key_id().to_string());
        Ok(JsEvaluationKeys { bytes, epoch, key_id })
    }
}
