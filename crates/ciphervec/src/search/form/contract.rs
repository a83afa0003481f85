//! Contracts of a form: what the form-blind search asks of each, whoever asks, and of its half on a server. Both sides.
//!
//! A form is a folder beside this file and a row in `of`. Heads of segments, filters, ids, norms and ranking are
//! the search's; words, ciphertexts, keys and scores are the form's.

use super::halves::HalfAnswers;
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::search::entry::{Chosen, SegmentReader};
use crate::search::message::{KeysName, QueryHead, WordsAsked};
use crate::search::segment::{Segment, SegmentHead};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::retrieval::ChoiceShape;
use ciphervec_he::lattice::ring::{Ciphertext, EvaluationKeys, Expanded, Layout};
use ciphervec_he::wire::{KeyId, Reader};
use std::sync::Arc;

/// A form as an index's description names it: the layout that both halves agree on.
pub trait SearchForm: Sync {
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

    /// Bytes that a server takes beside these for folding clusters of so many rows at this level.
    ///
    /// # Errors
    /// A level that is none.
    fn fold_len(
        &self,
        _spec: &IndexSpec,
        _rows: usize,
        _level: u8,
        _fold: &ChoiceShape,
    ) -> Result<usize> {
        Ok(0)
    }

    /// Whether a segment of so many rows may be packed for this level in an index that has had `total`: a deeper level costs
    /// every query precision, and only a segment that fills a block, or is cheapest so, is worth it.
    fn may_pack(&self, _spec: &IndexSpec, _rows: usize, level: u8, _total: usize) -> Result<bool> {
        Ok(level == 0)
    }

    /// What puts the words of a segment in their places that servers of release 0.1 took rows out of, where they did.
    fn pruned(&self) -> Option<&dyn Pruned> {
        None
    }
}

/// A form, with the way to the server's half. Apart from what both sides ask of it, so that a key holder's module has none of
/// the server's code.
pub(in crate::search) trait ServerForm {
    /// The server's half of an index.
    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>>;
}

/// Segments that some rows were taken out of.
pub trait Pruned {
    /// Bytes of the words of all rows, zeros for those that are not `kept`.
    fn spread(&self, words: &[u8], dimension: usize, kept: &[bool]) -> Vec<u8>;
}

/// One message of queries, read as far as it is the same in every form.
pub struct Request<'a> {
    pub head: QueryHead,
    /// The key that it names.
    pub key: KeyId,
    pub body: Reader<'a>,
    pub chosen: Vec<Chosen<'a>>,
    /// Who expands its queries, if that is not the server.
    pub lender: Option<&'a dyn TreeLender>,
}

/// The key holder of queries that are answered in the same process: opening the answer takes their trees too, so that he
/// expands them, under his own evaluation keys, and lends them to the server's half.
pub trait TreeLender: Sync {
    /// The trees of query number `query`, which is these ciphertexts, at these levels.
    ///
    /// # Errors
    /// A level that the evaluation keys don't reach.
    fn expand(
        &self,
        query: usize,
        pieces: &[Ciphertext],
        layouts: &[Layout],
    ) -> Result<Vec<Expanded>>;
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

/// Evaluation keys, and what halves of answers call them.
pub(in crate::search) struct HeldKeys {
    pub keys: EvaluationKeys,
    pub name: KeysName,
}

/// The evaluation keys of one session epoch, read and checked. An index does not hold them: who answers a query has them at
/// hand, and may let go of them whenever it likes.
#[derive(Clone)]
pub struct SessionKeys(pub(in crate::search) Arc<HeldKeys>);

impl SessionKeys {
    /// The session.
    pub fn epoch(&self) -> u32 {
        self.0.keys.epoch()
    }

    /// Bytes that they take in memory.
    pub fn byte_len(&self) -> usize {
        self.0.keys.memory()
    }

    /// Whether both are the same, bit for bit.
    pub fn same(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

/// The server's half of one index: takes evaluation keys, reads segments and answers requests. It cannot name a secret
/// key. Shared between the states of an index; a change gives another one.
pub trait ServerHalf: Send + Sync {
    /// The half that has these evaluation keys as well, and their epoch. `held` is the key of the segments that are there.
    ///
    /// # Errors
    /// Damaged bytes, another index or another key; a form that needs no keys.
    fn with_keys(&self, bytes: &[u8], held: Option<KeyId>) -> Result<(Arc<dyn ServerHalf>, u32)>;

    /// The half without the keys of an epoch; `None` if it has none.
    fn without_epoch(&self, _epoch: u32) -> Option<Arc<dyn ServerHalf>> {
        None
    }

    /// Reads the evaluation keys of a session, which have to be of the owner of those that are held; `None` for a form that
    /// has no sessions.
    fn session_keys(&self, _bytes: &[u8]) -> Option<Result<SessionKeys>> {
        None
    }

    /// The half that has these as well; `None` if they are not of the owner whose keys are held now.
    fn with_session(&self, _keys: &SessionKeys) -> Option<Arc<dyn ServerHalf>> {
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

    /// Answers one request piece by piece, where the form can; the answer is, but for its checksum, what [`Self::score`]
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
pub fn expect_key(what: &'static str, expected: KeyId, actual: KeyId) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into())
}
