//! Record ids as users give them, with canonical bytes. For the key owner only: servers see tags.

use crate::decode::{DecodeError, Reader};
use std::fmt;

/// The name of one record: text or a 64-bit integer. `Number(7)` and `Text("7")` are different
/// records.
///
/// Order: numbers before texts, then by value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// An integer id.
    Number(i64),
    /// A text id: any UTF-8 of 1 to [`Id::MAX_TEXT`] bytes.
    Text(String),
}

const NUMBER: u8 = 0;
const TEXT: u8 = 1;

/// An id that cannot be used.
#[non_exhaustive]
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
pub enum IdError {
    /// Text of length zero or over the limit.
    #[error(
        "a text id has 1 to {limit} bytes of UTF-8, this one has {actual}; use a shorter or non-empty id"
    )]
    Length {
        /// Longest text in bytes.
        limit: usize,
        /// Bytes given.
        actual: usize,
    },
}

impl Id {
    /// Longest text id, in bytes of UTF-8.
    pub const MAX_TEXT: usize = 65_535;

    /// Checks that the id may be stored.
    ///
    /// # Errors
    /// [`IdError::Length`] for an empty text or one over [`Id::MAX_TEXT`] bytes.
    pub fn validate(&self) -> Result<(), IdError> {
        match self {
            Self::Text(text) if text.is_empty() || text.len() > Self::MAX_TEXT => {
                Err(IdError::Length { limit: Self::MAX_TEXT, actual: text.len() })
            }
            _ => Ok(()),
        }
    }

    /// Canonical bytes: one kind byte (0 number, 1 text), then the integer as 8 bytes little-endian
    /// or the UTF-8. Different ids have different bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Number(number) => {
                let mut bytes = vec![NUMBER];
                bytes.extend_from_slice(&number.to_le_bytes());
                bytes
            }
            Self::Text(text) => {
                let mut bytes = Vec::with_capacity(1 + text.len());
                bytes.push(TEXT);
                bytes.extend_from_slice(text.as_bytes());
                bytes
            }
        }
    }

    /// The inverse of [`Id::to_bytes`]; the whole of `bytes` is one id.
    ///
    /// # Errors
    /// [`DecodeError`] for an unknown kind, a wrong length or bytes that are not UTF-8.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("id", bytes);
        match reader.u8()? {
            NUMBER => {
                let number = i64::from_le_bytes(reader.array()?);
                reader.finish()?;
                Ok(Self::Number(number))
            }
            TEXT => {
                let text = reader.take(reader.remaining())?;
                Self::text(text)
                    .map_err(|expected| reader.field("text", 1, expected, describe(text)))
            }
            kind => Err(reader.field("kind", 0, "0 (number) or 1 (text)", kind)),
        }
    }

    /// Checked text from UTF-8; the error is what was expected.
    #[doc(hidden)]
    pub fn text(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.is_empty() || bytes.len() > Self::MAX_TEXT {
            return Err("1 to 65535 bytes");
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::Text(text.to_owned())),
            Err(_) => Err("UTF-8"),
        }
    }
}

/// What an id's text holds, without repeating it: ids are plaintext data and stay out of messages.
pub fn describe(text: &[u8]) -> String {
    let kind = if std::str::from_utf8(text).is_ok() { "UTF-8" } else { "not UTF-8" };
    format!("{} bytes, {kind}", text.len())
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Id {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_digits_are_different_ids() {
        let number = Id::from(7);
        let text = Id::from("7");
        assert_ne!(number, text);
        assert_eq!(number.to_bytes(), [0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(text.to_bytes(), [1, b'7']);
        assert_eq!(number.to_string(), text.to_string());
        assert!(Id::from(i64::MAX) < Id::from("a"));
    }

    #[test]
    fn canonical_bytes_round_trip_and_nothing_else_is_read() {
        for id in [
            Id::from(-1),
            Id::from(i64::MIN),
            Id::from("näher"),
            Id::from("a".repeat(Id::MAX_TEXT)),
        ] {
            assert_eq!(Id::from_bytes(&id.to_bytes()), Ok(id));
        }
        for bad in [&[][..], &[2, 0], &[1], &[0, 1, 2], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[1, 0xff]]
        {
            assert!(Id::from_bytes(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn empty_and_oversized_texts_are_refused() {
        assert_eq!(Id::from("").validate(), Err(IdError::Length { limit: 65_535, actual: 0 }));
        assert!(Id::from("x".repeat(65_536)).validate().is_err());
        assert_eq!(Id::from(0).validate(), Ok(()));
    }
}
