//! Wrapped key files, for owners whose wrapping key is kept by a service or a device: the master key lies under a *file key*,
//! and that one, wrapped, beside the URI of what wrapped it. Key owner only.
//!
//! Kind 7 of `CVKEYFIL`: magic | version u32 | 7 | zeros, 3 bytes | key id 16 | URI: u16 and UTF-8, 1 to 1,024 bytes | wrapped
//! file key: u16 and 1 to 16,384 bytes | XChaCha20-Poly1305 nonce, master, tag | BLAKE3 of all before.
//!
//! All before the nonce is authenticated under the file key, so that nobody without it can exchange URI, key id or wrapped file
//! key. A file key is drawn for one file and never used again: what wraps it never sees the master, and its plaintext is worth
//! nothing without the file.

use crate::decode::{DecodeError, Reader, hex};
use crate::protect::aead::{AeadKey, EnvelopeError, OVERHEAD, random};
use crate::protect::keyfile::{self, Head, KeyfileError, WHAT, WRAPPED};
use std::path::Path;
use zeroize::Zeroizing;

const MASTER: usize = 32;
/// Longest URI, in bytes.
pub const MAX_URI: usize = 1024;
/// Longest wrapped file key, in bytes: an age file for a hundred recipients, far more than a service's.
pub const MAX_WRAPPED: usize = 1 << 14;

/// The key of one file. Wiped on drop.
pub struct FileKey(Zeroizing<[u8; 32]>);

impl FileKey {
    /// A new one from the operating system's generator.
    ///
    /// # Errors
    /// [`KeyfileError::Envelope`] when the system gives no randomness.
    pub fn generate() -> Result<Self, KeyfileError> {
        let mut key = Zeroizing::new([0; 32]);
        random(key.as_mut_slice()).map_err(KeyfileError::Envelope)?;
        Ok(FileKey(key))
    }

    /// What was unwrapped; none if it is no key of 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        <[u8; 32]>::try_from(bytes).ok().map(|key| FileKey(Zeroizing::new(key)))
    }

    pub(super) fn derived(key: [u8; 32]) -> Self {
        FileKey(Zeroizing::new(key))
    }

    /// What is to be wrapped.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    fn aead(&self) -> AeadKey {
        AeadKey::new(*self.0)
    }

    /// These 32 bytes sealed under a wrapping key that lies on this machine.
    ///
    /// # Errors
    /// [`EnvelopeError::Randomness`].
    pub fn wrap(&self, wrapping: &FileKey, context: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
        wrapping.aead().seal(WHAT, context, self.expose())
    }

    /// Opens what [`Self::wrap`] made.
    ///
    /// # Errors
    /// [`EnvelopeError::Unauthentic`] under another wrapping key or context.
    pub fn unwrap(
        wrapped: &[u8],
        wrapping: &FileKey,
        context: &[u8],
    ) -> Result<Self, EnvelopeError> {
        let plain = wrapping.aead().open(WHAT, context, wrapped)?;
        Self::from_bytes(&plain).ok_or(EnvelopeError::Unauthentic { what: WHAT })
    }
}

/// The bytes of a wrapped key file, checked as far as they can be without the file key.
pub struct WrappedFile {
    key_id: [u8; 16],
    uri: String,
    wrapped: Vec<u8>,
    /// What the master is bound to.
    head: Vec<u8>,
    body: Vec<u8>,
}

impl WrappedFile {
    /// A file for `master`: `wrapped` is what the holder of the key at `uri` made of `file_key`.
    ///
    /// # Errors
    /// [`KeyfileError::Damaged`] for a URI or a wrapped key outside its limits; [`KeyfileError::Envelope`].
    pub fn seal(
        master: &[u8; MASTER],
        key_id: &[u8; 16],
        uri: &str,
        file_key: &FileKey,
        wrapped: &[u8],
    ) -> Result<Self, KeyfileError> {
        expect_uri(uri)?;
        if !(1..=MAX_WRAPPED).contains(&wrapped.len()) {
            return Err(length("wrapped file key", MAX_WRAPPED, wrapped.len()).into());
        }
        let mut head = Vec::with_capacity(36 + uri.len() + wrapped.len());
        keyfile::begin(&mut head, WRAPPED, [0; 3], key_id);
        head.extend_from_slice(&(uri.len() as u16).to_le_bytes());
        head.extend_from_slice(uri.as_bytes());
        head.extend_from_slice(&(wrapped.len() as u16).to_le_bytes());
        head.extend_from_slice(wrapped);
        let body = file_key.aead().seal(WHAT, &head, master).map_err(KeyfileError::Envelope)?;
        let (uri, wrapped) = (uri.to_owned(), wrapped.to_vec());
        Ok(WrappedFile { key_id: *key_id, uri, wrapped, head, body })
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`KeyfileError::Damaged`], [`KeyfileError::Checksum`].
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyfileError> {
        let Head { kind, numbers, key_id, mut reader } = keyfile::head(bytes)?;
        if (kind, numbers) != (WRAPPED, [0; 3]) {
            let actual = format!("{kind}, {numbers:?}");
            return Err(reader.field("kind", 12, "7 and three zeros", actual).into());
        }
        let found = reader.u16()?;
        let (at, text) = (reader.offset(), reader.take(found.into())?);
        let uri = core::str::from_utf8(text)
            .map_err(|_| reader.field("URI", at, "UTF-8", "other bytes"))?;
        expect_uri(uri)?;
        let found = usize::from(reader.u16()?);
        if !(1..=MAX_WRAPPED).contains(&found) {
            return Err(length("wrapped file key", MAX_WRAPPED, found).into());
        }
        let wrapped = reader.take(found)?.to_vec();
        let head = bytes[..bytes.len() - reader.remaining()].to_vec();
        let body = reader.take(MASTER + OVERHEAD)?.to_vec();
        keyfile::expect_end(reader, bytes)?;
        Ok(WrappedFile { key_id, uri: uri.to_owned(), wrapped, head, body })
    }

    /// Reads the file at `path`; none if it is a key file of another kind.
    ///
    /// # Errors
    /// [`KeyfileError::NotFound`], [`KeyfileError::Io`], and the cases of [`Self::parse`].
    pub fn read(path: &Path) -> Result<Option<Self>, KeyfileError> {
        Self::of(&keyfile::read(path)?)
    }

    /// As [`Self::parse`]; none for a key file of another kind.
    ///
    /// # Errors
    /// Those of [`Self::parse`].
    pub fn of(bytes: &[u8]) -> Result<Option<Self>, KeyfileError> {
        let wrapped = keyfile::head(bytes)?.kind == WRAPPED;
        wrapped.then(|| Self::parse(bytes)).transpose()
    }

    /// The public name of the master key, in full.
    pub fn key_id(&self) -> &[u8; 16] {
        &self.key_id
    }

    /// What names the wrapping key. Not vouched for before [`Self::open`].
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The wrapped file key, for the holder of the wrapping key.
    pub fn wrapped(&self) -> &[u8] {
        &self.wrapped
    }

    /// The master. The caller compares the id with the one that the master gives.
    ///
    /// # Errors
    /// [`KeyfileError::WrongFileKey`].
    pub fn open(&self, file_key: &FileKey) -> Result<Zeroizing<[u8; MASTER]>, KeyfileError> {
        let wrong =
            || KeyfileError::WrongFileKey { key_id: hex(&self.key_id[..8]), uri: self.uri.clone() };
        let plain = file_key.aead().open(WHAT, &self.head, &self.body).map_err(|_| wrong())?;
        let mut master = Zeroizing::new([0; MASTER]);
        if plain.len() != MASTER {
            return Err(wrong());
        }
        master.copy_from_slice(&plain);
        Ok(master)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = [self.head.as_slice(), &self.body].concat();
        keyfile::end(&mut out);
        out
    }

    /// Writes the file: mode 0600, fsynced, all at once. An existing file is replaced only with `overwrite`.
    ///
    /// # Errors
    /// [`KeyfileError::Exists`], [`KeyfileError::Io`]. The old file is untouched by any error.
    pub fn save(&self, path: &Path, overwrite: bool) -> Result<(), KeyfileError> {
        keyfile::place(path, overwrite, || Ok(Zeroizing::new(self.to_bytes())))
    }
}

/// A URI that can be printed in one line, and no secret by its length.
fn expect_uri(uri: &str) -> Result<(), DecodeError> {
    if !(1..=MAX_URI).contains(&uri.len()) {
        return Err(length("URI", MAX_URI, uri.len()));
    }
    if uri.chars().any(char::is_control) {
        let reader = Reader::new(WHAT, &[]);
        return Err(reader.field("URI", 34, "no control characters", "some"));
    }
    Ok(())
}

fn length(field: &'static str, most: usize, found: usize) -> DecodeError {
    Reader::new(WHAT, &[]).field(field, 32, format!("1 to {most} bytes"), found)
}
