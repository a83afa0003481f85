//! What a server knows of a program, as JSON in the program's store.
//!
//! Format 1: `token` and `added`, who brought the plan, and when; `plan`, what `GET /v1/programs/{name}` shows of it; `keys` by the
//! key's id, each with `token`, `added`, `bytes`, `hash` (BLAKE3) and `inputs` by their stored names, each with `input`, `added`,
//! `bytes`, `hash`. The attachments `plan`, `keys-<key id>` and `input-<key id>-<first half of BLAKE3 of the name>` hold the frames.

use crate::storage::error::DatabaseError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

const FORMAT: u32 = 1;

/// The plan's name among the attachments of a program's store.
pub(super) const PLAN: &str = "plan";
/// Most keys of a program, and inputs under one key.
pub(super) const MOST_KEYS: usize = 1024;
pub(super) const MOST_INPUTS: usize = 256;

/// All that is known of a program without reading its plan.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: u32,
    /// The id of the token that brought the plan; `-` without tokens.
    pub token: String,
    /// When it came.
    pub added: Timestamp,
    /// The plan.
    pub plan: PlanRecord,
    /// Keys by their id, 16 hex digits.
    pub keys: BTreeMap<String, KeyRecord>,
}

/// What a plan takes, as it was found when the plan came.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanRecord {
    /// The hash that keys, inputs and answers name: 32 hex digits.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    pub id: String,
    /// Its bytes.
    pub bytes: u64,
    /// Steps on ciphertexts.
    pub steps: u64,
    /// Numbers of a ciphertext.
    pub slots: u64,
    /// log2 of the ring degree.
    pub log_degree: u32,
    /// Bits of the modulus, special primes included.
    pub log_modulus: u32,
    /// Levels.
    pub levels: u64,
    /// Milliseconds that a run is predicted to take on one thread of the machine that took the plan.
    pub predicted_ms: f64,
    /// Bytes of memory that a run is predicted to take, with the keys and inputs of one client.
    pub memory: u64,
    /// Of these, the plan's own, which all clients share.
    pub plan_memory: u64,
    /// Of these, the keys'.
    pub key_memory: u64,
    /// Of these, what a run takes beside plan, keys and inputs.
    pub run_memory: u64,
    /// Bytes of the evaluation keys of one client.
    pub key_bytes: u64,
    /// Bytes of an answer.
    pub answer_bytes: u64,
    /// What it computes on.
    pub inputs: Vec<InputRecord>,
    /// What it computes.
    pub outputs: Vec<OutputRecord>,
}

/// An array that a run is given.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InputRecord {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u32>,
    /// Bytes as they are sent, encrypted unless it is public.
    pub bytes: u64,
    /// Bytes in memory.
    pub memory: u64,
    /// Whether clients send it as it is, so that the server reads it. Records of release 0.1 have no such
    /// inputs.
    #[serde(default)]
    pub public: bool,
}

/// An array that a key holder decrypts.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputRecord {
    /// Its name.
    pub name: String,
    /// Its shape, before an index is made of a last axis.
    pub shape: Vec<u32>,
}

/// The evaluation keys of one client, and the inputs that are kept under its key.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// The id of the token that brought them, and may change what is under them; `-` without tokens.
    pub token: String,
    /// When they came.
    pub added: Timestamp,
    /// Their bytes.
    pub bytes: u64,
    /// Their BLAKE3, 64 hex digits.
    pub hash: String,
    /// Kept inputs by the name that runs call them by.
    pub inputs: BTreeMap<String, KeptRecord>,
}

/// An encrypted input that is kept.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct KeptRecord {
    /// Which of the plan's inputs it is.
    pub input: String,
    /// When it came.
    pub added: Timestamp,
    /// Its bytes.
    pub bytes: u64,
    /// Their BLAKE3, 64 hex digits.
    pub hash: String,
}

/// Who changes what belongs to a key.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The id of the token; `-` without tokens.
    pub token: String,
    /// Whether it may change what other tokens brought.
    pub admin: bool,
}

impl Sender {
    pub(super) fn check(&self, key: &str, keys: &KeyRecord) -> Result<(), DatabaseError> {
        if self.admin || keys.token == self.token {
            return Ok(());
        }
        Err(DatabaseError::Foreign(format!(
            "the keys {key} came with another token, and so does what is kept under them"
        )))
    }
}

impl Record {
    /// A program without keys.
    pub(super) fn new(plan: PlanRecord, token: &str) -> Self {
        let (token, added) = (token.to_owned(), Timestamp::now());
        Record { format: FORMAT, token, added, plan, keys: BTreeMap::new() }
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        // Strings and numbers always serialise.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads what [`Self::to_json`] wrote.
    pub(super) fn read(name: &str, json: &[u8]) -> Result<Self, DatabaseError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| {
            DatabaseError::Corrupt(format!("the record of the program {name:?}: {error}"))
        };
        let Format { format } = serde_json::from_slice(json).map_err(unreadable)?;
        if format > FORMAT {
            return Err(DatabaseError::Unsupported(format!(
                "the program {name:?} was stored by a later release (format {format}, {FORMAT} is read here); upgrade \
                 this server"
            )));
        }
        serde_json::from_slice(json).map_err(unreadable)
    }

    /// Bytes of the plan, keys and kept inputs; those of one token, where one is named.
    pub fn bytes(&self, token: Option<&str>) -> u64 {
        let counted = |of: &str| token.is_none_or(|token| token == of);
        let plan = if counted(&self.token) { self.plan.bytes } else { 0 };
        let keys = self.keys.values().filter(|keys| counted(&keys.token));
        keys.fold(plan, |sum, keys| {
            sum + keys.bytes + keys.inputs.values().map(|kept| kept.bytes).sum::<u64>()
        })
    }
}

/// What the attachment of a key's evaluation keys is called.
pub(super) fn keys_attachment(key: &str) -> String {
    format!("keys-{key}")
}

/// What the attachment of a kept input is called: names of inputs have other letters.
pub(super) fn input_attachment(key: &str, name: &str) -> String {
    let hash = blake3::hash(name.as_bytes());
    format!("input-{key}-{}", crate::hex::show(&hash.as_bytes()[..16]))
}

/// Whether a kept input may have that name: 1 to 64 of `A-Z a-z 0-9 . _ -`, not only dots.
pub fn is_kept_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len())
        && name.bytes().all(plain)
        && name.bytes().any(|byte| byte != b'.')
}
