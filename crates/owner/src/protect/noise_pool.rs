//! Precomputed noise in an encrypted file, which one process takes once. Key owner only.
//!
//! `CVNOISEP` | version u32 | key id, 8 bytes | XChaCha20-Poly1305 nonce, frame of the pool, tag.
//! All before the nonce is authenticated.
//!
//! An element of a pool that is used twice shows the difference of two messages, so a file is taken
//! as a whole: [`claim`] moves it to a name of its own, which only one process can do, removes it
//! durably, and only then hands out the pool. A crash in between loses elements and repeats none.
//! What is left of a pool is saved as a new file. Copies of a file, as a backup makes them, are
//! beyond this: do not back pools up, they can be made again.

use crate::decode::hex;
use crate::protect::aead::{AeadKey, EnvelopeError, OVERHEAD, associated_data, random};
use ciphervec_he_secret::factoring::{NoisePool, NoiseSource};
use ciphervec_he_secret::wire::KeyId;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"CVNOISEP";
const VERSION: u32 = 1;
const WHAT: &str = "noise pool";
const HEADER: usize = 20;

/// Why a pool could not be saved or claimed. None of these uses an element up.
#[non_exhaustive]
#[derive(thiserror::Error, Debug)]
pub enum NoisePoolError {
    /// There is no such file, or another process claimed it.
    #[error("no noise pool at {}: it was never filled or is claimed already; run `ciphervec \
        precompute`", path.display())]
    NotFound {
        /// Where.
        path: PathBuf,
    },
    /// A pool is never overwritten: claim it and fill it up instead.
    #[error("{} exists; claim that pool and save it again, or choose another name", path.display())]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// The system refused an operation.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The bytes are not a pool that this release reads.
    #[error("{} is not a noise pool: {detail}; remove it and fill a new one", path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What was expected and what came.
        detail: String,
    },
    /// The pool is sealed under another secret, or was changed.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The pool belongs to another key, or what it holds cannot be noise.
    #[error(transparent)]
    Scheme(#[from] ciphervec_he_secret::Error),
}

/// The key that seals pools, from a secret that the holder has anyway: the frame of a secret key,
/// or another of 32 random bytes or more.
pub fn sealing_key(secret: &[u8]) -> AeadKey {
    AeadKey::new(blake3::derive_key("ciphervec v1 noise-pool", secret))
}

/// Writes a pool: mode 0600 from the first byte on, fsynced, in place all at once. The pool is gone
/// from memory.
///
/// # Errors
/// [`NoisePoolError::Exists`], [`NoisePoolError::Io`]; the pool is lost then, which costs time and
/// nothing else.
pub fn save(
    path: &Path,
    pool: NoisePool,
    key: &(impl NoiseSource + ?Sized),
    sealing: &AeadKey,
) -> Result<(), NoisePoolError> {
    let head = header(pool.key_id());
    let frame = pool.into_bytes(key)?;
    let mut bytes = Vec::with_capacity(HEADER + frame.len() + OVERHEAD);
    bytes.extend_from_slice(&head);
    sealing.seal_into(WHAT, &place(&head), &frame, &mut bytes)?;
    let temporary = sibling(path, "tmp")?;
    let written = write_private(&temporary, &bytes).and_then(|()| {
        // A link, unlike a rename, fails when there is a file of that name.
        fs::hard_link(&temporary, path).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => NoisePoolError::Exists { path: path.to_owned() },
            _ => failed("create", path, source),
        })
    });
    let _ = fs::remove_file(&temporary);
    written?;
    sync_folder_of(path)
}

/// Takes a pool out of its file, which is gone afterwards. A wrong secret or a damaged file leaves
/// it where it is.
///
/// # Errors
/// [`NoisePoolError::NotFound`] when there is none or another process was faster; the other cases
/// of [`NoisePoolError`].
pub fn claim(
    path: &Path,
    key: &(impl NoiseSource + ?Sized),
    sealing: &AeadKey,
) -> Result<NoisePool, NoisePoolError> {
    // Once before the file is touched, so that a wrong secret costs no pool.
    open(path, &read(path)?, key, sealing)?;
    let taken = sibling(path, "claimed")?;
    fs::rename(path, &taken).map_err(|source| match source.kind() {
        ErrorKind::NotFound => NoisePoolError::NotFound { path: path.to_owned() },
        _ => failed("claim", path, source),
    })?;
    // And once more now that it is ours alone: it may have been replaced meanwhile.
    let bytes = read(&taken)?;
    fs::remove_file(&taken).map_err(|source| failed("remove", &taken, source))?;
    sync_folder_of(path)?;
    open(path, &bytes, key, sealing)
}

fn header(key: KeyId) -> [u8; HEADER] {
    let mut head = [0; HEADER];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..].copy_from_slice(&key.0);
    head
}

fn place(head: &[u8]) -> Vec<u8> {
    associated_data("ciphervec v1 noise-pool", &[head])
}

fn open(
    path: &Path,
    bytes: &[u8],
    key: &(impl NoiseSource + ?Sized),
    sealing: &AeadKey,
) -> Result<NoisePool, NoisePoolError> {
    let damaged = |detail: String| NoisePoolError::Damaged { path: path.to_owned(), detail };
    let Some((head, sealed)) = bytes.split_at_checked(HEADER) else {
        return Err(damaged(format!("{HEADER} bytes expected, {} came", bytes.len())));
    };
    if head[..8] != *MAGIC {
        return Err(damaged("it does not start with CVNOISEP".to_owned()));
    }
    let version = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    if version != VERSION {
        return Err(damaged(format!("version {VERSION} expected, {version} came")));
    }
    let expected = NoisePool::new(key).key_id();
    let mut actual = KeyId::default();
    actual.0.copy_from_slice(&head[12..]);
    if actual != expected {
        let what = "a noise pool";
        return Err(ciphervec_he_secret::Error::WrongKey { what, expected, actual }.into());
    }
    let frame = sealing.open(WHAT, &place(head), sealed)?;
    Ok(NoisePool::from_bytes(key, &frame)?)
}

fn read(path: &Path) -> Result<Vec<u8>, NoisePoolError> {
    fs::read(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => NoisePoolError::NotFound { path: path.to_owned() },
        _ => failed("read", path, source),
    })
}

/// A new name beside `path`.
fn sibling(path: &Path, ending: &str) -> Result<PathBuf, NoisePoolError> {
    let mut suffix = Zeroizing::new([0; 8]);
    random(&mut *suffix)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.{ending}", hex(&*suffix)));
    Ok(path.with_file_name(name))
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<(), NoisePoolError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = |mut file: File| file.write_all(bytes).and_then(|()| file.sync_all());
    options.open(path).and_then(write).map_err(|source| failed("write", path, source))
}

/// Makes names durable; only Unix lets a program fsync a folder.
fn sync_folder_of(path: &Path) -> Result<(), NoisePoolError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| failed("fsync", folder, source))?;
    }
    Ok(())
}

fn failed(operation: &'static str, path: &Path, source: io::Error) -> NoisePoolError {
    NoisePoolError::Io { operation, path: path.to_owned(), source }
}
