//! JSON values as filters compare them.

use std::fmt;

use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::records::number::Number;

/// What values are compared with values of: texts with texts, numbers with numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    None,
    Boolean,
    Number,
    Text,
    List,
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::None => "null",
            Self::Boolean => "booleans",
            Self::Number => "numbers",
            Self::Text => "texts",
            Self::List => "lists",
            Self::Object => "objects",
        })
    }
}

/// A value, as far as a filter looks at it: into a list, and not into what stands in a list's lists and objects. In the order of kinds,
/// and within one as `$lt` has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    None,
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Value>),
    Object,
}

impl Value {
    /// Of the JSON of a value.
    pub fn read(json: &RawValue) -> Self {
        match json.get().as_bytes().first() {
            Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(json.get())
                .map_or(Self::List(Vec::new()), |items| {
                    Self::List(items.into_iter().map(Self::within_list).collect())
                }),
            _ => Self::within_list(json),
        }
    }

    fn within_list(json: &RawValue) -> Self {
        let text = json.get();
        match text.as_bytes().first() {
            Some(b'n') => Self::None,
            Some(b't') => Self::Boolean(true),
            Some(b'f') => Self::Boolean(false),
            Some(b'"') => serde_json::from_str(text).map_or(Self::Object, Self::Text),
            Some(b'[') => Self::List(Vec::new()),
            Some(b'{') | None => Self::Object,
            Some(_) => Self::Number(Number::read(text)),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::None => Kind::None,
            Self::Boolean(_) => Kind::Boolean,
            Self::Number(_) => Kind::Number,
            Self::Text(_) => Kind::Text,
            Self::List(_) => Kind::List,
            Self::Object => Kind::Object,
        }
    }

    /// Bytes that are equal exactly where two values are equal under `$eq`; none of a list or an object.
    pub fn canonical(&self) -> Option<Vec<u8>> {
        match self {
            Self::None => Some(b"n".to_vec()),
            Self::Boolean(value) => Some(if *value { b"b1".to_vec() } else { b"b0".to_vec() }),
            Self::Number(value) => Some(value.canonical().into_bytes()),
            Self::Text(value) => Some([b"s", value.as_bytes()].concat()),
            Self::List(_) | Self::Object => None,
        }
    }
}

/// What a keyed tag is made of for a value in JSON: bytes that are equal exactly where two values are equal under `$eq`.
///
/// # Errors
/// [`Error::Input`] for a list, an object, and what is no JSON.
pub fn canonical(json: &str) -> Result<Vec<u8>> {
    let value = serde_json::from_str::<&RawValue>(json).ok().map(Value::read);
    match value.as_ref().and_then(Value::canonical) {
        Some(bytes) => Ok(bytes),
        None => Error::input(format!(
            "a filter compares with a text, number, boolean or null, got {}. Use $in for one of several values, $contains for a \
             value within a list.",
            shown(json)
        )),
    }
}

/// JSON for a message: not too much of it.
pub fn shown(json: &str) -> String {
    const MOST: usize = 120;
    match json.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} …", &json[..end]),
        None => json.to_owned(),
    }
}
