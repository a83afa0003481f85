//! JSON to values. All of it is read as a text: a reader of bytes would be a second copy of everything that is read in every page.

use serde::Deserialize;
use serde::de::Error as _;

/// The value in these bytes.
///
/// # Errors
/// For what is no JSON, or no such value.
pub fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    serde_json::from_str(core::str::from_utf8(bytes).map_err(serde_json::Error::custom)?)
}
