//! Reads and checks the frame of a change, in pieces of any size.
//!
//! `CVCHANGE | version u32 | JSON length u32 | JSON | blobs back to back`. Every length is compared
//! with what the body may hold before anything is allocated for it, and memory grows with the bytes
//! that came, not with those that were promised.

use crate::hex;
use crate::json_limits::{Few, Object, RowLists};
use ciphervec::store::{Change, NewSegment, SegmentId};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// The first eight bytes.
pub const MAGIC: [u8; 8] = *b"CVCHANGE";
/// The newest version of the frame.
pub const VERSION: u32 = 1;
/// The longest JSON part.
pub const MAX_JSON: u32 = 8 << 20;
/// The most segments that one change adds.
pub const MAX_SEGMENTS: usize = 4096;
const HEAD_LEN: usize = 16;
/// A blob's buffer starts at most this large and doubles from there.
const FIRST_PIECE: usize = 64 << 10;

/// A frame that is refused.
#[non_exhaustive]
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ChangeError {
    /// Not a change frame.
    #[error("the body does not start with CVCHANGE; send a change frame")]
    Magic,
    /// Written by a later release.
    #[error("change frame version {0} came, this server reads {VERSION}; upgrade the server")]
    Version(u32),
    /// More than a request may carry.
    #[error(
        "{what} of {actual} bytes, at most {limit} are taken; send large blobs as uploads, or split the change"
    )]
    TooLarge {
        /// The part.
        what: &'static str,
        /// What was announced.
        actual: u64,
        /// What is taken.
        limit: u64,
    },
    /// The JSON part is not what it must be.
    #[error("the JSON part of the change frame: {0}")]
    Json(String),
    /// The body and its announcement differ.
    #[error("the change frame announces {expected} bytes, the body has {actual}")]
    Length {
        /// What head and JSON add up to.
        expected: u64,
        /// What came.
        actual: u64,
    },
    /// An entry that is neither inline nor an upload.
    #[error("blob {0:?}: \"upload\" and \"blake3\" go together, both or neither")]
    Upload(String),
    /// What an upload brought is not what the frame names.
    #[error("blob {name:?}: {detail}")]
    Content {
        /// The blob.
        name: String,
        /// How they differ.
        detail: String,
    },
    /// A creation that would do more than create.
    #[error("a collection is created with meta and attachments only; {0}")]
    Creation(&'static str),
}

/// A blob that was uploaded beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadRef {
    /// The upload's name.
    pub upload: [u8; 16],
    /// BLAKE3 of all of it.
    pub blake3: [u8; 32],
    /// Its length.
    pub length: u64,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Description {
    add: Few<Object<Segment>, MAX_SEGMENTS>,
    remove: Few<Hex<16>, 65_536>,
    delete_rows: RowLists,
    meta: Option<Object<Meta>>,
    attachments: Few<Object<Blob>, 64>,
    drop_attachments: Few<String, 64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Segment {
    id: Hex<16>,
    rows: u32,
    blobs: Few<Object<Blob>, 16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    length: u64,
    upload: Option<Hex<16>>,
    blake3: Option<Hex<32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Blob {
    name: String,
    length: u64,
    upload: Option<Hex<16>>,
    blake3: Option<Hex<32>>,
}

struct Hex<const N: usize>([u8; N]);

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let parsed = hex::parse(&text).map(Hex);
        parsed.ok_or_else(|| D::Error::custom(format!("{} lower-case hex digits expected", 2 * N)))
    }
}

/// Where the bytes of one blob are.
enum Source {
    Inline(Vec<u8>),
    Upload(UploadRef),
}

struct Part {
    name: String,
    length: u64,
    source: Source,
}

impl Part {
    fn new(
        name: &str,
        length: u64,
        upload: Option<&Hex<16>>,
        blake3: Option<&Hex<32>>,
    ) -> Result<Self, ChangeError> {
        let source = match (upload, blake3) {
            (None, None) => Source::Inline(Vec::new()),
            (Some(upload), Some(blake3)) => {
                Source::Upload(UploadRef { upload: upload.0, blake3: blake3.0, length })
            }
            _ => return Err(ChangeError::Upload(name.to_owned())),
        };
        Ok(Part { name: name.to_owned(), length, source })
    }
}

/// A whole frame whose uploads are still to be read.
pub struct Frame {
    description: Description,
    parts: Vec<Part>,
}

impl Frame {
    /// Reads a whole frame at once.
    ///
    /// # Errors
    /// As [`Decoder::push`] and [`Decoder::finish`].
    pub fn from_bytes(bytes: &[u8], limit: u64) -> Result<Self, ChangeError> {
        let mut decoder = Decoder::new(limit, Some(bytes.len() as u64));
        decoder.push(bytes)?;
        decoder.finish()
    }

    /// The uploads that the frame refers to, in its order.
    pub fn uploads(&self) -> impl Iterator<Item = &UploadRef> {
        self.parts.iter().filter_map(|part| match &part.source {
            Source::Inline(_) => None,
            Source::Upload(upload) => Some(upload),
        })
    }

    /// Bytes of all uploads that the frame refers to.
    pub fn uploaded_bytes(&self) -> u64 {
        self.uploads().fold(0, |sum, upload| sum.saturating_add(upload.length))
    }

    /// The change, with what `read` returns for every upload; its length and BLAKE3 are compared
    /// with those the frame names.
    ///
    /// # Errors
    /// Those of `read`; [`ChangeError::Content`] where an upload is not what the frame names.
    pub fn into_change<E: From<ChangeError>>(
        self,
        mut read: impl FnMut(&UploadRef) -> Result<Vec<u8>, E>,
    ) -> Result<Change, E> {
        let mut contents = Vec::with_capacity(self.parts.len());
        for part in self.parts {
            let bytes = match part.source {
                Source::Inline(bytes) => bytes,
                Source::Upload(upload) => {
                    let bytes = read(&upload)?;
                    check_upload(&part.name, &upload, &bytes)?;
                    bytes
                }
            };
            contents.push((part.name, bytes));
        }
        let mut contents = contents.into_iter();
        let description = self.description;
        let add = description.add.0.into_iter().map(|Object(segment)| NewSegment {
            id: segment.id.0,
            rows: segment.rows,
            blobs: contents.by_ref().take(segment.blobs.0.len()).collect(),
        });
        Ok(Change {
            add: add.collect(),
            remove: description.remove.0.into_iter().map(|id| id.0).collect::<Vec<SegmentId>>(),
            delete_rows: description.delete_rows.0,
            set_meta: description.meta.and_then(|_| contents.next()).map(|(_, bytes)| bytes),
            attachments: contents.collect(),
            drop_attachments: description.drop_attachments.0,
        })
    }
}

fn check_upload(name: &str, upload: &UploadRef, bytes: &[u8]) -> Result<(), ChangeError> {
    let refused = |detail| Err(ChangeError::Content { name: name.to_owned(), detail });
    if bytes.len() as u64 != upload.length {
        return refused(format!(
            "{} bytes announced, the upload has {}",
            upload.length,
            bytes.len()
        ));
    }
    if *blake3::hash(bytes).as_bytes() != upload.blake3 {
        return refused(
            "the upload's BLAKE3 is another than the one announced; upload it again".into(),
        );
    }
    Ok(())
}

/// What a new collection starts with: meta and attachments.
pub type Creation = (Vec<u8>, Vec<(String, Vec<u8>)>);

/// What a new collection starts with.
///
/// # Errors
/// [`ChangeError::Creation`] if the change does anything else.
pub fn creation(change: Change) -> Result<Creation, ChangeError> {
    let Change { add, remove, delete_rows, set_meta, attachments, drop_attachments } = change;
    if !add.is_empty()
        || !remove.is_empty()
        || !delete_rows.is_empty()
        || !drop_attachments.is_empty()
    {
        return Err(ChangeError::Creation("send segments and removals with a commit afterwards"));
    }
    let meta = set_meta.ok_or(ChangeError::Creation("meta is missing"))?;
    Ok((meta, attachments))
}

enum Stage {
    Head,
    Json(usize),
    Blobs,
}

/// Reads a frame as its bytes arrive.
pub struct Decoder {
    limit: u64,
    body_length: Option<u64>,
    received: u64,
    stage: Stage,
    buffer: Vec<u8>,
    description: Description,
    parts: Vec<Part>,
    current: usize,
    expected: u64,
}

impl Decoder {
    /// For a body of at most `limit` bytes, or of exactly `body_length` where the sender said so.
    pub fn new(limit: u64, body_length: Option<u64>) -> Self {
        Decoder {
            limit,
            body_length,
            received: 0,
            stage: Stage::Head,
            buffer: Vec::new(),
            description: Description::default(),
            parts: Vec::new(),
            current: 0,
            expected: HEAD_LEN as u64,
        }
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    /// [`ChangeError`]: nothing more is to be pushed afterwards.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), ChangeError> {
        self.received = self.received.saturating_add(bytes.len() as u64);
        loop {
            match self.stage {
                Stage::Head => {
                    if !self.fill(&mut bytes, HEAD_LEN) {
                        return Ok(());
                    }
                    self.stage = Stage::Json(self.open_head()?);
                    self.buffer.clear();
                }
                Stage::Json(length) => {
                    if !self.fill(&mut bytes, length) {
                        return Ok(());
                    }
                    self.open_json()?;
                    self.buffer = Vec::new();
                    self.stage = Stage::Blobs;
                }
                Stage::Blobs => return self.fill_blobs(bytes),
            }
        }
    }

    /// The whole frame.
    ///
    /// # Errors
    /// [`ChangeError::Length`] if bytes are missing.
    pub fn finish(self) -> Result<Frame, ChangeError> {
        let whole = matches!(self.stage, Stage::Blobs) && self.received == self.expected;
        if !whole {
            return Err(ChangeError::Length { expected: self.expected, actual: self.received });
        }
        Ok(Frame { description: self.description, parts: self.parts })
    }

    /// Moves bytes into the buffer until it holds `length`; whether it does.
    fn fill(&mut self, bytes: &mut &[u8], length: usize) -> bool {
        let (now, rest) = bytes.split_at(bytes.len().min(length - self.buffer.len()));
        append(&mut self.buffer, now, length);
        *bytes = rest;
        self.buffer.len() == length
    }

    fn open_head(&mut self) -> Result<usize, ChangeError> {
        let word = |at: usize| {
            let bytes = self.buffer.get(at..at + 4).and_then(|word| word.try_into().ok());
            u32::from_le_bytes(bytes.unwrap_or_default())
        };
        if !self.buffer.starts_with(&MAGIC) {
            return Err(ChangeError::Magic);
        }
        let (version, length) = (word(8), word(12));
        if version != VERSION {
            return Err(ChangeError::Version(version));
        }
        let limit = self.limit.min(u64::from(MAX_JSON));
        self.announce("a JSON part", u64::from(length), limit)?;
        Ok(length as usize)
    }

    fn open_json(&mut self) -> Result<(), ChangeError> {
        let refused = |error: serde_json::Error| ChangeError::Json(error.to_string());
        let Object(description): Object<Description> =
            serde_json::from_slice(&self.buffer).map_err(refused)?;
        let mut parts = Vec::new();
        for Object(segment) in &description.add.0 {
            for Object(blob) in &segment.blobs.0 {
                parts.push(Part::new(
                    &blob.name,
                    blob.length,
                    blob.upload.as_ref(),
                    blob.blake3.as_ref(),
                )?);
            }
        }
        if let Some(Object(meta)) = &description.meta {
            parts.push(Part::new("meta", meta.length, meta.upload.as_ref(), meta.blake3.as_ref())?);
        }
        for Object(blob) in &description.attachments.0 {
            parts.push(Part::new(
                &blob.name,
                blob.length,
                blob.upload.as_ref(),
                blob.blake3.as_ref(),
            )?);
        }
        for part in &parts {
            if let Source::Inline(_) = part.source {
                self.announce("a change", part.length, self.limit)?;
            }
        }
        if let Some(actual) = self.body_length
            && actual != self.expected
        {
            return Err(ChangeError::Length { expected: self.expected, actual });
        }
        self.description = description;
        self.parts = parts;
        Ok(())
    }

    /// Adds `length` to what the body must hold.
    fn announce(&mut self, what: &'static str, length: u64, limit: u64) -> Result<(), ChangeError> {
        self.expected = self.expected.saturating_add(length);
        if length > limit || self.expected > self.limit {
            let actual = if length > limit { length } else { self.expected };
            return Err(ChangeError::TooLarge { what, actual, limit });
        }
        Ok(())
    }

    fn fill_blobs(&mut self, mut bytes: &[u8]) -> Result<(), ChangeError> {
        while let Some(part) = self.parts.get_mut(self.current) {
            if let Source::Inline(body) = &mut part.source {
                // A limit that fits the address space is what `announce` compared with.
                let length = part.length as usize;
                let (now, rest) = bytes.split_at(bytes.len().min(length - body.len()));
                append(body, now, length);
                bytes = rest;
                if body.len() < length {
                    return Ok(());
                }
            }
            self.current += 1;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        Err(ChangeError::Length { expected: self.expected, actual: self.received })
    }
}

/// Appends to a buffer that will hold `length` bytes, without reserving more than about twice what
/// came.
fn append(buffer: &mut Vec<u8>, bytes: &[u8], length: usize) {
    let free = buffer.capacity() - buffer.len();
    if free < bytes.len() {
        let step = buffer.len().max(FIRST_PIECE).max(bytes.len());
        buffer.reserve_exact(step.min(length - buffer.len()));
    }
    buffer.extend_from_slice(bytes);
}

// A fuzz target compiles this file alone, where the path would be another.
#[cfg(test)]
#[path = "change/tests.rs"]
mod tests;
