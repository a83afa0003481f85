//! Contracts of a form: what the form-blind search asks of each, one for the key holder and one for the server. Both sides.
//!
//! A form is a folder beside this file and a row in [`super::of`]. Heads of segments, filters, ids, norms and ranking are
//! the search's; words, ciphertexts, keys and scores are the form's.

use super::halves::HalfAnswers;
#[cfg(feature = "client")]
use super::halves::MaskSeed;
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::search::entry::{Chosen, SegmentReader};
use crate::search::message::{QueryHead, WordsAsked};
use crate::search::segment::{Segment, SegmentHead};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::wire::{KeyId, Reader};
use std::sync::Arc;
#[cfg(feature = "client")]
use {
    crate::index::network::Network, crate::search::quantize::Checked,
    crate::search::root_key::SegmentRootKey, ciphervec_he::lattice::SegmentId,
    ciphervec_he::lattice::ring::EvaluationKeys, ciphervec_he::lattice::ring::Hints,
    ciphervec_he::wire::Kind, zeroize::Zeroizing,
};

#[cfg(feature = "client")]
pub(in crate::search) use super::opening::{
    AnswerBlocks, AnswerPart, Estimates, ExactCosine, Kept, OpenedSegment, Opening, RowSum, Secrets,
};

/// A form as an index's description names it: the layout that both halves agree on, and the way to either half.
pub(in crate::search) trait SearchForm: Sync {
    /// Whether anything is encrypted, and there is a key to seal under.
    #[cfg(feature = "client")]
    fn seals(&self) -> bool {
        true
    }

    /// Whether rows are encrypted: heads of segments then name the key.
    fn encrypts_rows(&self) -> bool {
        true
    }

    /// Whether segments are packed for a level of the query tree.
    fn has_levels(&self) -> bool {
        false
    }

    /// Bytes of the words of `rows` rows; `None` where they are a frame, which checks its own length.
    fn words_len(&self, spec: &IndexSpec, rows: usize, level: u8) -> Result<Option<usize>>;

    /// Bytes of one query's answer over `rows` rows, in the words that the query asked for; `None` where the answers to all
    /// queries of a message say how long they are.
    ///
    /// # Errors
    /// A level that is none, or that no words were asked for.
    fn answer_len(
        &self,
        spec: &IndexSpec,
        rows: usize,
        level: u8,
        words: Option<&WordsAsked>,
    ) -> Result<Option<usize>>;

    /// The blocks that one query's answer is made of; `None` where the answers to all queries are one.
    ///
    /// # Errors
    /// As [`Self::answer_len`].
    #[cfg(feature = "client")]
    fn answer_blocks(
        &self,
        _spec: &IndexSpec,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<AnswerBlocks>> {
        Ok(None)
    }

    /// Bytes that an answer has for this level and each query, whatever the segments.
    ///
    /// # Errors
    /// A level that no words were asked for.
    fn sums_len(&self, _level: u8, _words: Option<&WordsAsked>) -> Result<usize> {
        Ok(0)
    }

    /// The form's half answers, where one can be asked for ahead.
    fn halves(&self) -> Option<&dyn HalfAnswers> {
        None
    }

    /// Bytes that a server takes beside segments and answers for so many queries of one message over segments of these
    /// levels.
    fn working_len(&self, _spec: &IndexSpec, _levels: &[u8], _queries: usize) -> Result<usize> {
        Ok(0)
    }

    /// Whether a segment of so many rows may be packed for this level in an index that has had `total`: a deeper level costs
    /// every query precision, and only a segment that fills a block, or is cheapest so, is worth it.
    fn may_pack(&self, _spec: &IndexSpec, _rows: usize, level: u8, _total: usize) -> Result<bool> {
        Ok(level == 0)
    }

    /// What takes deleted rows out of a segment without a key, where the form can.
    fn pruner(&self) -> Option<&dyn Pruner> {
        None
    }

    /// The server's half of an index.
    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>>;

    /// What needs no key at all because queries are plain, where they are.
    #[cfg(feature = "client")]
    fn plain_queries(&self) -> Option<&dyn PlainQueries> {
        None
    }

    /// The key holder's half of an index, under the public masks of `mask_seed`.
    #[cfg(feature = "client")]
    fn key_holder(&self, spec: &IndexSpec, mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>>;

    /// The half that encrypts rows and opens nothing; `index_key` is the public key of the index's key pair.
    #[cfg(feature = "client")]
    fn writer(
        &self,
        spec: &IndexSpec,
        mask_seed: [u8; 32],
        index_key: &[u8],
    ) -> Result<Box<dyn RowEncryptor>> {
        self.check_index_key(spec, index_key)?;
        Ok(self.key_holder(spec, mask_seed)?)
    }

    /// Refuses bytes that are not the public key of an index; in most forms there is none.
    #[cfg(feature = "client")]
    fn check_index_key(&self, _spec: &IndexSpec, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let what = Kind::PublicKey.as_str();
        Err(Reader::new(what, bytes).error("the lattice scheme has no public key").into())
    }
}

/// Takes rows out of segments whose rows have words of their own.
pub(in crate::search) trait Pruner {
    /// Bytes of the words of all rows, zeros for those that are not `kept`.
    #[cfg(feature = "client")]
    fn spread(&self, words: &[u8], dimension: usize, kept: &[bool]) -> Vec<u8>;

    /// Copies the words of the rows to `keep` into `out`; `words` are of as many rows as `keep` has.
    fn prune(&self, words: &[u8], dimension: usize, keep: &[bool], out: &mut [u8]);
}

/// One message of queries, read as far as it is the same in every form.
pub(in crate::search) struct Request<'a> {
    pub head: QueryHead,
    /// The key that it names.
    pub key: KeyId,
    pub body: Reader<'a>,
    pub chosen: Vec<Chosen<'a>>,
}

/// Where a server spent its time, in seconds.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct ServerTimings {
    /// Reading and expanding queries, mask sums included.
    pub expand: f64,
    /// The products.
    pub scan: f64,
    /// Modulus switching and writing the answer.
    pub respond: f64,
}

/// An answer with what it took.
pub struct Evaluation {
    /// What goes back to the owner.
    pub bytes: Vec<u8>,
    /// Where the time went.
    pub timings: ServerTimings,
}

/// What runs work on threads that the caller chose.
pub type Runner<'a> = &'a (dyn Fn(&mut (dyn FnMut() + Send)) + Sync);

/// Where an answer goes that is not to be held as a whole: to whoever opens it in this process.
pub struct Sink<'a> {
    /// What runs the work between two pieces. Pieces are written outside of it, so that threads which open them are not
    /// those that it waits for.
    pub run: Runner<'a>,
    /// Takes the next piece; whether another one is wanted.
    pub write: &'a mut dyn FnMut(&[u8]) -> bool,
}

/// Bytes of answers after which a piece ends with its segment.
pub(in crate::search) const PIECE: usize = 1 << 20;

impl Sink<'_> {
    /// Does the work of one piece.
    pub(in crate::search) fn work(
        &self,
        mut piece: impl FnMut() -> Result<()> + Send,
    ) -> Result<()> {
        let mut done = Ok(());
        (self.run)(&mut || done = piece());
        done
    }

    /// Writes an answer that is made at once.
    pub(in crate::search) fn whole(
        &mut self,
        mut answer: impl FnMut() -> Option<Result<Evaluation>> + Send,
    ) -> Result<ServerTimings> {
        let mut made = None;
        self.work(|| {
            made = answer().transpose()?;
            Ok(())
        })?;
        let Some(Evaluation { bytes, timings }) = made else { return Ok(ServerTimings::default()) };
        (self.write)(&bytes);
        Ok(timings)
    }
}

/// How many of the segments ahead make the next piece, by the bytes of their answers.
pub(in crate::search) fn next_piece(lengths: impl Iterator<Item = usize>) -> usize {
    let before = |bytes: &mut usize, length: usize| {
        let there = *bytes;
        *bytes += length;
        (there < PIECE).then_some(())
    };
    lengths.scan(0, before).count()
}

/// The server's half of one index: evaluation keys enter, segments are read, requests are answered. It cannot name a secret
/// key. Shared between the states of an index; a change gives another one.
pub(in crate::search) trait ServerHalf: Send + Sync {
    /// The half that has these evaluation keys as well, and their epoch. `held` is the key of the segments that are there.
    ///
    /// # Errors
    /// Damaged bytes, another index or another key; a form that needs no keys.
    fn with_keys(&self, bytes: &[u8], held: Option<KeyId>) -> Result<(Arc<dyn ServerHalf>, u32)>;

    /// The half without the keys of an epoch; `None` if it has none.
    fn without_epoch(&self, _epoch: u32) -> Option<Arc<dyn ServerHalf>> {
        None
    }

    /// Reads the rows of a segment whose head has been.
    ///
    /// # Errors
    /// Words or ciphertexts that the form does not have.
    fn read_rows(&self, head: SegmentHead, bytes: AlignedBytes) -> Result<Segment>;

    /// Answers requests that came together, each as if it had come alone.
    ///
    /// # Errors
    /// A segment that could not be read; what is wrong with one request is its own answer.
    fn score(
        &self,
        requests: Vec<Request<'_>>,
        rows: &dyn SegmentReader,
    ) -> Result<Vec<Result<Evaluation>>>;

    /// Answers one request piece by piece, where the form can; what leaves is, but for its checksum, what [`Self::score`]
    /// makes.
    ///
    /// # Errors
    /// As [`Self::score`], for this request.
    fn score_into(
        &self,
        request: Request<'_>,
        rows: &dyn SegmentReader,
        sink: &mut Sink<'_>,
    ) -> Result<ServerTimings> {
        let mut request = Some(request);
        sink.whole(|| {
            // One request has one answer.
            match self.score(vec![request.take()?], rows) {
                Ok(mut answers) => answers.pop(),
                Err(error) => Some(Err(error)),
            }
        })
    }
}

/// The error of a form without evaluation keys.
pub(in crate::search) fn no_keys(spec: &IndexSpec) -> Error {
    Error::choice("mode", "sealed or sealed-query to hold evaluation keys", spec.mode().as_str())
}

/// Refuses another key than the expected one.
pub(in crate::search) fn expect_key(
    what: &'static str,
    expected: KeyId,
    actual: KeyId,
) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into())
}

/// Rows of one segment, encrypted.
#[cfg(feature = "client")]
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
#[cfg(feature = "client")]
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
#[cfg(feature = "client")]
pub(in crate::search) struct EncodedQueries {
    pub body: Vec<u8>,
    /// The key that the message names.
    pub key: KeyId,
    /// What opening the answer takes.
    pub kept: Kept,
    /// The words that the answer is wanted in.
    pub words: Option<WordsAsked>,
}

/// What an answer may look like: what its server knows, and what it is for.
#[cfg(feature = "client")]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AnswerFormat {
    /// Version 1, of which every server makes answers.
    First,
    /// Words as long as the precision needs; whatever is done with the answer.
    #[default]
    Precise,
    /// As [`Self::Precise`], with mask sums rounded as well: the rounding says something about the secrets of rows, which no
    /// flood covers, so that results are the owner's alone.
    Brief,
}

/// What rows are packed for.
#[cfg(feature = "client")]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// Rows that the index will hold.
    pub rows: usize,
    /// What its answers travel over.
    pub network: Network,
}

#[cfg(feature = "client")]
impl Expected {
    /// So many rows, over the network that is taken for granted.
    pub fn rows(rows: usize) -> Self {
        Expected { rows, network: Network::default() }
    }
}

/// How the rows of an index are packed, and what that costs.
#[cfg(feature = "client")]
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
#[cfg(feature = "client")]
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

/// The key holder's half of one index: rows and queries enter encrypted, scores and rows leave decrypted.
#[cfg(feature = "client")]
pub(in crate::search) trait KeyHolderHalf: RowEncryptor {
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

    /// Blocks of a segment whose answers are not checked once the server has taken the deleted rows out.
    fn unchecked_blocks(&self, _witness: &[u8], _deleted: &[bool]) -> usize {
        0
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

    /// Takes in `count` plain queries that somebody else wrote, who named `key`.
    ///
    /// # Errors
    /// Queries that no unit vector rounds to; another key.
    fn read_queries(&self, count: u32, key: KeyId, body: Reader<'_>) -> Result<Kept>;

    /// Bytes of the mask sums of one query at a level.
    ///
    /// # Errors
    /// A form without; queries of another form; a level that was not asked about.
    fn sums_len(&self, _queries: &Kept, _level: u8) -> Result<usize> {
        Err(Reader::new(Kind::Response.as_str(), &[]).error("no mask sums expected").into())
    }

    /// What one answer is opened with: `sums` is what it says of all segments.
    ///
    /// # Errors
    /// Damaged bytes; queries of another form.
    fn open<'a>(
        &'a self,
        root: &'a SegmentRootKey,
        queries: &'a Kept,
        sums: Vec<LevelSums>,
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
    ) -> Result<Option<EvaluationKeys>> {
        Ok(None)
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
#[cfg(feature = "client")]
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
#[cfg(feature = "client")]
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
#[cfg(feature = "client")]
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
#[cfg(feature = "client")]
pub(in crate::search) struct StoredRows<'a> {
    pub head: &'a SegmentHead,
    /// Words of every row, zeros for those that were taken out.
    pub words: &'a [u8],
    /// Which rows were not, where that is not all.
    pub there: Option<&'a [bool]>,
    pub witness: &'a [u8],
}

/// Of all rows those `wanted`, in that order.
#[cfg(feature = "client")]
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

/// The mask sums of every query of an answer at one level, as bytes; forms without have none.
#[cfg(feature = "client")]
pub struct LevelSums {
    pub level: u8,
    pub sums: Vec<Vec<u8>>,
}

/// The error of a form whose queries are not plain.
#[cfg(feature = "client")]
pub(in crate::search) fn not_probed(spec: &IndexSpec) -> Error {
    let known = "sealed-index, whose queries are plain";
    Error::choice("the mode to probe", known, spec.mode().as_str())
}
