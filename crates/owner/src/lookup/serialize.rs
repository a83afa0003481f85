//! What a client refuses of framed bytes.

use crate::error::Result;
pub use ciphervec::lookup::serialize::*;
use ciphervec_he_secret::wire::KeyId;

/// Refuses an answer to another key.
pub(super) fn expect_key(expected: KeyId, actual: KeyId) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    Err(ciphervec_he_secret::Error::WrongKey { what: "the answer", expected, actual }.into())
}
