//! The owner's master key for JavaScript. Its bytes stay in here, but for key files and recovery phrases that are asked for.

use std::sync::Arc;

use ciphervec_owner::Keys;
use ciphervec_owner::protect::passkey::{Passkey, Question};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;
use zeroize::Zeroizing;

use crate::arrays;
use crate::errors::Result;
use crate::secret_file;
use crate::wipe;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &'static str = r#"
/** What a passkey is asked for, to open a key file. */
export interface PasskeyQuestion { rp: string; credential: Uint8Array; salt: Uint8Array }
"#;

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

    /// Reads a key file that a passkey opens. `output` is what its PRF gave for the file's salt. Throws WrongKey for another one.
    #[wasm_bindgen(js_name = fromPasskeyFile)]
    pub fn from_passkey_file(data: &Uint8Array, output: &Uint8Array) -> Result<JsKeys> {
        let output = Zeroizing::new(arrays::one("the output of a passkey", output)?);
        let bytes = arrays::bytes("a key file", data)?;
        Ok(JsKeys(Arc::new(Keys::from_passkey_bytes(&bytes, &output)?)))
    }

    /// The bytes of a key file that the credential of this relying party opens, whose PRF gave `output` for `salt`.
    #[wasm_bindgen(js_name = toPasskeyFile)]
    pub fn to_passkey_file(
        &self,
        rp: &str,
        credential: &Uint8Array,
        salt: &Uint8Array,
        output: &Uint8Array,
    ) -> Result<Uint8Array> {
        let output = Zeroizing::new(arrays::one("the output of a passkey", output)?);
        let credential = arrays::bytes("the id of a credential", credential)?;
        let salt = arrays::one("a salt", salt)?;
        let question = Question { passkey: Passkey::new(rp, &credential)?, salt };
        Ok(arrays::out(&self.0.to_passkey_bytes(&question, &output)?))
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

    /// The keys of a tenant, to be handed out alone.
    #[wasm_bindgen(js_name = forTenant)]
    pub fn for_tenant(&self, name: &str) -> Result<JsKeys> {
        Ok(JsKeys(Arc::new(self.0.for_tenant(name)?)))
    }

    /// The keys of one collection.
    #[wasm_bindgen(js_name = forCollection)]
    pub fn for_collection(&self, name: &str) -> Result<JsKeys> {
        Ok(JsKeys(Arc::new(self.0.for_collection(name)?)))
    }

    /// Whether they are the same keys in full.
    pub fn same(&self, other: &JsKeys) -> bool {
        self.0.same(&other.0)
    }
}

/// What a passkey is asked for, to open a key file.
///
/// Undefined for a file that none opens. Throws CorruptData or UnsupportedVersion.
#[wasm_bindgen(js_name = passkeyQuestion, unchecked_return_type = "PasskeyQuestion | undefined")]
pub fn passkey_question(data: &Uint8Array) -> Result<JsValue> {
    let asked = Question::of(&arrays::bytes("a key file", data)?)?;
    Ok(asked.map_or(JsValue::UNDEFINED, |Question { passkey, salt }| {
        arrays::object(&[
            ("rp", passkey.rp().into()),
            ("credential", arrays::out(passkey.credential()).into()),
            ("salt", arrays::out(&salt).into()),
        ])
    }))
}
