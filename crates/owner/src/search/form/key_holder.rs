//! Key holder: what the form-blind search asks of a form's half that encrypts rows and queries and opens answers. Owner
//! only.

use super::opening::{Kept, Opening};
use crate::error::{Error, Result};
use crate::index::network::Network;
use crate::index::spec::IndexSpec;
use crate::search::SegmentHead;
use crate::search::message::WordsAsked;
use crate::search::quantize::Checked;
use crate::search::root_key::SegmentRootKey;
use ciphervec::search::TreeLender;
use ciphervec_arith::AlignedBytes;
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::lattice::retrieval::ChoiceShape;
use ciphervec_he_secret::lattice::ring::{EvaluationKeys, Hints};
use ciphervec_he_secret::wire::{KeyId, Kind, Reader};
use core::any::Any;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The seed of one query's mask. Public, and good for one query.
pub(in crate::search) type MaskSeed = [u8; 32];

/// Rows of one segment, encrypted.
pub(in crate::search) struct EncryptedRows {
    /// The nonce they were encrypted under, and the segment's name.
    pub id: SegmentId,
    /// The level they are packed for.
    pub level: u8,
    /// The key that the segment's head names.
    pub key: KeyId,
    /// Words behind [`crate::search::segment::HEADROOM`] free bytes.
    pub words: AlignedBytes,
    /// What the form opens them with beside the key, for the sidecar; empty where that is nothing.
    pub witness: Zeroizing<Vec<u8>>,
}

/// Whether what is opened of a segment says anything about its noise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exactness {
    /// Results depend on rows and queries alone.
    Exact,
    /// Results carry noise of the encryption: they are the owner's own.
    Noisy,
    /// As [`Self::Noisy`], until the segment is sealed again.
    Outdated,
}

/// Queries of one message, encrypted or not.
pub(in crate::search) struct EncodedQueries {
    pub body: Vec<u8>,
    /// The key that the message names.
    pub key: KeyId,
    /// What opening the answer takes.
    pub kept: Kept,
    /// The words that the answer is wanted in.
    pub words: Option<WordsAsked>,
}

/// What an answer may look like: what its server knows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AnswerFormat {
    /// Version 1, of which every server makes answers.
    First,
    /// Words as long as the precision needs.
    #[default]
    Short,
}

/// What rows are packed for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// Rows that the index will hold.
    pub rows: usize,
    /// What its answers travel over.
    pub network: Network,
}

impl Expected {
    /// So many rows, over the network that is taken for granted.
    pub fn rows(rows: usize) -> Self {
        Expected { rows, network: Network::default() }
    }
}

/// How the rows of an index are packed, and what that costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PackingChoice {
    /// The level of the query tree.
    pub level: u8,
    /// Bytes of the answer to one query.
    pub answer_len: usize,
    /// Seconds that this answer takes over the network.
    pub transfer: f64,
}

/// What encrypts rows: the key holder's half, or a writer's.
pub(in crate::search) trait RowEncryptor: Send + Sync {
    /// Encrypts rows under `root`, packed as suits an index like the `expected` one.
    ///
    /// # Errors
    /// A key pair that is missing; no randomness.
    fn encrypt_rows(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        expected: &Expected,
    ) -> Result<EncryptedRows>;
}

/// The key holder's half of one index: encrypts queries, decrypts scores and rows. Its [`RowEncryptor`] is [`super::contract::SealingForm::encryptor`].
pub(in crate::search) trait KeyHolderHalf: Any + Send + Sync {
    /// The key that segments under `root` name.
    fn segment_key(&self, root: &SegmentRootKey) -> Result<KeyId>;

    /// The key that answers name.
    fn response_key(&self, root: &SegmentRootKey) -> Result<KeyId>;

    /// The step that cosines are rounded to before anyone sees them, where they are not [`Exactness::Exact`].
    fn rounding(&self) -> f64;

    /// What scores of a segment at `level` say about noise that outlives them, for queries that reach `top_level`; `None`
    /// where flooding is no way to show them to others.
    ///
    /// # Errors
    /// A level that is none.
    fn hints(&self, _level: u8, _top_level: u8) -> Result<Option<Hints>> {
        Ok(None)
    }

    /// Whether a segment of so many rows at this level is packed as suits an index like the `expected` one, or nearly so.
    ///
    /// # Errors
    /// A level that is none.
    fn suits(&self, _rows: usize, _level: u8, _expected: &Expected) -> Result<bool> {
        Ok(true)
    }

    /// How most rows of such an index are packed; `None` where there is no choice.
    ///
    /// # Errors
    /// A description that has no layout.
    fn packing(&self, _expected: &Expected) -> Result<Option<PackingChoice>> {
        Ok(None)
    }

    /// What results from a segment with this witness say about its noise.
    fn exactness(&self, witness: &[u8]) -> Exactness;

    /// Blocks of a segment of so many rows at this level that nothing is checked about, answers or stored words, because this
    /// witness has no sums; `None` in forms that check nothing.
    fn unchecked_blocks(&self, _witness: &[u8], _rows: usize, _level: u8) -> Option<usize> {
        None
    }

    /// Writes unit rows as queries that serve levels up to `top_level`.
    ///
    /// # Errors
    /// A key pair that is missing; no randomness.
    fn encode_queries(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        top_level: u8,
        epoch: u32,
        format: AnswerFormat,
    ) -> Result<EncodedQueries>;

    /// Says, behind one query that was encoded, which clusters its server is to answer about.
    ///
    /// # Errors
    /// Clusters that there are not; a form whose servers fold none.
    fn encode_choice(
        &self,
        _root: &SegmentRootKey,
        _queries: &Kept,
        _shape: &ChoiceShape,
        _chosen: &[usize],
    ) -> Result<Vec<u8>> {
        let what = Kind::Query.as_str();
        Err(Reader::new(what, &[]).error("clusters are folded in sealed and sealed-query").into())
    }

    /// Takes in `count` plain queries that somebody else wrote, who named `key`.
    ///
    /// # Errors
    /// Queries that no unit vector rounds to; another key.
    fn read_queries(&self, count: u32, key: KeyId, body: Reader<'_>) -> Result<Kept>;

    /// Does ahead what [`Self::open`] would do of it, while a server works on the answer.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn prepare(&self, _root: &SegmentRootKey, _queries: &Kept, _levels: &[u8]) -> Result<()> {
        Ok(())
    }

    /// What expands these queries for a server's half in this process, where that spares work.
    ///
    /// # Errors
    /// Queries of another form.
    fn lender<'a>(
        &'a self,
        _root: &'a SegmentRootKey,
        _queries: &'a Kept,
    ) -> Result<Option<Box<dyn TreeLender + 'a>>> {
        Ok(None)
    }

    /// What one answer is opened with, about segments of these levels.
    ///
    /// # Errors
    /// Queries of another form.
    fn open<'a>(
        &'a self,
        root: &'a SegmentRootKey,
        queries: &'a Kept,
        levels: &[u8],
    ) -> Result<Box<dyn Opening + 'a>>;

    /// Unit rows of a segment: those `wanted`, or all of them.
    ///
    /// # Errors
    /// [`Error::Range`] for a row that is not there; words that do not decrypt, or are not those that were sealed.
    fn decrypt_rows(
        &self,
        root: &SegmentRootKey,
        stored: &StoredRows<'_>,
        wanted: Option<&[usize]>,
    ) -> Result<Vec<f32>>;

    /// What a server needs to answer encrypted queries of `epoch`; `None` where queries are plain.
    fn evaluation_keys(
        &self,
        _root: &SegmentRootKey,
        _epoch: u32,
    ) -> Result<Option<Arc<EvaluationKeys>>> {
        Ok(None)
    }

    /// Takes in the evaluation keys that a server was given, where they are not those that the key
    /// gives.
    ///
    /// # Errors
    /// Damaged bytes, another key or index; a form without.
    fn hold_evaluation(&self, _root: &SegmentRootKey, _bytes: &[u8]) -> Result<()> {
        let what = Kind::EvaluationKeys.as_str();
        Err(Reader::new(what, &[]).error("the index has none").into())
    }

    /// What writes queries under masks that were sent ahead, where answers come in halves.
    fn masked_queries(&self) -> Option<&dyn MaskedQueries> {
        None
    }

    /// Where the index's key pair is, or will be; `None` in forms without one.
    fn key_pair(&self) -> Option<&dyn KeyPairSlot> {
        None
    }
}

/// Writes queries whose masks were sent before.
pub(in crate::search) trait MaskedQueries {
    /// The words that answers to queries for levels up to `top_level` are wanted in.
    ///
    /// # Errors
    /// A level that is none.
    fn words(&self, top_level: u8, format: AnswerFormat) -> Result<Option<WordsAsked>>;

    /// As [`KeyHolderHalf::encode_queries`], under one mask a row. Each of them serves once: two queries under one
    /// give away their difference.
    ///
    /// # Errors
    /// No randomness for the noise.
    fn encode_masked(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        top_level: u8,
        epoch: u32,
        format: AnswerFormat,
        masks: &[MaskSeed],
    ) -> Result<EncodedQueries>;
}

/// Plain queries, which take no key to write.
pub(in crate::search) trait PlainQueries {
    /// The key that they name.
    ///
    /// # Errors
    /// A public key that is missing, superfluous, or not one of the index.
    fn key(&self, spec: &IndexSpec, public_key: Option<&[u8]>) -> Result<KeyId>;

    /// The body of a message.
    ///
    /// # Errors
    /// Rows that the form cannot round.
    fn encode(&self, spec: &IndexSpec, rows: &Checked<'_>) -> Result<Vec<u8>>;
}

/// The key pair of an index under an additively homomorphic scheme. It is set once.
pub(in crate::search) trait KeyPairSlot {
    /// Makes it.
    fn generate(&self) -> Result<()>;

    /// Opens a sealed one.
    fn open(&self, root: &SegmentRootKey, sealed: &[u8]) -> Result<()>;

    /// Seals it.
    fn seal(&self, root: &SegmentRootKey) -> Result<Vec<u8>>;

    /// Its public half, framed.
    fn public_key(&self) -> Result<Vec<u8>>;
}

/// A segment as it is stored, to be decrypted.
pub(in crate::search) struct StoredRows<'a> {
    pub head: &'a SegmentHead,
    /// Words of every row, zeros for those that were taken out.
    pub words: &'a [u8],
    pub witness: &'a [u8],
}

/// Of all rows those `wanted`, in that order.
pub(in crate::search) fn select_rows(
    all: Vec<f32>,
    wanted: Option<&[usize]>,
    dimension: usize,
) -> Result<Vec<f32>> {
    let Some(wanted) = wanted else { return Ok(all) };
    let mut found = Vec::with_capacity(wanted.len() * dimension);
    for &row in wanted {
        let one = all.chunks_exact(dimension).nth(row).ok_or_else(|| Error::Range {
            what: "a row to unseal",
            expected: format!("below {}", all.len() / dimension),
            actual: row.to_string(),
        })?;
        found.extend_from_slice(one);
    }
    Ok(found)
}
