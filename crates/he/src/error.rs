//! Errors of schemes and of their wire format: what was expected and what came.

use crate::id::KeyId;
use ciphervec_arith::ArithError;

/// The result type of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// An error of a scheme or of its wire format.
#[non_exhaustive]
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum Error {
    /// A number-theoretic precondition failed.
    #[error(transparent)]
    Arith(#[from] ArithError),
    /// The bytes do not hold what their kind promises.
    #[error("malformed {what}: {detail}")]
    Malformed {
        /// The object that was being read.
        what: &'static str,
        /// What was expected and what came.
        detail: String,
    },
    /// The bytes were damaged on the way.
    #[error("{what}: checksum mismatch, the bytes are damaged; fetch or restore them again")]
    Checksum {
        /// The object that was being read.
        what: &'static str,
    },
    /// The bytes were written by a newer release.
    #[error(
        "{what}: format version {actual} is newer than {supported}, the newest this release \
         reads; upgrade ciphervec"
    )]
    Version {
        /// The object that was being read.
        what: &'static str,
        /// The newest version this release reads.
        supported: u16,
        /// The version found.
        actual: u16,
    },
    /// The bytes hold another kind of object.
    #[error("expected {expected}, these bytes hold {actual}")]
    Kind {
        /// The kind that was asked for.
        expected: &'static str,
        /// The kind found.
        actual: String,
    },
    /// The object belongs to another key.
    #[error(
        "wrong key: {what} was made with key {actual}, you hold key {expected}; load the key file \
         it was made with"
    )]
    WrongKey {
        /// The object that was being read.
        what: &'static str,
        /// The key held.
        expected: KeyId,
        /// The key named by the object.
        actual: KeyId,
    },
    /// The object was made under other parameters.
    #[error("{what} was made under other parameters ({actual}) than this index ({expected})")]
    Parameters {
        /// The object that was being read.
        what: &'static str,
        /// Parameter id held.
        expected: String,
        /// Parameter id found.
        actual: String,
    },
    /// A modulus too wide for its ring.
    #[error(
        "insecure parameters: log2 of the modulus is {log_modulus} at degree {degree}, the limit \
         for {security} is {limit}"
    )]
    Insecure {
        /// Ring degree.
        degree: usize,
        /// Bits of the modulus, special primes included.
        log_modulus: u32,
        /// The limit of the table.
        limit: u32,
        /// The security level asked for.
        security: &'static str,
    },
    /// A count or a size outside its range.
    #[error("{what} must be {expected}, got {actual}")]
    Range {
        /// The quantity.
        what: &'static str,
        /// Its allowed range in words.
        expected: String,
        /// What came.
        actual: String,
    },
    /// A name that is none of those there are.
    #[error("{what} must be {expected}; got {actual:?}")]
    Choice {
        /// What the name stands for.
        what: &'static str,
        /// The names there are, in words.
        expected: &'static str,
        /// What came.
        actual: String,
    },
    /// A decrypted number exceeds the bound that its ciphertext was said to obey. No value is told:
    /// it would leak.
    #[error(
        "decryption refused: a result exceeds its declared bound; use the precision and the \
         dimension it was encrypted with"
    )]
    Bound,
    /// Numbers lie where their ciphertexts say that none does. No value is told: it would leak.
    #[error(
        "{what} lie beyond {expected}: the error of what was computed of them has no bound, and \
         nothing of it is shown; encrypt numbers that keep to it, or state a wider one"
    )]
    Outside {
        /// The numbers.
        what: &'static str,
        /// Where they were to lie.
        expected: String,
    },
    /// A computation with a secret key did not pass its own check; what it gave was thrown away.
    #[error(
        "a computation with the secret key failed its check and its result was discarded; try \
         again, and test this machine's memory and processor if it happens twice"
    )]
    Fault,
    /// Fewer precomputed noises are left than were asked for.
    #[error(
        "the noise pool holds {left} elements, {asked} were asked for; fill it, or encrypt \
         without a pool"
    )]
    Exhausted {
        /// Elements asked for.
        asked: usize,
        /// Elements left; none of them was used.
        left: usize,
    },
    /// What may be used once was forked along: the parent has it, too.
    #[error(
        "{what} belongs to the process that filled it, and this is a fork of that; make a new one here"
    )]
    Forked {
        /// The object.
        what: &'static str,
    },
    /// An operation needs more levels than its operands have left.
    #[error(
        "{operation} needs {needed}, {left} left; choose parameters for a greater depth or \
         encrypt the operand again"
    )]
    Level {
        /// The operation.
        operation: &'static str,
        /// Levels needed, in words.
        needed: String,
        /// What is left, in words.
        left: String,
    },
    /// A sign of numbers that are too close to 0.
    #[error(
        "numbers this close to 0 and results this precise take a sign more than {levels} levels; a \
         wider gap or fewer bits take fewer"
    )]
    TooFine {
        /// The most levels of a sign.
        levels: usize,
    },
    /// Numbers that are further off than a stage of a sign was built for.
    #[error(
        "the error in a slot before a stage of a sign must be at most {most}, which it was built \
         for, got {off}; use Sign::with_noise or a larger scale"
    )]
    TooNoisy {
        /// The largest error.
        off: String,
        /// What the stage was built for.
        most: String,
    },
    /// Operands whose scales cannot be brought together without losing a level.
    #[error("{operation}: an operand of scale {expected} expected, got {actual}; {advice}")]
    Scale {
        /// The operation.
        operation: &'static str,
        /// The scale needed.
        expected: String,
        /// The scale that came.
        actual: String,
        /// What to do.
        advice: &'static str,
    },
    /// An evaluation key that was not made.
    #[error("the key for {key} is missing: the owner makes it with {make}")]
    MissingKey {
        /// The operation it is for.
        key: String,
        /// The call that makes it.
        make: String,
    },
    /// The results that a key may publish have been published.
    #[error(
        "this key may publish {allowed} results and has published {used}; encrypt under a fresh key"
    )]
    Published {
        /// Results allowed.
        allowed: u64,
        /// Results published.
        used: u64,
    },
    /// What bytes are read from or written to gave up.
    #[error("{doing} failed: {detail}; what was there before is as it was")]
    Stream {
        /// What was under way.
        doing: &'static str,
        /// What the system says.
        detail: String,
    },
    /// The operating system's random generator failed.
    #[error("the operating system's random generator failed: {0}")]
    Randomness(String),
}

impl Error {
    #[doc(hidden)]
    pub fn malformed(what: &'static str, detail: impl Into<String>) -> Self {
        Error::Malformed { what, detail: detail.into() }
    }
}
