//! Turns Rust errors into the exceptions of `ciphervec.errors`; the only place that does.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use ciphervec_arith::error::ArithError;
use ciphervec_he_secret::Error as SchemeError;
use ciphervec_owner::decode::DecodeError;
use ciphervec_owner::protect::aead::EnvelopeError;
use ciphervec_owner::protect::id::IdError;
use ciphervec_owner::protect::keyfile::KeyfileError;
use ciphervec_owner::protect::shares::ShareError;
use ciphervec_owner::store::StoreError;
use ciphervec_owner::{Error, SegmentId};
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(ciphervec.errors, BoundExceeded);
import_exception!(ciphervec.errors, CiphervecError);
import_exception!(ciphervec.errors, Conflict);
import_exception!(ciphervec.errors, CorruptData);
import_exception!(ciphervec.errors, InvalidInput);
import_exception!(ciphervec.errors, MismatchedAnswer);
import_exception!(ciphervec.errors, PoolExhausted);
import_exception!(ciphervec.errors, StorageError);
import_exception!(ciphervec.errors, StoreLocked);
import_exception!(ciphervec.errors, DuplicateId);
import_exception!(ciphervec.errors, TamperedAnswer);
import_exception!(ciphervec.errors, UnclearOutput);
import_exception!(ciphervec.errors, UnsupportedVersion);
import_exception!(ciphervec.errors, AuthenticationError);
import_exception!(ciphervec.errors, CollectionExists);
import_exception!(ciphervec.errors, CollectionNotFound);
import_exception!(ciphervec.errors, CommitUncertain);
import_exception!(ciphervec.errors, InvalidRows);
import_exception!(ciphervec.errors, PinMismatch);
import_exception!(ciphervec.errors, Quarantined);
import_exception!(ciphervec.errors, RollbackDetected);
import_exception!(ciphervec.errors, ServerError);
import_exception!(ciphervec.errors, TableNotFound);
import_exception!(ciphervec.errors, UnknownId);
import_exception!(ciphervec.errors, WrongKey);

/// Turns a Rust error into the exception that a caller would catch for it.
pub trait Raise {
    /// The exception, with the error's message.
    fn raise(self) -> PyErr;
}

impl Raise for DecodeError {
    fn raise(self) -> PyErr {
        match self {
            Self::Version { .. } => UnsupportedVersion::new_err(self.to_string()),
            _ => CorruptData::new_err(self.to_string()),
        }
    }
}

impl Raise for ciphervec_client::Error {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::Rows { rows, .. } => {
                InvalidRows::new_err((message, rows.into_iter().collect::<BTreeMap<_, _>>()))
            }
            Self::UnknownId(_) => UnknownId::new_err(message),
            Self::DuplicateId(_) => DuplicateId::new_err(message),
            Self::CollectionNotFound(_) => CollectionNotFound::new_err(message),
            Self::TableNotFound(_) => TableNotFound::new_err(message),
            Self::FetchEnded(_) => TamperedAnswer::new_err((message, Vec::<[u8; 16]>::new())),
            Self::CollectionExists(_) => CollectionExists::new_err(message),
            Self::Corrupt(_) => CorruptData::new_err(message),
            Self::Version(_) => UnsupportedVersion::new_err(message),
            Self::WrongKey(_) => WrongKey::new_err(message),
            Self::Conflict(_) => Conflict::new_err(message),
            Self::CommitUncertain(_) => CommitUncertain::new_err(message),
            Self::RolledBack(_) => RollbackDetected::new_err(message),
            Self::Mismatch(_) => PinMismatch::new_err(message),
            Self::Tampered { segments, .. } => TamperedAnswer::new_err((message, bytes(&segments))),
            Self::Quarantined { segments, .. } => Quarantined::new_err((message, bytes(&segments))),
            Self::Authentication(_) => AuthenticationError::new_err(message),
            Self::Server { .. } => ServerError::new_err(message),
            Self::Locked(_) => StoreLocked::new_err(message),
            Self::Exhausted(_) => PoolExhausted::new_err(message),
            Self::Storage(_) => StorageError::new_err(message),
            Self::Ended(_) => CiphervecError::new_err(message),
            Self::Scheme(error) => error.raise(),
            _ => InvalidInput::new_err(message),
        }
    }
}

impl Raise for IdError {
    fn raise(self) -> PyErr {
        InvalidInput::new_err(self.to_string())
    }
}

impl Raise for ArithError {
    fn raise(self) -> PyErr {
        InvalidInput::new_err(self.to_string())
    }
}

impl Raise for EnvelopeError {
    fn raise(self) -> PyErr {
        match self {
            Self::Decode(error) => error.raise(),
            Self::Unauthentic { .. } => CorruptData::new_err(self.to_string()),
            Self::Plaintext { .. } => InvalidInput::new_err(self.to_string()),
            _ => CiphervecError::new_err(self.to_string()),
        }
    }
}

impl Raise for KeyfileError {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::Exists { .. } | Self::NotFound { .. } | Self::Io { .. } => {
                StorageError::new_err(message)
            }
            Self::Damaged { cause: DecodeError::Version { .. } } => {
                UnsupportedVersion::new_err(message)
            }
            Self::Damaged { .. } | Self::Checksum { .. } => CorruptData::new_err(message),
            Self::WrongPassphrase { .. } | Self::WrongFileKey { .. } => WrongKey::new_err(message),
            Self::Wrapped { .. }
            | Self::Share { .. }
            | Self::PassphraseNeeded { .. }
            | Self::NotEncrypted { .. }
            | Self::OtherKey { .. }
            | Self::EmptyPassphrase
            | Self::Cost { .. } => InvalidInput::new_err(message),
            _ => CiphervecError::new_err(message),
        }
    }
}

impl Raise for ShareError {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::Changed { .. } => CorruptData::new_err(message),
            Self::OtherKey { .. } => WrongKey::new_err(message),
            Self::Envelope(error) => error.raise(),
            _ => InvalidInput::new_err(message),
        }
    }
}

impl Raise for StoreError {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::Locked { .. } | Self::Forked { .. } => StoreLocked::new_err(message),
            Self::Unsupported { .. } => UnsupportedVersion::new_err(message),
            Self::Corrupt { .. } | Self::Missing { .. } | Self::UnknownBlob { .. } => {
                CorruptData::new_err(message)
            }
            Self::InvalidChange { .. }
            | Self::SegmentExists { .. }
            | Self::UnknownSegment { .. }
            | Self::KeyReused { .. } => InvalidInput::new_err(message),
            Self::Io { source, .. }
                if matches!(
                    source.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                let next = "make the folder writable, or open it with read_only=True";
                StorageError::new_err(format!("{message}; {next}"))
            }
            _ => StorageError::new_err(message),
        }
    }
}

impl Raise for SchemeError {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::Malformed { .. } | Self::Checksum { .. } | Self::Kind { .. } => {
                CorruptData::new_err(message)
            }
            Self::Version { .. } => UnsupportedVersion::new_err(message),
            Self::WrongKey { .. } => WrongKey::new_err(message),
            Self::Bound | Self::Outside { .. } => BoundExceeded::new_err(message),
            Self::Exhausted { .. } | Self::Published { .. } => PoolExhausted::new_err(message),
            Self::Stream { .. } => StorageError::new_err(message),
            Self::MissingKey { key, make } if make.contains("bootstrapping_keys") => {
                InvalidInput::new_err(format!(
                    "keys are missing ({key}): the owner makes them with Context.bootstrapping_keys() of this release, of few slots for \
                     the same number of them"
                ))
            }
            Self::MissingKey { key, .. } => InvalidInput::new_err(format!(
                "the key for {key} is missing: the owner makes it with ckks.Context.for_depth(..., rotations=[...], sums=d), or \
                 with Context.for_similarity for the operation that needs it"
            )),
            Self::Parameters { .. }
            | Self::Insecure { .. }
            | Self::Range { .. }
            | Self::Choice { .. }
            | Self::Forked { .. }
            | Self::Level { .. }
            | Self::TooFine { .. }
            | Self::TooNoisy { .. }
            | Self::Scale { .. }
            | Self::Arith(_) => InvalidInput::new_err(message),
            _ => CiphervecError::new_err(message),
        }
    }
}

impl Raise for Error {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::Scheme(error) => error.raise(),
            Self::Envelope(error) => error.raise(),
            Self::Keyfile(error) => error.raise(),
            Self::Share(error) => error.raise(),
            Self::Id(error) => error.raise(),
            Self::DuplicateId(_) => DuplicateId::new_err(message),
            Self::NotShared { .. } => WrongKey::new_err(message),
            Self::Directory { .. } | Self::Consumed { .. } => CorruptData::new_err(message),
            Self::Token { .. } => Conflict::new_err(message),
            Self::FetchEnded => TamperedAnswer::new_err((message, Vec::<[u8; 16]>::new())),
            Self::Store(error) => error.raise(),
            Self::Tampered { segments } => TamperedAnswer::new_err((message, bytes(&segments))),
            Self::Unclear { output, detail } => UnclearOutput::new_err((message, output, detail)),
            Self::Mismatched { segments } => MismatchedAnswer::new_err((message, bytes(&segments))),
            _ => InvalidInput::new_err(message),
        }
    }
}

fn bytes(segments: &[SegmentId]) -> Vec<[u8; 16]> {
    segments.iter().map(|id| id.0).collect()
}
