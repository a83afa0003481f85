//! Key files that a passkey opens, for owners in browsers: an authenticator's PRF extension gives 32 bytes for a salt, and these
//! wrap the file key of a [wrapped file](super::wrapped). Key owner only.
//!
//! URI: `passkey:RP/CREDENTIAL`, the relying party's domain and the id of the credential in hexadecimal. Wrapped file key: salt
//! 32 | XChaCha20-Poly1305 nonce, file key, tag, under the BLAKE3 derivation `ciphervec v1 passkey` of the PRF's output, with
//! URI and salt as associated data.
//!
//! The output is worth nothing without the file, and the file nothing without the authenticator. A page of another domain can't
//! ask for it: browsers hold credentials to their relying party.

use crate::decode::{DecodeError, Reader, hex};
use crate::protect::aead::OVERHEAD;
use crate::protect::keyfile::{KeyfileError, WHAT};
use crate::protect::wrapped::{FileKey, WrappedFile};

const SCHEME: &str = "passkey:";
/// Bytes of the salt that the authenticator is asked about, and of what it gives.
pub const SALT: usize = 32;
/// Longest domain, as of DNS.
const MAX_RP: usize = 253;
/// Longest id of a credential, in bytes.
pub const MAX_CREDENTIAL: usize = 256;

/// A credential of an authenticator, by its public names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passkey {
    rp: String,
    credential: Vec<u8>,
}

/// What an authenticator is asked for, to open a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Who is asked.
    pub passkey: Passkey,
    /// What its PRF is given.
    pub salt: [u8; SALT],
}

impl Passkey {
    /// A credential of the relying party `rp`.
    ///
    /// # Errors
    /// [`KeyfileError::Damaged`] for a domain of other characters than small letters, digits, dots and hyphens, or an id of no
    /// byte or more than [`MAX_CREDENTIAL`].
    pub fn new(rp: &str, credential: &[u8]) -> Result<Self, KeyfileError> {
        let domain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        if !(1..=MAX_RP).contains(&rp.len()) || !rp.chars().all(domain) {
            let expected = format!("a domain of 1 to {MAX_RP} bytes, as browsers write it");
            return Err(refused("relying party", expected, rp.escape_debug()).into());
        }
        if !(1..=MAX_CREDENTIAL).contains(&credential.len()) {
            let expected = format!("1 to {MAX_CREDENTIAL} bytes");
            return Err(refused("credential id", expected, credential.len()).into());
        }
        Ok(Passkey { rp: rp.to_owned(), credential: credential.to_vec() })
    }

    /// The relying party's domain.
    pub fn rp(&self) -> &str {
        &self.rp
    }

    /// The credential's id.
    pub fn credential(&self) -> &[u8] {
        &self.credential
    }

    fn uri(&self) -> String {
        format!("{SCHEME}{}/{}", self.rp, hex(&self.credential))
    }

    fn read(uri: &str) -> Result<Self, KeyfileError> {
        let named = uri.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
        let bytes = |text: &str| -> Option<Vec<u8>> {
            let pairs = text.as_bytes().as_chunks::<2>();
            let digit = |c: u8| char::from(c).to_digit(16).filter(|_| !c.is_ascii_uppercase());
            let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
            pairs.1.is_empty().then(|| pairs.0.iter().map(byte).collect())?
        };
        match named.and_then(|(rp, id)| Some((rp, bytes(id)?))) {
            Some((rp, credential)) => Self::new(rp, &credential),
            None => {
                let expected = format!("{SCHEME}domain/hexadecimal digits");
                Err(refused("URI of a passkey", expected, uri.escape_debug()).into())
            }
        }
    }
}

impl Question {
    /// What opens the bytes of a key file; none where no passkey does.
    ///
    /// # Errors
    /// [`KeyfileError::Damaged`], [`KeyfileError::Checksum`].
    pub fn of(bytes: &[u8]) -> Result<Option<Self>, KeyfileError> {
        let file = WrappedFile::of(bytes)?.filter(|file| file.uri().starts_with(SCHEME));
        file.map(|file| Ok(parts(&file)?.0)).transpose()
    }
}

/// A new file key as [`Keys::wrapped`](crate::Keys::wrapped) takes it: the URI, the key, and that key sealed under `output`,
/// which the passkey gave for the salt.
///
/// # Errors
/// [`KeyfileError::Envelope`].
pub fn wrap(
    question: &Question,
    output: &[u8; SALT],
) -> Result<(String, FileKey, Vec<u8>), KeyfileError> {
    let (uri, file_key) = (question.passkey.uri(), FileKey::generate()?);
    let sealed = file_key
        .wrap(&wrapping(output), &context(&uri, &question.salt))
        .map_err(KeyfileError::Envelope)?;
    Ok((uri, file_key, [&question.salt[..], &sealed].concat()))
}

/// The file key of such a file. `output` is what the passkey gave for [`Question::of`] it.
///
/// # Errors
/// [`KeyfileError::WrongFileKey`] for another output; [`KeyfileError::Damaged`] for a file of another sort.
pub fn unwrap(file: &WrappedFile, output: &[u8; SALT]) -> Result<FileKey, KeyfileError> {
    let (question, sealed) = parts(file)?;
    let context = context(file.uri(), &question.salt);
    FileKey::unwrap(sealed, &wrapping(output), &context).map_err(|_| KeyfileError::WrongFileKey {
        key_id: hex(&file.key_id()[..8]),
        uri: file.uri().to_owned(),
    })
}

/// What the authenticator is asked, and the sealed file key.
fn parts(file: &WrappedFile) -> Result<(Question, &[u8]), KeyfileError> {
    let passkey = Passkey::read(file.uri())?;
    match file.wrapped().split_first_chunk() {
        Some((salt, sealed)) if sealed.len() == SALT + OVERHEAD => {
            Ok((Question { passkey, salt: *salt }, sealed))
        }
        _ => {
            let expected = format!("{} bytes for a passkey", 2 * SALT + OVERHEAD);
            Err(refused("wrapped file key", expected, file.wrapped().len()).into())
        }
    }
}

fn wrapping(output: &[u8; SALT]) -> FileKey {
    FileKey::derived(blake3::derive_key("ciphervec v1 passkey", output))
}

fn context(uri: &str, salt: &[u8; SALT]) -> Vec<u8> {
    [uri.as_bytes(), salt].concat()
}

fn refused(field: &'static str, expected: String, actual: impl ToString) -> DecodeError {
    Reader::new(WHAT, &[]).field(field, 32, expected, actual)
}
