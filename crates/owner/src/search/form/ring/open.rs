//! Opening ring scores: answers are checked against the tree that an honest server expands, and decrypted. Owner only.
//!
//! To a server's half in the same process the trees are lent: they are expanded once for the answer and its opening, under the key
//! holder's own evaluation keys, whatever the server's half has.

use super::packing::{answer_words, vectors};
use crate::error::{Error, Result};
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{AnswerPart, Estimates, OpenedSegment, Opening, Secrets};
use crate::search::message::WordsAsked;
use crate::search::root_key::SegmentRootKey;
use ciphervec::search::TreeLender;
use ciphervec_he_secret::lattice::ring::{
    self, AnswerCheck, AskedLevel, CheckWeights, Ciphertext, EvaluationKeys, Expanded, Layout,
    Masks, OpenedRows, QueryKey, QueryOpener, Ring, RowSigns, ScoreNoise, SegmentKey,
};
use ciphervec_he_secret::lattice::{Scales, SegmentId};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use zeroize::Zeroizing;

/// What opening takes of queries that were sent.
pub struct RingQueries {
    pub epoch: u32,
    pub scales: Scales,
    pub words: Option<WordsAsked>,
    /// The integers that were encrypted, query by query.
    pub integers: Zeroizing<Vec<i64>>,
    /// Each query's ciphertexts.
    pub pieces: Vec<Vec<Ciphertext>>,
    /// The variance that a fold adds to scores, where clusters were chosen.
    pub fold: OnceLock<f64>,
    /// Their trees, if they were expanded before the answer came.
    pub prepared: OnceLock<Arc<Trees>>,
}

/// By query, then by level.
pub type Trees = Vec<Vec<AskedLevel>>;

/// The trees of all `queries` at these levels, as their server expands them under `keys`.
///
/// # Errors
/// A level that is none, or that the keys do not reach.
pub fn expand(
    (spec, rows, ring): (&IndexSpec, Rows, &Ring),
    queries: &RingQueries,
    secret: &QueryKey,
    keys: &EvaluationKeys,
    masks: &Masks,
    levels: &[u8],
) -> Result<Trees> {
    let layouts = levels.iter().map(|&level| Layout::new(spec.dimension(), level));
    let layouts = layouts.collect::<core::result::Result<Vec<_>, _>>()?;
    let masks = (rows == Rows::Encrypted).then_some(masks);
    let expand = |pieces: &Vec<Ciphertext>| {
        Ok(AskedLevel::expand(ring, keys, secret, masks, pieces, &layouts)?)
    };
    queries.pieces.iter().map(expand).collect()
}

/// The secret of queries, and the evaluation keys that their trees are grown with.
type Keys = (Arc<QueryKey>, Arc<EvaluationKeys>);

/// The trees of some queries, as far as they are lent by now.
pub struct RingLender<'a> {
    ring: &'a Ring,
    /// Of sealed rows.
    masks: Option<&'a Masks>,
    /// Makes the keys of the queries' epoch.
    keys: Box<dyn Fn() -> Keys + Sync + 'a>,
    queries: &'a RingQueries,
    /// What opening takes of them, query by query; empty where it is not known yet.
    found: Mutex<Trees>,
}

impl<'a> RingLender<'a> {
    pub fn new(
        (rows, ring, masks): (Rows, &'a Ring, &'a Masks),
        keys: impl Fn() -> Keys + Sync + 'a,
        queries: &'a RingQueries,
    ) -> Self {
        let found = Mutex::new(queries.pieces.iter().map(|_| Vec::new()).collect());
        let masks = (rows == Rows::Encrypted).then_some(masks);
        RingLender { ring, masks, keys: Box::new(keys), queries, found }
    }
}

impl TreeLender for RingLender<'_> {
    fn expand(
        &self,
        query: usize,
        pieces: &[Ciphertext],
        layouts: &[Layout],
    ) -> Result<Vec<Expanded>> {
        let RingLender { ring, masks, keys, queries, found } = self;
        let (secret, keys) = keys();
        let trees = ring::expand(ring, &keys, pieces, layouts)?;
        let asked = trees.iter().map(|tree| AskedLevel::of(ring, &secret, *masks, tree));
        let asked = asked.collect();
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = found.get_mut(query) {
            *place = asked;
        }
        if found.iter().all(|asked| !asked.is_empty()) {
            queries.prepared.get_or_init(|| Arc::new(core::mem::take(&mut *found)));
        }
        Ok(trees)
    }
}

/// Whether there is a tree of each query at each of these levels.
pub fn reaches(trees: &Trees, levels: &[u8]) -> bool {
    trees
        .iter()
        .all(|tree| levels.iter().all(|level| tree.iter().any(|asked| asked.level() == *level)))
}

/// The answers to some queries, with the trees that an honest server has expanded them to.
pub struct RingScores<'a> {
    spec: &'a IndexSpec,
    rows: Rows,
    ring: &'a Ring,
    queries: &'a RingQueries,
    secret: Arc<QueryKey>,
    asked: Arc<Trees>,
}

/// What answers about a segment, or some blocks of it, are opened with. Wiped on drop.
pub struct RowSecrets {
    pub key: Option<SegmentKey>,
    pub signs: RowSigns,
    pub check: Option<AnswerCheck>,
}

impl RowSecrets {
    /// Of these blocks of a segment with this witness: none in segments sealed before there were checks.
    ///
    /// # Errors
    /// A witness of another length.
    pub fn new(
        (spec, form, ring): (&IndexSpec, Rows, &Ring),
        (root, id, rows, witness): (&SegmentRootKey, SegmentId, usize, &[u8]),
        layout: &Layout,
        blocks: Range<usize>,
    ) -> Result<Self> {
        let (master, binding) = (root.master(), spec.binding());
        let key = (form == Rows::Encrypted)
            .then(|| SegmentKey::derive_blocks(ring, master, &binding, id, blocks.clone()));
        if witness.is_empty() {
            return Ok(RowSecrets { key, signs: RowSigns::positive(), check: None });
        }
        let weights = CheckWeights::derive(master, &binding, id, layout);
        let check = AnswerCheck::new(weights, layout, rows, witness, blocks);
        if check.is_none() {
            let detail = format!("{} bytes are no sums of its {rows} rows", witness.len());
            return Err(Error::Directory { segment: id.to_string(), detail });
        }
        Ok(RowSecrets { key, signs: RowSigns::of(id, rows), check })
    }

    /// With how the segment is packed.
    pub fn opened<'a>(&'a self, layout: &'a Layout) -> OpenedRows<'a> {
        let RowSecrets { key, signs, check } = self;
        OpenedRows { layout, key: key.as_ref(), signs, check: check.as_ref() }
    }
}

impl<'a> RingScores<'a> {
    /// Of queries whose trees reach the levels of the segments that are answered about.
    pub fn new(
        (spec, rows, ring): (&'a IndexSpec, Rows, &'a Ring),
        queries: &'a RingQueries,
        secret: Arc<QueryKey>,
        asked: Arc<Trees>,
    ) -> Self {
        RingScores { spec, rows, ring, queries, secret, asked }
    }
}

impl Opening for RingScores<'_> {
    fn estimate(
        &self,
        segment: &OpenedSegment<'_>,
        part: &AnswerPart<'_>,
        visit: &mut dyn FnMut(usize, &Estimates<'_>) -> Result<()>,
    ) -> Result<()> {
        let (ring, level, rows) = (self.ring, segment.level, &part.rows);
        let dimension = self.spec.dimension();
        let layout = Layout::new(dimension, level)?;
        let first = rows.start / layout.vectors_per_block();
        let secrets = self.secrets(segment, &layout, first..layout.blocks(rows.end))?;
        let opened = secrets.opened(&layout);
        let scales = self.queries.scales;
        let inverse = 1.0 / (scales.vector * scales.query * f64::exp2(f64::from(level)));
        let words = answer_words(self.queries.words.as_ref(), level)?;
        let signed = self.spec.incarnation().is_some();
        let noise = ScoreNoise::of(&layout, vectors(self.rows), scales, words, signed);
        let fold = self.queries.fold.get().filter(|_| part.folded);
        let noise = fold.map_or(noise, |fold| noise.with(*fold));
        let mut cosines = Zeroizing::new(vec![0.0; rows.len()]);
        let mut sound = true;
        for query in part.queries.clone() {
            let asked = self.asked[query].iter().find(|asked| asked.level() == level);
            let asked = asked.ok_or_else(|| Error::Directory {
                segment: segment.id.to_string(),
                detail: format!("no query reached its level {level}"),
            })?;
            let integers = &self.queries.integers[query * dimension..][..dimension];
            let opener = QueryOpener::new(ring, &self.secret, asked, words);
            let answer = (first, part.answer(query));
            sound &= opener.open(&opened, &noise, integers, answer, &mut cosines);
            cosines.iter_mut().for_each(|cosine| *cosine *= inverse);
            visit(query, &Estimates { first: rows.start, ..Estimates::settled(&cosines) })?;
        }
        if sound { Ok(()) } else { Err(Error::Tampered { segments: vec![segment.id] }) }
    }
}

impl RingScores<'_> {
    /// The secrets of these blocks of a segment, or of all that are kept.
    fn secrets<'b>(
        &self,
        segment: &OpenedSegment<'b>,
        layout: &Layout,
        blocks: Range<usize>,
    ) -> Result<Secrets<'b, RowSecrets>> {
        let blocks = if segment.keep { 0..layout.blocks(segment.rows) } else { blocks };
        let index = (self.spec, self.rows, self.ring);
        let names = (segment.root, segment.id, segment.rows, segment.witness);
        segment.secrets(|| RowSecrets::new(index, names, layout, blocks))
    }
}
