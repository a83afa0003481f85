//! Why protecting and opening fail. No error has a key in it, so that every half of a program may pass it on. Both sides.

use crate::decode::DecodeError;
use std::io;
use std::path::PathBuf;

/// Least log2 of scrypt's N that is written or read: 32 MiB.
pub const MIN_LOG_N: u8 = 15;
/// Greatest log2 of scrypt's N: 256 MiB. A file cannot make the reader spend more.
pub const MAX_LOG_N: u8 = 18;
/// Words of a phrase.
pub const WORDS: usize = 24;
/// The most shares of a split.
pub const MAX_SHARES: u8 = 255;

/// Why an envelope could not be sealed or opened.
#[non_exhaustive]
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
pub enum EnvelopeError {
    /// The tag does not fit: wrong key, changed bytes, or bytes moved from another place.
    #[error(
        "{what} does not open: it was sealed under another key, changed, or belongs to another place; \
         check that the key file is the collection's and run `verify`"
    )]
    Unauthentic {
        /// What was being opened.
        what: &'static str,
    },
    /// The sealed bytes are malformed.
    #[error(transparent)]
    Decode(#[from] crate::decode::DecodeError),
    /// What is to be sealed breaks a stated limit.
    #[error("{what}: {expected} expected, got {actual}")]
    Plaintext {
        /// The part that breaks the limit.
        what: &'static str,
        /// The limit.
        expected: String,
        /// What was given.
        actual: String,
    },
    /// The operating system gave no randomness; nothing was sealed.
    #[error(
        "the operating system's random generator failed ({cause}); nothing was sealed, try again"
    )]
    Randomness {
        /// The system's message.
        cause: String,
    },
}

/// Why words are no key. No case repeats a word: those around a misspelt one are right.
#[non_exhaustive]
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhraseError {
    /// Too few or too many.
    #[error(
        "a recovery phrase has {WORDS} words, these are {actual}; enter all of them, in their order"
    )]
    Count {
        /// Words given.
        actual: usize,
    },
    /// A word that the list does not have.
    #[error(
        "word {position} of {WORDS} is not in the English list of BIP-39; check how it is spelt (the first four letters of a \
         word tell it from all others)"
    )]
    UnknownWord {
        /// Which one, from 1.
        position: usize,
    },
    /// Words of the list that nobody wrote down in this order.
    #[error(
        "every word is in the list, but their checksum is wrong: one of them is another word than was written down, or two \
         are exchanged"
    )]
    Checksum,
}

/// What sort of key a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The master key of collections.
    Master,
    /// The secret key of an additively homomorphic scheme.
    Scheme,
    /// A person's pair, which others share master keys with.
    Person,
}

impl Sort {
    fn says(self) -> &'static str {
        match self {
            Sort::Master => "the master key of collections",
            Sort::Scheme => "the secret key of an additively homomorphic scheme",
            Sort::Person => "a person's pair",
        }
    }

    fn next_step(self) -> &'static str {
        match self {
            Sort::Master => "ciphervec.Keys.load",
            Sort::Scheme => "load() of its scheme's module",
            Sort::Person => "ciphervec.Identity.load",
        }
    }
}

/// Why a key file could not be written or read. No case carries key bytes or the passphrase.
#[non_exhaustive]
#[derive(thiserror::Error, Debug)]
pub enum KeyfileError {
    /// A file is there already.
    #[error("{} exists already and was left as it is; choose another path, or ask to overwrite \
        it (its key is then lost)", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// No such file.
    #[error("no key file at {}; check the path, or make one with `keygen`", path.display())]
    NotFound {
        /// The path.
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
    /// The bytes are not a key file that this release reads.
    #[error("{cause}; restore the key file from a copy")]
    Damaged {
        /// What is wrong, and at which offset.
        #[from]
        cause: DecodeError,
    },
    /// The whole file is there, but its checksum differs.
    #[error(
        "key file is damaged: BLAKE3 of its first {length} bytes is {actual}, the file says \
        {expected}; restore it from a copy"
    )]
    Checksum {
        /// Bytes covered.
        length: usize,
        /// The checksum in the file, in hexadecimal.
        expected: String,
        /// The checksum computed.
        actual: String,
    },
    /// The file is intact, the passphrase does not open it.
    #[error("wrong passphrase for key {key_id}: the file is intact but does not open")]
    WrongPassphrase {
        /// The public name of the key in the file, in hexadecimal.
        key_id: String,
    },
    /// The file is encrypted and no passphrase was given.
    #[error("key {key_id} is encrypted: give its passphrase")]
    PassphraseNeeded {
        /// The public name of the key in the file, in hexadecimal.
        key_id: String,
    },
    /// A passphrase was given for a file that is not encrypted.
    #[error(
        "key {key_id} is stored WITHOUT encryption, though a passphrase was given; load it \
        without one and save it with one"
    )]
    NotEncrypted {
        /// The public name of the key in the file, in hexadecimal.
        key_id: String,
    },
    /// The file holds a key of another sort.
    #[error("the key file holds {}, key {key_id}: load it with {}", sort.says(), sort.next_step())]
    OtherKey {
        /// The public name of the key in the file, in hexadecimal.
        key_id: String,
        /// What it holds.
        sort: Sort,
    },
    /// The file is wrapped by a key that somebody else keeps.
    #[error(
        "key {key_id} is wrapped by a key that its file names, and a passphrase has nothing to do with it: load it with \
        ciphervec.Keys.load"
    )]
    Wrapped {
        /// The public name of the key in the file, in hexadecimal.
        key_id: String,
    },
    /// The file key that came does not open the file.
    #[error(
        "{uri} gave another key than the one that key {key_id} was wrapped with: the file is intact but does not open"
    )]
    WrongFileKey {
        /// The public name of the key in the file, in hexadecimal.
        key_id: String,
        /// What names the wrapping key.
        uri: String,
    },
    /// The file holds one share of a key.
    #[error(
        "the file holds a share of key {key_id}, not the key: put as many as it needs together with \
        `ciphervec keys combine`"
    )]
    Share {
        /// The public name of the key, in hexadecimal.
        key_id: String,
    },
    /// An empty passphrase.
    #[error("the passphrase is empty; give one, or ask for a plaintext key file by name")]
    EmptyPassphrase,
    /// The scrypt cost is out of bounds.
    #[error("scrypt log2 N is {actual}, expected {MIN_LOG_N}..={MAX_LOG_N}")]
    Cost {
        /// The value given or found.
        actual: u8,
    },
    /// The system gave no randomness, or encryption failed.
    #[error(transparent)]
    Envelope(EnvelopeError),
}

/// Why a key cannot be split, or shares not be put together.
#[non_exhaustive]
#[derive(thiserror::Error, Debug)]
pub enum ShareError {
    /// Numbers of shares that cannot be.
    #[error(
        "a key is split into 2 to {MAX_SHARES} shares, of which 2 or more and at most all are needed, got need {need} of {of}"
    )]
    Numbers {
        /// How many are to be needed.
        need: u8,
        /// How many there are to be.
        of: u8,
    },
    /// Fewer shares than the key needs.
    #[error(
        "the split {split} of key {key_id} needs {need} shares, got {given}; ask the holders of others"
    )]
    Few {
        /// The split's name.
        split: String,
        /// The key's public name.
        key_id: String,
        /// How many are needed.
        need: u8,
        /// How many came.
        given: usize,
    },
    /// Shares that were not made together.
    #[error(
        "share {number} is of split {found} (key {found_key}), share {first} of split {split} (key {key_id}): shares of \
         different splits give no key, even if the key was the same. Take {need} of one split"
    )]
    OtherSplit {
        /// The share's number.
        number: u8,
        /// Its split's name.
        found: String,
        /// The name of its key.
        found_key: String,
        /// The number of the share that came first.
        first: u8,
        /// The first share's split.
        split: String,
        /// The name of its key.
        key_id: String,
        /// How many are needed.
        need: u8,
    },
    /// The same share twice.
    #[error("share {number} was given twice; give another one")]
    Twice {
        /// Its number.
        number: u8,
    },
    /// A share whose value is not the one that was dealt.
    #[error(
        "share {number} of split {split} was changed since it was made; take it from a copy, or another share"
    )]
    Changed {
        /// Its number.
        number: u8,
        /// Its split's name.
        split: String,
    },
    /// Whole shares of one split that do not give its key.
    #[error(
        "the shares of split {split} do not give key {key_id}: whoever dealt them had another key"
    )]
    OtherKey {
        /// The split's name.
        split: String,
        /// The key's public name.
        key_id: String,
    },
    /// No randomness.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}
