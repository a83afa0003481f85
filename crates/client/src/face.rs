//! Faces: how the two clients over this crate name things to their users, and how each writes JSON.

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::io;

/// Who speaks to the user, and whose files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Face {
    /// This crate itself.
    #[default]
    Rust,
    /// The browser client.
    JavaScript,
    /// The Python package.
    Python,
}

impl Face {
    /// A name within a message.
    pub(crate) fn quoted(self, name: &str) -> String {
        match self {
            Self::Python => format!("'{name}'"),
            Self::JavaScript | Self::Rust => format!("\"{name}\""),
        }
    }

    /// A method or an option, by its name in this crate.
    pub(crate) fn named(self, name: &str) -> String {
        if self != Self::JavaScript {
            return name.to_owned();
        }
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            let (initial, rest) = word.split_at(word.len().min(1));
            format!("{name}{}{rest}", initial.to_ascii_uppercase())
        })
    }

    /// An option that is to be said, as it is written in a call.
    pub(crate) fn said(self, name: &str) -> String {
        match self {
            Self::Python => format!("{name}=True"),
            Self::JavaScript | Self::Rust => format!("{}: true", self.named(name)),
        }
    }

    /// An option and one of its names, as they are written in a call.
    pub(crate) fn chosen(self, option: &str, name: &str) -> String {
        match self {
            Self::Python => format!("{option}='{name}'"),
            Self::JavaScript | Self::Rust => format!("{}: \"{name}\"", self.named(option)),
        }
    }

    /// Where a client remembers things.
    pub(crate) fn storage(self) -> &'static str {
        match self {
            Self::Python => "state folder",
            Self::JavaScript | Self::Rust => "storage",
        }
    }

    /// Where else the same user may be looking from.
    pub(crate) fn elsewhere(self) -> &'static str {
        match self {
            Self::Python | Self::Rust => "another process",
            Self::JavaScript => "another tab",
        }
    }

    /// Who accepts a restore, and how.
    pub(crate) fn accepts(self, collection: &str) -> String {
        match self {
            Self::Python => {
                format!("client.accept_restore('{collection}'), or ciphervec accept-restore")
            }
            Self::JavaScript | Self::Rust => {
                format!("client.{}(\"{collection}\")", self.named("accept_restore"))
            }
        }
    }

    /// The bytes of a value, as this client has written them from the beginning.
    pub(crate) fn json(self, value: &impl Serialize) -> Vec<u8> {
        match self {
            Self::Python => ascii(&written(value, Spaced)),
            Self::JavaScript | Self::Rust => written(value, CompactFormatter),
        }
    }
}

/// What is written here has names for keys and no number that JSON lacks.
fn written(value: &impl Serialize, formatter: impl Formatter) -> Vec<u8> {
    let mut out = Vec::new();
    let done = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    debug_assert!(done.is_ok());
    out
}

/// JSON in which other letters are escaped: they stand within strings alone.
fn ascii(json: &[u8]) -> Vec<u8> {
    let mut out = String::with_capacity(json.len());
    for letter in String::from_utf8_lossy(json).chars() {
        if letter.is_ascii() && letter != '\u{7f}' {
            out.push(letter);
        } else {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.into_bytes()
}

/// A space behind each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_writes_what_it_always_wrote() {
        let value = serde_json::json!({"a": [1, "ü\u{1F600}\u{7f}"], "b": {}, "c": []});
        // json.dumps(value), JSON.stringify(value)
        let spaced = r#"{"a": [1, "\u00fc\ud83d\ude00\u007f"], "b": {}, "c": []}"#;
        assert_eq!(String::from_utf8(Face::Python.json(&value)).unwrap(), spaced);
        let compact = "{\"a\":[1,\"ü\u{1F600}\u{7f}\"],\"b\":{},\"c\":[]}";
        assert_eq!(String::from_utf8(Face::JavaScript.json(&value)).unwrap(), compact);
    }
}
