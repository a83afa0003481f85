//! The owner's master key: made, split, derived for a tenant or a collection, and written to key files and recovery phrases.

use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::protect::keyfile::{self, Protection};
use crate::protect::passkey::{self, Question};
use crate::protect::phrase;
use crate::protect::shares::{self, Share};
use crate::protect::wrapped::{FileKey, WrappedFile};
use ciphervec_he_secret::keys::{MasterKey, Purpose};
use ciphervec_he_secret::wire::KeyId;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of the longest name that keys are derived for.
const MOST_NAME: usize = 255;

/// A master key: 32 bytes that every secret of every collection is derived from.
///
/// Cloning is not offered; [`crate::search::Owner`] shares it by reference count.
pub struct Keys {
    pub(crate) master: Arc<MasterKey>,
}

impl core::fmt::Debug for Keys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Keys({}, redacted)", self.key_id())
    }
}

impl Keys {
    /// Fresh keys from the operating system's generator.
    ///
    /// # Errors
    /// If the generator fails.
    pub fn generate() -> Result<Self> {
        Ok(Keys { master: Arc::new(MasterKey::generate()?) })
    }

    /// Keys from their 32 bytes.
    pub fn from_master(bytes: [u8; 32]) -> Self {
        Keys { master: Arc::new(MasterKey::from_bytes(bytes)) }
    }

    /// The publicly known key that mode `open` uses where a key is asked for: it protects nothing.
    pub fn public() -> Self {
        Self::from_master([0; 32])
    }

    /// The 32 bytes as 24 words to write down: see [`phrase`].
    pub fn recovery_phrase(&self) -> Zeroizing<String> {
        phrase::encode(self.master.expose())
    }

    /// Keys from those words.
    ///
    /// # Errors
    /// [`Error::Phrase`], naming the word that is unknown.
    pub fn from_recovery_phrase(words: &str) -> Result<Self> {
        Ok(Self::from_master(*phrase::decode(words)?))
    }

    /// The public name of these keys.
    pub fn key_id(&self) -> KeyId {
        self.master.key_id()
    }

    /// The keys of a tenant, to be handed out alone: they open what is sealed under them, and nothing else. They are a function of
    /// these keys and the name, so that there is nothing to keep, and nothing to destroy as long as these are there.
    ///
    /// # Errors
    /// [`Error::Range`] for a name that has not 1 to 255 bytes.
    pub fn for_tenant(&self, name: &str) -> Result<Self> {
        self.derived(Purpose::Tenant, "a tenant's name", name)
    }

    /// The keys of one collection, in the same way.
    ///
    /// # Errors
    /// As [`Self::for_tenant`].
    pub fn for_collection(&self, name: &str) -> Result<Self> {
        self.derived(Purpose::Collection, "a collection's name", name)
    }

    fn derived(&self, purpose: Purpose, what: &'static str, name: &str) -> Result<Self> {
        if !(1..=MOST_NAME).contains(&name.len()) {
            return Err(Error::Range {
                what,
                expected: format!("1 to {MOST_NAME} bytes"),
                actual: name.len().to_string(),
            });
        }
        Ok(Keys { master: Arc::new(self.master.subkey(purpose, name)) })
    }

    /// Whether they are the same keys, all 32 bytes of them, in a time that says nothing about either.
    pub fn same(&self, other: &Self) -> bool {
        self.master.same(&other.master)
    }

    /// The bytes of a key file, encrypted under `passphrase`, or in the clear if there is none.
    ///
    /// # Errors
    /// [`Error::Keyfile`].
    pub fn to_file_bytes(&self, passphrase: Option<&str>) -> Result<Zeroizing<Vec<u8>>> {
        let protection = passphrase.map_or(Protection::Plaintext, Protection::Passphrase);
        Ok(keyfile::encode(self.master.expose(), &self.master.fingerprint(), protection)?)
    }

    /// Reads the bytes of a key file.
    ///
    /// # Errors
    /// [`Error::Keyfile`]: a wrong passphrase, damage.
    pub fn from_file_bytes(bytes: &[u8], passphrase: Option<&str>) -> Result<Self> {
        Self::checked(keyfile::decode(bytes, passphrase)?)
    }

    /// Writes a key file, encrypted under `passphrase`, or in the clear if there is none. An existing file is never
    /// overwritten.
    ///
    /// # Errors
    /// [`Error::Keyfile`].
    pub fn save(&self, path: &Path, passphrase: Option<&str>) -> Result<()> {
        let protection = passphrase.map_or(Protection::Plaintext, Protection::Passphrase);
        keyfile::save(path, self.master.expose(), &self.master.fingerprint(), protection, false)?;
        Ok(())
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`Error::Keyfile`]: no such file, a wrong passphrase, damage.
    pub fn load(path: &Path, passphrase: Option<&str>) -> Result<Self> {
        Self::checked(keyfile::load(path, passphrase)?)
    }

    /// The same in a file under `file_key`, which the holder of the key at `uri` wrapped.
    ///
    /// # Errors
    /// [`Error::Keyfile`].
    pub fn wrapped(&self, uri: &str, file_key: &FileKey, wrapped: &[u8]) -> Result<WrappedFile> {
        let fingerprint = self.master.fingerprint();
        Ok(WrappedFile::seal(self.master.expose(), &fingerprint, uri, file_key, wrapped)?)
    }

    /// The keys in a wrapped file, once its file key was unwrapped.
    ///
    /// # Errors
    /// [`Error::Keyfile`] for another file key; another key than the file names.
    pub fn from_wrapped(file: &WrappedFile, file_key: &FileKey) -> Result<Self> {
        Self::checked((file.open(file_key)?, *file.key_id()))
    }

    /// The bytes of a key file that a passkey opens, which gave `output` for the salt.
    ///
    /// # Errors
    /// [`Error::Keyfile`].
    pub fn to_passkey_bytes(&self, question: &Question, output: &[u8; 32]) -> Result<Vec<u8>> {
        let (uri, file_key, wrapped) = passkey::wrap(question, output)?;
        Ok(self.wrapped(&uri, &file_key, &wrapped)?.to_bytes())
    }

    /// The keys in such a file. `output` is what the passkey gave for [`Question::of`] it.
    ///
    /// # Errors
    /// [`Error::Keyfile`]: another output, damage, a file of another sort.
    pub fn from_passkey_bytes(bytes: &[u8], output: &[u8; 32]) -> Result<Self> {
        let file = WrappedFile::parse(bytes)?;
        Self::from_wrapped(&file, &passkey::unwrap(&file, output)?)
    }

    /// These keys in `of` shares, any `need` of which give them back.
    ///
    /// # Errors
    /// [`Error::Share`].
    pub fn split(&self, need: u8, of: u8) -> Result<Vec<Share>> {
        Ok(shares::split(self.master.expose(), &self.master.fingerprint(), need, of)?)
    }

    /// The keys that shares give.
    ///
    /// # Errors
    /// [`Error::Share`]: too few, of different splits, changed.
    pub fn combine(given: &[&Share]) -> Result<Self> {
        let (master, fingerprint) = shares::combine(given)?;
        let keys = Keys::from_master(*master);
        match given.first() {
            Some(first) if keys.master.fingerprint() != fingerprint => {
                Err(shares::other_key(first).into())
            }
            _ => Ok(keys),
        }
    }

    /// Keys as a file has them, if the id beside them is theirs.
    fn checked((bytes, fingerprint): (Zeroizing<[u8; 32]>, [u8; 16])) -> Result<Self> {
        let keys = Keys::from_master(*bytes);
        if keys.master.fingerprint() != fingerprint {
            return Err(Error::Range {
                what: "the key id in the key file",
                expected: keys.key_id().to_string(),
                actual: IndexSpec::id_text(*fingerprint.first_chunk().unwrap_or(&[0; 8])),
            });
        }
        Ok(keys)
    }

    /// The seed of an index's public masks: derived by the owner, never taken from a server.
    pub(crate) fn mask_seed(&self, spec: &IndexSpec) -> [u8; 32] {
        *self.master.derive(Purpose::MaskSeed, &[&spec.binding(), &spec.param_id().0]).expose()
    }
}
