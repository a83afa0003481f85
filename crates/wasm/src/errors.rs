//! The only place that maps Rust errors to JavaScript's, whose `name` and `code` say what a caller would catch.

use ciphervec_arith::error::ArithError;
use ciphervec_he_secret::Error as SchemeError;
use ciphervec_owner::decode::DecodeError;
use ciphervec_owner::protect::aead::EnvelopeError;
use ciphervec_owner::protect::id::IdError;
use ciphervec_owner::protect::keyfile::KeyfileError;
use ciphervec_owner::store::StoreError;
use ciphervec_owner::{Error, SegmentId};
use js_sys::{Array, Reflect, Uint8Array};
use wasm_bindgen::JsValue;

/// What a caller would catch: the exceptions of `ciphervec.errors`, by the same names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    AuthenticationError,
    BoundExceeded,
    CiphervecError,
    CollectionExists,
    CollectionNotFound,
    CommitUncertain,
    Conflict,
    CorruptData,
    DuplicateId,
    InvalidInput,
    InvalidRows,
    MismatchedAnswer,
    /// More memory than 32 bits address, or than there is.
    OutOfMemory,
    PinMismatch,
    PoolExhausted,
    Quarantined,
    RollbackDetected,
    ServerError,
    StorageError,
    TableNotFound,
    TamperedAnswer,
    UnknownId,
    UnsupportedVersion,
    WrongKey,
}

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Sort::AuthenticationError => "AuthenticationError",
            Sort::BoundExceeded => "BoundExceeded",
            Sort::CiphervecError => "CiphervecError",
            Sort::CollectionExists => "CollectionExists",
            Sort::CollectionNotFound => "CollectionNotFound",
            Sort::CommitUncertain => "CommitUncertain",
            Sort::Conflict => "Conflict",
            Sort::CorruptData => "CorruptData",
            Sort::DuplicateId => "DuplicateId",
            Sort::InvalidInput => "InvalidInput",
            Sort::InvalidRows => "InvalidRows",
            Sort::MismatchedAnswer => "MismatchedAnswer",
            Sort::OutOfMemory => "OutOfMemory",
            Sort::PinMismatch => "PinMismatch",
            Sort::PoolExhausted => "PoolExhausted",
            Sort::Quarantined => "Quarantined",
            Sort::RollbackDetected => "RollbackDetected",
            Sort::ServerError => "ServerError",
            Sort::StorageError => "StorageError",
            Sort::TableNotFound => "TableNotFound",
            Sort::TamperedAnswer => "TamperedAnswer",
            Sort::UnknownId => "UnknownId",
            Sort::UnsupportedVersion => "UnsupportedVersion",
            Sort::WrongKey => "WrongKey",
        }
    }
}

/// An error on its way to JavaScript.
#[derive(Debug)]
pub struct Failure {
    pub sort: Sort,
    pub message: String,
    /// The segments that an answer failed its check about.
    segments: Vec<SegmentId>,
    /// What is wrong with rows, by their numbers.
    rows: Vec<(usize, String)>,
}

pub type Result<T> = core::result::Result<T, Failure>;

impl Failure {
    pub fn new(sort: Sort, message: impl Into<String>) -> Self {
        Failure { sort, message: message.into(), segments: Vec::new(), rows: Vec::new() }
    }

    pub fn input(message: impl Into<String>) -> Self {
        Failure::new(Sort::InvalidInput, message)
    }

    pub fn corrupt(message: impl Into<String>) -> Self {
        Failure::new(Sort::CorruptData, message)
    }
}

#[cfg(feature = "search")]
impl From<ciphervec_client::Error> for Failure {
    fn from(error: ciphervec_client::Error) -> Self {
        use ciphervec_client::Error as Of;
        let message = error.to_string();
        let sort = match error {
            Of::Scheme(error) => return error.into(),
            Of::Rows { rows, .. } => {
                return Failure { rows, ..Failure::new(Sort::InvalidRows, message) };
            }
            Of::Tampered { segments, .. } => {
                return Failure { segments, ..Failure::new(Sort::TamperedAnswer, message) };
            }
            Of::Quarantined { segments, .. } => {
                return Failure { segments, ..Failure::new(Sort::Quarantined, message) };
            }
            Of::FetchEnded(_) => Sort::TamperedAnswer,
            Of::Input(_) => Sort::InvalidInput,
            Of::UnknownId(_) => Sort::UnknownId,
            Of::DuplicateId(_) => Sort::DuplicateId,
            Of::TableNotFound(_) => Sort::TableNotFound,
            Of::CollectionNotFound(_) => Sort::CollectionNotFound,
            Of::CollectionExists(_) => Sort::CollectionExists,
            Of::Corrupt(_) => Sort::CorruptData,
            Of::Version(_) => Sort::UnsupportedVersion,
            Of::WrongKey(_) => Sort::WrongKey,
            Of::Conflict(_) => Sort::Conflict,
            Of::CommitUncertain(_) => Sort::CommitUncertain,
            Of::RolledBack(_) => Sort::RollbackDetected,
            Of::Mismatch(_) => Sort::PinMismatch,
            Of::Authentication(_) => Sort::AuthenticationError,
            Of::Server { .. } => Sort::ServerError,
            Of::Exhausted(_) => Sort::PoolExhausted,
            Of::Storage(_) => Sort::StorageError,
            _ => Sort::CiphervecError,
        };
        Failure::new(sort, message)
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        let error = js_sys::Error::new(&failure.message);
        error.set_name(failure.sort.name());
        // An object that was just made takes any property.
        let set = |key: &str, value: &JsValue| Reflect::set(&error, &key.into(), value).is_ok();
        set("code", &failure.sort.name().into());
        if !failure.segments.is_empty() {
            let ids: Array = failure
                .segments
                .iter()
                .map(|id| JsValue::from(Uint8Array::from(&id.0[..])))
                .collect();
            set("segments", &ids);
        }
        if !failure.rows.is_empty() {
            let row = |(row, says): &(usize, String)| {
                Array::of2(&(*row as f64).into(), &says.as_str().into())
            };
            set("rows", &failure.rows.iter().map(row).collect::<Array>());
        }
        error.into()
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        let sort = match error {
            DecodeError::Version { .. } => Sort::UnsupportedVersion,
            _ => Sort::CorruptData,
        };
        Failure::new(sort, error.to_string())
    }
}

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Failure::input(error.to_string())
    }
}

impl From<ArithError> for Failure {
    fn from(error: ArithError) -> Self {
        Failure::input(error.to_string())
    }
}

impl From<EnvelopeError> for Failure {
    fn from(error: EnvelopeError) -> Self {
        match error {
            EnvelopeError::Decode(error) => error.into(),
            EnvelopeError::Unauthentic { .. } => Failure::corrupt(error.to_string()),
            EnvelopeError::Plaintext { .. } => Failure::input(error.to_string()),
            _ => Failure::new(Sort::CiphervecError, error.to_string()),
        }
    }
}

impl From<KeyfileError> for Failure {
    fn from(error: KeyfileError) -> Self {
        let sort = match &error {
            KeyfileError::Damaged { cause: DecodeError::Version { .. } } => {
                Sort::UnsupportedVersion
            }
            KeyfileError::Damaged { .. } | KeyfileError::Checksum { .. } => Sort::CorruptData,
            KeyfileError::WrongPassphrase { .. } | KeyfileError::WrongFileKey { .. } => {
                Sort::WrongKey
            }
            KeyfileError::PassphraseNeeded { .. }
            | KeyfileError::Wrapped { .. }
            | KeyfileError::Share { .. }
            | KeyfileError::NotEncrypted { .. }
            | KeyfileError::OtherKey { .. }
            | KeyfileError::EmptyPassphrase
            | KeyfileError::Cost { .. } => Sort::InvalidInput,
            _ => Sort::CiphervecError,
        };
        Failure::new(sort, error.to_string())
    }
}

impl From<SchemeError> for Failure {
    fn from(error: SchemeError) -> Self {
        let sort = match error {
            SchemeError::Malformed { .. }
            | SchemeError::Checksum { .. }
            | SchemeError::Kind { .. } => Sort::CorruptData,
            SchemeError::Version { .. } => Sort::UnsupportedVersion,
            SchemeError::WrongKey { .. } => Sort::WrongKey,
            SchemeError::Bound | SchemeError::Outside { .. } => Sort::BoundExceeded,
            SchemeError::Exhausted { .. } | SchemeError::Published { .. } => Sort::PoolExhausted,
            SchemeError::MissingKey { .. }
            | SchemeError::Parameters { .. }
            | SchemeError::Insecure { .. }
            | SchemeError::Range { .. }
            | SchemeError::TooFine { .. }
            | SchemeError::TooNoisy { .. }
            | SchemeError::Choice { .. }
            | SchemeError::Level { .. }
            | SchemeError::Scale { .. }
            | SchemeError::Arith(_) => Sort::InvalidInput,
            _ => Sort::CiphervecError,
        };
        Failure::new(sort, error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Scheme(error) => error.into(),
            Error::Envelope(error) => error.into(),
            Error::Keyfile(error) => error.into(),
            Error::Id(error) => error.into(),
            Error::DuplicateId(_) => Failure::new(Sort::DuplicateId, message),
            Error::Store(StoreError::Corrupt { .. }) => Failure::corrupt(message),
            Error::NotShared { .. } => Failure::new(Sort::WrongKey, message),
            Error::Directory { .. } | Error::Consumed { .. } => Failure::corrupt(message),
            Error::Tampered { segments } => {
                Failure { segments, ..Failure::new(Sort::TamperedAnswer, message) }
            }
            Error::Mismatched { segments } => {
                Failure { segments, ..Failure::new(Sort::MismatchedAnswer, message) }
            }
            _ => Failure::input(message),
        }
    }
}
