//! Writes and reads files of secret keys, encrypted under a passphrase unless the caller asks for plaintext. Client
//! side.

use std::path::Path;

use ciphervec_owner::protect::keyfile::{self, KeyfileError, Protection, Sort};
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::errors::{CorruptData, InvalidInput, Raise};

/// A secret key's bytes, and the public label that its file carries in clear.
pub type Labelled = (Zeroizing<Vec<u8>>, [u8; 16]);

/// A new file, in mode 0600. `secret` runs without the GIL.
pub fn save(
    py: Python<'_>,
    path: &str,
    (passphrase, allow_plaintext): (Option<&str>, bool),
    secret: impl FnOnce() -> Labelled + Send,
) -> PyResult<()> {
    let protection = protection(passphrase, allow_plaintext)?;
    detached(py, || {
        let (secret, label) = secret();
        keyfile::save_secret(Path::new(path), &secret, Sort::Scheme, &label, protection, false)
    })
}

/// What [`save`] wrote.
pub fn load(py: Python<'_>, path: &str, passphrase: Option<&str>) -> PyResult<Labelled> {
    detached(py, || keyfile::load_secret(Path::new(path), Sort::Scheme, passphrase))
}

/// The bytes of such a file.
pub fn encode(
    py: Python<'_>,
    (passphrase, allow_plaintext): (Option<&str>, bool),
    secret: impl FnOnce() -> Labelled + Send,
) -> PyResult<Zeroizing<Vec<u8>>> {
    let protection = protection(passphrase, allow_plaintext)?;
    detached(py, || {
        let (secret, label) = secret();
        keyfile::encode_secret(&secret, Sort::Scheme, &label, protection)
    })
}

/// What [`encode`] made.
pub fn decode(py: Python<'_>, data: &[u8], passphrase: Option<&str>) -> PyResult<Labelled> {
    detached(py, || keyfile::decode_secret(data, Sort::Scheme, passphrase))
}

/// Refuses a file whose label is not that of the key in it.
pub fn check_label(found: [u8; 16], expected: [u8; 16]) -> PyResult<()> {
    if found == expected {
        return Ok(());
    }
    Err(CorruptData::new_err(
        "the key file names another key than the one it holds; restore it from a copy",
    ))
}

/// A file in clear is made for those only who ask for one in the call.
pub fn protection(passphrase: Option<&str>, allow_plaintext: bool) -> PyResult<Protection<'_>> {
    match passphrase {
        Some(passphrase) => Ok(Protection::Passphrase(passphrase)),
        None if allow_plaintext => Ok(Protection::Plaintext),
        None => Err(InvalidInput::new_err(
            "give a passphrase, or ask for a key in clear with allow_plaintext=True",
        )),
    }
}

fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, KeyfileError> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(Raise::raise)
}
