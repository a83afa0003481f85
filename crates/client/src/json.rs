//! JSON to values. All of it is read as a text: a reader of bytes would be a second copy of everything that is read in every page.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The value in these bytes.
///
/// # Errors
/// For what is no JSON, or no such value.
pub fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    serde_json::from_str(core::str::from_utf8(bytes).map_err(serde_json::Error::custom)?)
}

/// Bytes that stand in JSON in base 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> core::result::Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> core::result::Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        BASE64_STANDARD.decode(text).map(Self).map_err(D::Error::custom)
    }
}
