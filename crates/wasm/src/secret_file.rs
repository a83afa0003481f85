//! Passphrases and files of secret keys, as bytes: who writes them where is the caller's.

use ciphervec_owner::decode::hex;
use ciphervec_owner::protect::keyfile::{self, Sort};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;
use zeroize::Zeroizing;

use crate::arrays;
use crate::errors::{Failure, Result};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &'static str = r#"
/** What a key file says in clear. */
export interface KeyFileLabel { keyId: string; sort: "master" | "scheme" | "person"; encrypted: boolean }
"#;

/// What `read` makes of the bytes of a key file and a passphrase; the copies of both in here are wiped.
///
/// # Errors
/// `OutOfMemory`, and those of `read`.
pub fn opened<T>(
    data: &Uint8Array,
    passphrase: Option<String>,
    read: impl FnOnce(&[u8], Option<&str>) -> Result<T>,
) -> Result<T> {
    let passphrase = passphrase.map(Zeroizing::new);
    let bytes = Zeroizing::new(arrays::bytes("a key file", data)?);
    read(&bytes, passphrase.as_ref().map(|words| words.as_str()))
}

/// The key file that `write` makes under a passphrase, whose copy in here is wiped.
///
/// # Errors
/// `InvalidInput` for a file in clear that nobody asked for, and those of `write`.
pub fn sealed(
    passphrase: Option<String>,
    allow_plaintext: Option<bool>,
    write: impl FnOnce(Option<&str>) -> Result<Zeroizing<Vec<u8>>>,
) -> Result<Uint8Array> {
    let passphrase = passphrase.map(Zeroizing::new);
    let passphrase = passphrase.as_ref().map(|words| words.as_str());
    protection(passphrase, allow_plaintext)?;
    Ok(arrays::out(&write(passphrase)?))
}

/// A file in clear is made for those only who ask for one in the call.
fn protection(passphrase: Option<&str>, allow_plaintext: Option<bool>) -> Result<()> {
    if passphrase.is_some() || allow_plaintext == Some(true) {
        return Ok(());
    }
    Err(Failure::input("give a passphrase, or ask for a key in clear with allowPlaintext = true"))
}

/// What the bytes of a key file say without a passphrase. Throws CorruptData or UnsupportedVersion.
#[wasm_bindgen(js_name = keyFileLabel, unchecked_return_type = "KeyFileLabel")]
pub fn key_file_label(data: &Uint8Array) -> Result<JsValue> {
    let label = keyfile::label(&arrays::bytes("a key file", data)?)?;
    let sort = match label.sort {
        Sort::Master => "master",
        Sort::Scheme => "scheme",
        Sort::Person => "person",
    };
    Ok(arrays::object(&[
        ("keyId", hex(&label.key_id[..8]).into()),
        ("sort", sort.into()),
        ("encrypted", label.encrypted.into()),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_clear_must_be_asked_for() {
        assert!(protection(Some("words"), None).is_ok() && protection(None, Some(true)).is_ok());
        assert!(protection(None, None).is_err() && protection(None, Some(false)).is_err());
    }
}
