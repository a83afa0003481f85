//! Records: the metadata and the document of a row, as the JSON that is sealed beside it.
//!
//! A value that nobody changes keeps its text, so that 2.0 does not become 2, nor the fields change places, whoever writes the
//! record again.
//!
//! The JSON: `{"metadata": …, "document": …, "sparse": {"indices": …, "values": …}}`, of which each part may be missing, or empty.

use std::borrow::Cow;
use std::fmt;

use ciphervec_owner::protect::filter::FilterTag;
use indexmap::IndexMap;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::json;
use crate::records::sparse::SparseVector;
use crate::records::value::Value;

/// An object's fields in their order, each with the text of its value. A name that comes twice has the later value.
#[derive(Debug, Default)]
pub struct Fields<'a>(pub(crate) IndexMap<Cow<'a, str>, &'a RawValue>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> core::result::Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while let Some(Name(name)) = map.next_key()? {
                    fields.0.insert(name, map.next_value()?);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The metadata of the bytes of a record, whose document is not read.
///
/// # Errors
/// [`Error::Corrupt`] for other bytes than a record's.
pub(crate) fn metadata(bytes: &[u8]) -> Result<Fields<'_>> {
    Ok(Record::read(bytes)?.metadata.unwrap_or_default())
}

/// A field's name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a field's name")
            }

            fn visit_borrowed_str<E: de::Error>(
                self,
                name: &'de str,
            ) -> core::result::Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> core::result::Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// One record, read.
#[derive(Debug, Default)]
pub(crate) struct Record<'a> {
    pub metadata: Option<Fields<'a>>,
    pub document: Option<String>,
    pub sparse: Option<SparseVector>,
}

impl<'a> Record<'a> {
    /// Reads the bytes of a record; none are an empty one.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let corrupt = |reason: &str| {
            Error::Corrupt(format!("a stored record is not the JSON object expected: {reason}."))
        };
        let fields: Fields<'a> = json::read(bytes).map_err(|error| corrupt(&error.to_string()))?;
        let mut record = Self::default();
        for (name, value) in fields.0 {
            match &*name {
                "metadata" => record.metadata = read(value).map_err(|error| corrupt(&error))?,
                "document" => record.document = read(value).map_err(|error| corrupt(&error))?,
                "sparse" => record.sparse = read(value).map_err(|error| corrupt(&error))?,
                _ => {
                    return Err(corrupt("it has other fields than metadata, document and sparse"));
                }
            }
        }
        match record.sparse.as_ref().and_then(SparseVector::fault) {
            Some(fault) => Err(corrupt(&format!("its sparse vector {fault}"))),
            None => Ok(record),
        }
    }

    /// The text of its metadata, and its document.
    pub fn parts(self) -> (Option<String>, Option<String>) {
        let metadata = self.metadata.map(|fields| object(&fields));
        (metadata, self.document)
    }

    fn write(&self) -> Vec<u8> {
        if self.metadata.is_none() && self.document.is_none() && self.sparse.is_none() {
            return Vec::new();
        }
        let mut parts = Vec::new();
        if let Some(fields) = &self.metadata {
            parts.push(format!("\"metadata\":{}", object(fields)));
        }
        if let Some(document) = &self.document {
            parts.push(format!("\"document\":{}", quoted(document)));
        }
        if let Some(sparse) = self.sparse.as_ref().and_then(|one| serde_json::to_string(one).ok()) {
            parts.push(format!("\"sparse\":{sparse}"));
        }
        format!("{{{}}}", parts.join(",")).into_bytes()
    }
}

fn read<'a, T: Deserialize<'a>>(value: &'a RawValue) -> core::result::Result<Option<T>, String> {
    serde_json::from_str(value.get()).map_err(|error| error.to_string())
}

fn object(fields: &Fields<'_>) -> String {
    let fields = fields.0.iter().map(|(name, value)| format!("{}:{}", quoted(name), value.get()));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A record without the fields `removed` of its metadata, and then with the fields of the JSON object `metadata` laid over the
/// others, and `document` in place of its own.
///
/// # Errors
/// [`Error::Corrupt`] for other bytes than a record's; [`Error::Input`] where `metadata` is no object.
pub fn merge(
    record: &[u8],
    metadata: Option<&str>,
    document: Option<&str>,
    removed: &[String],
) -> Result<Vec<u8>> {
    let mut record = Record::read(record)?;
    if let Some(fields) = &mut record.metadata {
        fields.0.retain(|name, _| !removed.iter().any(|gone| gone == name));
    }
    if let Some(metadata) = metadata {
        let changes: Fields<'_> = serde_json::from_str(metadata)
            .or_else(|error| Error::input(format!("metadata must be an object: {error}.")))?;
        let fields = record.metadata.get_or_insert_default();
        for (name, value) in changes.0 {
            fields.0.insert(name, value);
        }
    }
    if let Some(document) = document {
        record.document = Some(document.to_owned());
    }
    Ok(record.write())
}

/// A record with this sparse vector in place of its own.
///
/// # Errors
/// [`Error::Corrupt`] for other bytes than a record's.
pub(crate) fn with_sparse(record: &[u8], sparse: &SparseVector) -> Result<Vec<u8>> {
    Ok(Record { sparse: Some(sparse.clone()), ..Record::read(record)? }.write())
}

/// As [`merge`], but a field that `metadata` gives as null goes, and where no field is left so does the metadata.
///
/// # Errors
/// As [`merge`].
pub(crate) fn lay(
    record: &[u8],
    metadata: Option<&str>,
    document: Option<&str>,
) -> Result<Vec<u8>> {
    let merged = merge(record, metadata, document, &[])?;
    let given: Fields<'_> =
        metadata.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut record = Record::read(&merged)?;
    if let Some(fields) = &mut record.metadata {
        fields.0.retain(|name, _| given.0.get(name).is_none_or(|value| value.get() != "null"));
    }
    record.metadata = record.metadata.filter(|fields| !fields.0.is_empty());
    Ok(record.write())
}

/// The value of a field; of a name with dots that no field has, the value within objects that the parts name. A name within may have
/// dots itself: the longest first.
pub(crate) fn value_at(fields: &Fields<'_>, path: &str) -> Option<Value> {
    if let Some(json) = fields.0.get(path) {
        return Some(Value::read(json));
    }
    path.rmatch_indices('.').find_map(|(dot, _)| {
        let inner = serde_json::from_str(fields.0.get(&path[..dot])?.get()).ok()?;
        value_at(&inner, &path[dot + 1..])
    })
}

/// The tags of a record's `filterable` fields, of which `tag` makes one from a field and a canonical value.
///
/// # Errors
/// [`Error::Corrupt`] for other bytes than a record's.
pub fn tags(
    record: &[u8],
    filterable: &[String],
    tag: impl Fn(&str, &[u8]) -> FilterTag,
) -> Result<Vec<FilterTag>> {
    let Some(fields) = Record::read(record)?.metadata else { return Ok(Vec::new()) };
    let value = |name: &String| Value::read(fields.0.get(name.as_str())?).canonical();
    Ok(filterable.iter().filter_map(|name| Some(tag(name, &value(name)?))).collect())
}
