//! Key files: a secret key under a passphrase, or in the clear where that is asked for. Key owner only.
//!
//! Encrypted, kind 1: `CVKEYFIL` | version u32 | kind u8 | log2 N u8 | r u8 | p u8 | key id, 16
//! bytes in clear, of which the first 8 are the public name | salt, 32 bytes | XChaCha20-Poly1305
//! nonce, master, tag | BLAKE3 of all before. The key is scrypt(passphrase, salt); all before the
//! nonce is authenticated. Plaintext, kind 2: zeros for the parameters, then the master itself
//! instead of salt and ciphertext: whoever reads that file has the key, so writing one must be
//! asked for by name. Kinds 3 and 4 are the same for the secret key of an additively homomorphic scheme, 5 and 6 for a
//! person's pair; their length stands behind the key id, u32. Kind 7 is in [`super::wrapped`], 8 in [`super::shares`].
//!
//! The unkeyed checksum tells a damaged file from a wrong passphrase; it protects nothing by
//! itself.

use crate::decode::{DecodeError, Reader, hex};
use crate::protect::aead::{AeadKey, OVERHEAD, random};
pub use ciphervec::protect::error::{KeyfileError, MAX_LOG_N, MIN_LOG_N, Sort};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"CVKEYFIL";
const VERSION: u32 = 1;
pub(super) const WHAT: &str = "key file";
/// The kinds that a passphrase has nothing to do with.
pub(super) const WRAPPED: u8 = 7;
pub(super) const SHARE: u8 = 8;
const BLOCK_SIZE: u8 = 8;
const PARALLELISM: u8 = 1;
const CHECKSUM: usize = 32;
/// Where the salt or the plaintext master starts; all before is associated data.
const HEADER: usize = 32;
const SALT: usize = 32;
const MASTER: usize = 32;
/// Longest secret key other than a master, in bytes.
pub const MAX_SECRET: usize = 1 << 16;

/// log2 of scrypt's N for new files: 128 MiB and some tenths of a second.
pub const DEFAULT_LOG_N: u8 = 17;

/// How a key is protected at rest.
#[derive(Clone, Copy)]
pub enum Protection<'a> {
    /// Under a passphrase, with log2 N = [`DEFAULT_LOG_N`].
    Passphrase(&'a str),
    /// Under a passphrase, with a chosen log2 N in [`MIN_LOG_N`]..=[`MAX_LOG_N`].
    PassphraseWithCost(&'a str, u8),
    /// Not at all: **whoever can read the file has the key**. For machines whose disk is protected
    /// otherwise.
    Plaintext,
}

const SORTS: [Sort; 3] = [Sort::Master, Sort::Scheme, Sort::Person];

/// The kind byte of a file: odd ones are encrypted.
fn kind_byte(sort: Sort, encrypted: bool) -> u8 {
    2 * (sort as u8) + if encrypted { 1 } else { 2 }
}

/// What a key file says in clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The key id, as given to [`encode`].
    pub key_id: [u8; 16],
    /// What it holds.
    pub sort: Sort,
    /// Whether a passphrase is needed.
    pub encrypted: bool,
    /// log2 of scrypt's N; 0 for a plaintext file.
    pub log_n: u8,
}

/// The bytes of a key file. The buffer is wiped on drop, as a plaintext one holds the key.
///
/// # Errors
/// [`KeyfileError::EmptyPassphrase`], [`KeyfileError::Cost`], [`KeyfileError::Envelope`].
pub fn encode(
    master: &[u8; MASTER],
    key_id: &[u8; 16],
    protection: Protection<'_>,
) -> Result<Zeroizing<Vec<u8>>, KeyfileError> {
    write(master, Sort::Master, key_id, protection)
}

/// The same for the frame of a scheme's secret key, or for a person's pair.
///
/// # Errors
/// As [`encode`]; [`KeyfileError::Damaged`] for more than [`MAX_SECRET`] bytes.
pub fn encode_secret(
    secret: &[u8],
    sort: Sort,
    key_id: &[u8; 16],
    protection: Protection<'_>,
) -> Result<Zeroizing<Vec<u8>>, KeyfileError> {
    if secret.len() > MAX_SECRET {
        return Err(too_long(secret.len()).into());
    }
    write(secret, sort, key_id, protection)
}

fn too_long(length: usize) -> DecodeError {
    let expected = format!("at most {MAX_SECRET}");
    Reader::new(WHAT, &[]).field("secret length", HEADER as u64, expected, length)
}

fn write(
    secret: &[u8],
    sort: Sort,
    key_id: &[u8; 16],
    protection: Protection<'_>,
) -> Result<Zeroizing<Vec<u8>>, KeyfileError> {
    let (passphrase, log_n) = match protection {
        Protection::Passphrase(passphrase) => (Some(passphrase), DEFAULT_LOG_N),
        Protection::PassphraseWithCost(passphrase, log_n) => (Some(passphrase), log_n),
        Protection::Plaintext => (None, 0),
    };
    let cost = if passphrase.is_some() { [log_n, BLOCK_SIZE, PARALLELISM] } else { [0; 3] };
    let room = HEADER + 4 + SALT + secret.len() + OVERHEAD + CHECKSUM;
    let mut out = Zeroizing::new(Vec::with_capacity(room));
    begin(&mut out, kind_byte(sort, passphrase.is_some()), cost, key_id);
    if sort != Sort::Master {
        // At most MAX_SECRET.
        out.extend_from_slice(&(secret.len() as u32).to_le_bytes());
    }
    match passphrase {
        Some(passphrase) => {
            let mut salt = [0; SALT];
            random(&mut salt).map_err(KeyfileError::Envelope)?;
            let key = stretch(passphrase, &salt, log_n)?;
            out.extend_from_slice(&salt);
            let sealed = key.seal(WHAT, &out, secret).map_err(KeyfileError::Envelope)?;
            out.extend_from_slice(&sealed);
        }
        None => out.extend_from_slice(secret),
    }
    end(&mut out);
    Ok(out)
}

/// What every key file begins with.
pub(super) fn begin(out: &mut Vec<u8>, kind: u8, numbers: [u8; 3], key_id: &[u8; 16]) {
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&numbers);
    out.extend_from_slice(key_id);
}

/// What every key file ends with.
pub(super) fn end(out: &mut Vec<u8>) {
    let checksum = blake3::hash(out);
    out.extend_from_slice(checksum.as_bytes());
}

/// What [`begin`] wrote.
pub(super) struct Head<'a> {
    pub kind: u8,
    pub numbers: [u8; 3],
    pub key_id: [u8; 16],
    /// What follows.
    pub reader: Reader<'a>,
}

pub(super) fn head(bytes: &[u8]) -> Result<Head<'_>, DecodeError> {
    let mut reader = Reader::new(WHAT, bytes);
    reader.header(MAGIC, VERSION)?;
    Ok(Head { kind: reader.u8()?, numbers: reader.array()?, key_id: reader.array()?, reader })
}

/// Reads what [`end`] wrote over the bytes that `reader` is at the end of.
pub(super) fn expect_end(mut reader: Reader<'_>, bytes: &[u8]) -> Result<(), KeyfileError> {
    let covered = bytes.len() - reader.remaining();
    let expected: [u8; CHECKSUM] = reader.array()?;
    reader.finish()?;
    let actual = blake3::hash(&bytes[..covered]);
    if actual != expected {
        let (expected, actual) = (hex(&expected), hex(actual.as_bytes()));
        return Err(KeyfileError::Checksum { length: covered, expected, actual });
    }
    Ok(())
}

struct Parsed<'a> {
    label: Label,
    sort: Sort,
    salt: Option<[u8; SALT]>,
    /// What the ciphertext is bound to.
    head: &'a [u8],
    body: &'a [u8],
}

fn parse(bytes: &[u8]) -> Result<Parsed<'_>, KeyfileError> {
    let Head { kind, numbers: cost, key_id, mut reader } = head(bytes)?;
    match kind {
        WRAPPED => return Err(KeyfileError::Wrapped { key_id: hex(&key_id[..8]) }),
        SHARE => return Err(KeyfileError::Share { key_id: hex(&key_id[..8]) }),
        _ => (),
    }
    let encrypted = kind % 2 == 1;
    let Some(sort) = SORTS.into_iter().find(|sort| kind_byte(*sort, encrypted) == kind) else {
        let expected = "1, 3 or 5 (encrypted), 2, 4 or 6 (plaintext), 7 (wrapped), 8 (a share)";
        return Err(reader.field("kind", 12, expected, kind).into());
    };
    let length = if sort == Sort::Master { MASTER } else { reader.u32()? as usize };
    if length > MAX_SECRET {
        return Err(too_long(length).into());
    }
    let salt = if encrypted { Some(reader.array()?) } else { None };
    let head = &bytes[..bytes.len() - reader.remaining()];
    let body = reader.take(if encrypted { length + OVERHEAD } else { length })?;
    expect_end(reader, bytes)?;
    let [log_n, r, p] = cost;
    let reader = Reader::new(WHAT, bytes);
    if encrypted && !(MIN_LOG_N..=MAX_LOG_N).contains(&log_n) {
        return Err(KeyfileError::Cost { actual: log_n });
    }
    let expected = if encrypted { [log_n, BLOCK_SIZE, PARALLELISM] } else { [0; 3] };
    if cost != expected {
        return Err(reader
            .field("scrypt parameters", 13, format!("{expected:?}"), format!("{:?}", [log_n, r, p]))
            .into());
    }
    Ok(Parsed { label: Label { key_id, sort, encrypted, log_n }, sort, salt, head, body })
}

/// What the bytes of a key file say without a passphrase.
///
/// # Errors
/// [`KeyfileError::Damaged`], [`KeyfileError::Checksum`], [`KeyfileError::Cost`].
pub fn label(bytes: &[u8]) -> Result<Label, KeyfileError> {
    Ok(parse(bytes)?.label)
}

/// The master key in the bytes of a key file, and the key id written beside it.
///
/// The caller compares the id with the one that the master gives.
///
/// # Errors
/// [`KeyfileError::WrongPassphrase`] when the file is intact and the passphrase is not its own;
/// [`KeyfileError::OtherKey`] when it holds the key of a scheme; the cases of [`label`];
/// [`KeyfileError::PassphraseNeeded`], [`KeyfileError::NotEncrypted`],
/// [`KeyfileError::EmptyPassphrase`].
pub fn decode(
    bytes: &[u8],
    passphrase: Option<&str>,
) -> Result<(Zeroizing<[u8; MASTER]>, [u8; 16]), KeyfileError> {
    let (plain, key_id) = open(parse(bytes)?, Sort::Master, passphrase)?;
    let mut master = Zeroizing::new([0; MASTER]);
    master.copy_from_slice(&plain);
    Ok((master, key_id))
}

/// The same for what [`encode_secret`] got.
///
/// # Errors
/// As [`decode`]; [`KeyfileError::OtherKey`] when the file holds a key of another sort.
pub fn decode_secret(
    bytes: &[u8],
    sort: Sort,
    passphrase: Option<&str>,
) -> Result<(Zeroizing<Vec<u8>>, [u8; 16]), KeyfileError> {
    open(parse(bytes)?, sort, passphrase)
}

fn open(
    file: Parsed<'_>,
    sort: Sort,
    passphrase: Option<&str>,
) -> Result<(Zeroizing<Vec<u8>>, [u8; 16]), KeyfileError> {
    let Parsed { label: Label { key_id, log_n, .. }, salt, head, body, .. } = file;
    if file.sort != sort {
        return Err(KeyfileError::OtherKey { key_id: hex(&key_id[..8]), sort: file.sort });
    }
    let plain = match (salt, passphrase) {
        (None, None) => Zeroizing::new(body.to_vec()),
        (Some(salt), Some(passphrase)) => {
            let key = stretch(passphrase, &salt, log_n)?;
            let wrong = |_| KeyfileError::WrongPassphrase { key_id: hex(&key_id[..8]) };
            key.open(WHAT, head, body).map_err(wrong)?
        }
        (Some(_), None) => {
            return Err(KeyfileError::PassphraseNeeded { key_id: hex(&key_id[..8]) });
        }
        (None, Some(_)) => return Err(KeyfileError::NotEncrypted { key_id: hex(&key_id[..8]) }),
    };
    Ok((plain, key_id))
}

fn stretch(passphrase: &str, salt: &[u8; SALT], log_n: u8) -> Result<AeadKey, KeyfileError> {
    if passphrase.is_empty() {
        return Err(KeyfileError::EmptyPassphrase);
    }
    let cost = KeyfileError::Cost { actual: log_n };
    if !(MIN_LOG_N..=MAX_LOG_N).contains(&log_n) {
        return Err(cost);
    }
    let Ok(params) = scrypt::Params::new(log_n, BLOCK_SIZE.into(), PARALLELISM.into()) else {
        return Err(cost);
    };
    let mut key = Zeroizing::new([0; 32]);
    if scrypt::scrypt(passphrase.as_bytes(), salt, &params, key.as_mut_slice()).is_err() {
        return Err(cost);
    }
    Ok(AeadKey::new(*key))
}

/// Writes a key file: mode 0600 from the first byte on, fsynced, in place all at once. An existing
/// file is replaced only with `overwrite`.
///
/// # Errors
/// [`KeyfileError::Exists`], [`KeyfileError::Io`], and the cases of [`encode`]. The old file is
/// untouched by any error.
pub fn save(
    path: &Path,
    master: &[u8; MASTER],
    key_id: &[u8; 16],
    protection: Protection<'_>,
    overwrite: bool,
) -> Result<(), KeyfileError> {
    place(path, overwrite, || encode(master, key_id, protection))
}

/// The same for a key of another sort.
///
/// # Errors
/// As [`save`], and the cases of [`encode_secret`].
pub fn save_secret(
    path: &Path,
    secret: &[u8],
    sort: Sort,
    key_id: &[u8; 16],
    protection: Protection<'_>,
    overwrite: bool,
) -> Result<(), KeyfileError> {
    place(path, overwrite, || encode_secret(secret, sort, key_id, protection))
}

pub(super) fn place(
    path: &Path,
    overwrite: bool,
    make: impl FnOnce() -> Result<Zeroizing<Vec<u8>>, KeyfileError>,
) -> Result<(), KeyfileError> {
    let exists = || KeyfileError::Exists { path: path.to_owned() };
    if !overwrite && path.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let bytes = make()?;
    let mut suffix = [0; 8];
    random(&mut suffix).map_err(KeyfileError::Envelope)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", hex(&suffix)));
    let temporary = path.with_file_name(name);
    let written = write_private(&temporary, &bytes).and_then(|()| {
        if overwrite {
            fs::rename(&temporary, path).map_err(|source| io_error("rename to", path, source))
        } else {
            // A link, unlike a rename, fails when somebody made the file meanwhile.
            fs::hard_link(&temporary, path).map_err(|source| match source.kind() {
                ErrorKind::AlreadyExists => exists(),
                _ => io_error("create", path, source),
            })
        }
    });
    if !overwrite || written.is_err() {
        // Gone already if it was never created; otherwise a stray file of mode 0600.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_folder_of(path)
}

/// Makes the new name durable; only Unix lets a program fsync a folder.
fn sync_folder_of(path: &Path) -> Result<(), KeyfileError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| io_error("fsync", folder, source))?;
    }
    Ok(())
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<(), KeyfileError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = |mut file: File| file.write_all(bytes).and_then(|()| file.sync_all());
    options.open(path).and_then(write).map_err(|source| io_error("write", path, source))
}

fn io_error(operation: &'static str, path: &Path, source: io::Error) -> KeyfileError {
    KeyfileError::Io { operation, path: path.to_owned(), source }
}

pub(super) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyfileError> {
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::NotFound => KeyfileError::NotFound { path: path.to_owned() },
        _ => io_error("read", path, source),
    };
    let file = File::open(path).map_err(failed)?;
    // One byte more than the longest key file is enough to tell that a file is too long. The buffer
    // has room for all of it from the start: growing would leave a copy behind.
    let limit = HEADER + 4 + SALT + MAX_SECRET + OVERHEAD + CHECKSUM + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(limit));
    io::Read::read_to_end(&mut io::Read::take(file, limit as u64), &mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Reads a key file; as [`decode`].
///
/// # Errors
/// [`KeyfileError::NotFound`], [`KeyfileError::Io`], and the cases of [`decode`].
pub fn load(
    path: &Path,
    passphrase: Option<&str>,
) -> Result<(Zeroizing<[u8; MASTER]>, [u8; 16]), KeyfileError> {
    decode(&read(path)?, passphrase)
}

/// Reads a key file of another sort; as [`decode_secret`].
///
/// # Errors
/// [`KeyfileError::NotFound`], [`KeyfileError::Io`], and the cases of [`decode_secret`].
pub fn load_secret(
    path: &Path,
    sort: Sort,
    passphrase: Option<&str>,
) -> Result<(Zeroizing<Vec<u8>>, [u8; 16]), KeyfileError> {
    decode_secret(&read(path)?, sort, passphrase)
}

/// Reads what a key file says in clear; as [`label`].
///
/// # Errors
/// [`KeyfileError::NotFound`], [`KeyfileError::Io`], and the cases of [`label`].
pub fn load_label(path: &Path) -> Result<Label, KeyfileError> {
    label(&read(path)?)
}
