//! Opens answers, whole or as they come: reads and scores the part of every segment, and returns hits. Owner only.

use super::answer_reader::{AnswerReader, Input};
use super::directory::{Entry, SegmentDirectory};
use super::flood::Flood;
use super::form::{self, AnswerPart, Runner, expect_key};
use super::message::{chosen_place, expect_params, read_bitmap};
use super::owner::Owner;
use super::pieces::at_once;
use super::query::Query;
use super::rank::Retrieval;
use super::score::{Asked, Opened, Scoring};
use super::selection::Selection;
use super::{QUERY_VERSION, TreeLender, WORDS_VERSION};
use crate::error::{Error, Result};
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::{self, Reader};
use std::io::Read;
use std::ops::Range;

const WHAT: &str = "a response";

/// A part of one segment's answers that is read at once: which queries, which rows, how many bytes.
type Cut = (Range<usize>, Range<usize>, usize);

/// What an answer is opened for. A [`Retrieval`] alone is one.
#[derive(Clone, Copy)]
pub struct OpenOptions<'a> {
    /// The closest, or those within a threshold.
    pub retrieval: Retrieval,
    /// The only rows to be returned, if there are such.
    pub selection: Option<&'a Selection>,
    /// Segments that may be missing from the answer, because it was computed before they were committed. No other may.
    pub newer: &'a [SegmentId],
    /// Noise that is added to the score of every row first, for others to see, in mode `sealed`: what is ranked, compared and
    /// returned is a function of the flooded scores. The caller has counted what they tell ([`Owner::hints`]) before.
    pub flood: Option<&'a Flood>,
}

impl OpenOptions<'_> {
    /// For the owner, of all rows and segments.
    pub fn new(retrieval: Retrieval) -> Self {
        OpenOptions { retrieval, selection: None, newer: &[], flood: None }
    }
}

impl From<Retrieval> for OpenOptions<'_> {
    fn from(retrieval: Retrieval) -> Self {
        Self::new(retrieval)
    }
}

impl Owner {
    /// The step that cosines are rounded to where they carry noise: digits below it say nothing of rows
    /// (`docs/sealed.md`, section 4).
    pub fn rounding(&self) -> f64 {
        // Whole numbers are rounded already.
        if self.spec().metric().compares_signs() { 0.0 } else { self.form().rounding() }
    }

    /// Does ahead what opening an answer takes beside the answer itself, while the server works on it: the query's tree is
    /// expanded, which the answer is checked against.
    ///
    /// # Errors
    /// As [`Self::open`], of the query.
    pub fn prepare(&self, query: &Query, levels: &[u8]) -> Result<()> {
        if query.foreign {
            return Ok(());
        }
        self.form().prepare(self.root(), &query.kept, levels)
    }

    /// What a server's half in this process is handed beside `query` ([`super::ServerIndex::evaluate_beside`]), so that trees
    /// are expanded once for the answer and for [`Self::open`]; `None` where that spares nothing.
    ///
    /// # Errors
    /// As [`Self::open`], of the query.
    pub fn lender<'a>(&'a self, query: &'a Query) -> Result<Option<Box<dyn TreeLender + 'a>>> {
        if query.foreign {
            return Ok(None);
        }
        self.form().lender(self.root(), &query.kept)
    }

    /// Opens a server's answer to `query`.
    ///
    /// # Errors
    /// Damaged or foreign bytes; an answer that names segments the directory does not know, or leaves some out;
    /// [`Error::Tampered`] for one that is not what the segments give to the query, [`Error::Mismatched`] if somebody else
    /// made that; with a flood another mode, and rows of a writer's that were not adopted.
    pub fn open<'a>(
        &self,
        query: &Query,
        response: &[u8],
        directory: &SegmentDirectory,
        options: impl Into<OpenOptions<'a>>,
    ) -> Result<Opened> {
        let input = Input::Whole(response);
        self.open_now(query, input, directory, &options.into(), &|work| work())
    }

    /// As [`Self::open`], from an answer that is read as it comes. No more of it is in
    /// memory than a megabyte, or one block of a segment; what is kept of it is what may still be returned.
    ///
    /// # Errors
    /// As [`Self::open`]. Nothing is returned of an answer that does not end as it should.
    pub fn open_stream(
        &self,
        query: &Query,
        answer: &mut (dyn Read + Send),
        directory: &SegmentDirectory,
        options: &OpenOptions<'_>,
        run: Runner<'_>,
    ) -> Result<Opened> {
        self.open_now(query, Input::Stream(answer), directory, options, run)
    }

    /// As [`Self::open_stream`], from a server in this process ([`super::ServerIndex::evaluate_into`]): an answer that is
    /// opened while it is computed has no checksum. It may come from nowhere else.
    ///
    /// # Errors
    /// As [`Self::open_stream`].
    pub fn open_local(
        &self,
        query: &Query,
        answer: &mut (dyn Read + Send),
        directory: &SegmentDirectory,
        options: &OpenOptions<'_>,
        run: Runner<'_>,
    ) -> Result<Opened> {
        self.open_now(query, Input::Local(answer), directory, options, run)
    }

    /// From what is there, or read as it is needed: nothing to wait for.
    fn open_now(
        &self,
        query: &Query,
        answer: Input<'_>,
        directory: &SegmentDirectory,
        options: &OpenOptions<'_>,
        run: Runner<'_>,
    ) -> Result<Opened> {
        let opened = at_once(self.open_with(query, answer, directory, options, run));
        opened.unwrap_or_else(|| Err(Reader::new(WHAT, &[]).error("it has not come").into()))
    }

    pub(super) async fn open_with(
        &self,
        query: &Query,
        answer: Input<'_>,
        directory: &SegmentDirectory,
        options: &OpenOptions<'_>,
        run: Runner<'_>,
    ) -> Result<Opened> {
        if options.flood.is_some() {
            self.expect_flooded(directory)?;
        }
        let mut reader = AnswerReader::new(answer, QUERY_VERSION).await?;
        let mut scoring = None;
        let read = self.read(&mut reader, query, directory, options, run, &mut scoring).await;
        // Damage is what is said of a damaged answer. But a check that has failed is never forgotten, however the answer goes
        // on or ends: whoever sent it could watch what follows as often as it liked.
        let ended = reader.finish().await.and(read);
        match (ended, scoring) {
            (Ok(()), Some(scoring)) => scoring.finish(),
            (Ok(()), None) => Err(Reader::new(WHAT, &[]).error("it has not come").into()),
            (Err(error), scoring) => {
                Err(scoring.and_then(|scoring| scoring.failure()).unwrap_or(error))
            }
        }
    }

    /// Reads an answer from its header to its end, and puts into `scoring` what it says.
    async fn read<'a>(
        &'a self,
        reader: &mut AnswerReader<'_>,
        query: &'a Query,
        directory: &'a SegmentDirectory,
        options: &OpenOptions<'a>,
        run: Runner<'_>,
        scoring: &mut Option<Scoring<'a>>,
    ) -> Result<()> {
        let error = |detail: String| Error::from(Reader::new(WHAT, &[]).error(detail));
        expect_params(self.spec(), WHAT, reader.header())?;
        expect_key(WHAT, self.form().response_key(self.root())?, reader.header().key)?;
        self.spec().expect_id(WHAT, reader.array().await?)?;
        let asked = match (&query.words, query.folded.is_empty()) {
            (_, false) => QUERY_VERSION,
            (Some(_), true) => WORDS_VERSION,
            (None, true) => wire::VERSION,
        };
        if reader.version() != asked {
            let came = reader.version();
            return Err(error(format!("version {asked} was asked for, version {came} came")));
        }
        let count = reader.u32().await? as usize;
        if count != query.len() {
            return Err(error(format!(
                "answers to {} queries expected, {count} came",
                query.len()
            )));
        }
        self.skip_sums(reader, query).await?;
        let levels = directory.levels(query.segments.as_deref());
        let opening = self.form().open(self.root(), &query.kept, &levels)?;
        let OpenOptions { retrieval, selection, newer, flood } = *options;
        let asked = Asked { owner: self, query, directory, retrieval, selection, flood };
        let scoring = scoring.insert(Scoring::new(asked, opening));
        self.read_segments(reader, query, directory, newer, scoring, run).await?;
        reader.expect_end()
    }

    /// Reads past what belongs to all segments: the mask sums of each query at every level, which the
    /// owner computes itself.
    async fn skip_sums(&self, reader: &mut AnswerReader<'_>, query: &Query) -> Result<()> {
        for _ in 0..reader.u8().await? {
            let level = reader.u8().await?;
            let length = form::of(self.spec()).sums_len(level, query.words.as_ref())?;
            reader.skip(query.len().saturating_mul(length)).await?;
        }
        Ok(())
    }

    /// The answers of every segment; all known segments that the query is about, but the `newer` ones, must be there unless a
    /// filter chose among them.
    async fn read_segments(
        &self,
        reader: &mut AnswerReader<'_>,
        query: &Query,
        directory: &SegmentDirectory,
        newer: &[SegmentId],
        scoring: &mut Scoring<'_>,
        run: Runner<'_>,
    ) -> Result<()> {
        let segments = reader.u32().await?;
        let mut seen = vec![false; directory.entries().len()];
        for answered in 0..segments {
            let mut id = SegmentId(reader.array().await?);
            let folded = query.folded.get(answered as usize);
            if let Some(chosen) = folded {
                if id != chosen_place(answered as usize) {
                    let detail = format!("the answer about chosen cluster {answered} expected");
                    return Err(Reader::new(WHAT, &[]).error(detail).into());
                }
                id = *chosen;
            }
            let (rows, level, filtered) =
                (reader.u32().await?, reader.u8().await?, reader.u8().await?);
            let disagree = |detail: String| Error::Directory { segment: id.to_string(), detail };
            if directory.refused().contains(&id) || directory.quarantined().contains(&id) {
                self.pass_over(reader, query, rows, level, filtered).await?;
                continue;
            }
            let entry = directory.position(id);
            let entry = entry
                .ok_or_else(|| disagree("the segment directory does not know it".to_owned()))?;
            let sidecar = &directory.entries()[entry].sidecar;
            if (rows, level) != (sidecar.rows, sidecar.level) {
                let known = format!("{} rows at level {}", sidecar.rows, sidecar.level);
                return Err(disagree(format!(
                    "{known} expected, {rows} rows at level {level} came"
                )));
            }
            if query.segments.as_ref().is_some_and(|named| !named.contains(&id)) {
                return Err(disagree("it was not asked about".to_owned()));
            }
            let known = &directory.entries()[entry];
            let left_out = scoring.leaves_out(known);
            if known.sidecar.centre != query.centre && !left_out {
                return Err(disagree(
                    "its rows were sealed less another centre than the query's".to_owned(),
                ));
            }
            if std::mem::replace(&mut seen[entry], true) {
                return Err(disagree("it was answered twice".to_owned()));
            }
            if filtered > 1 || (filtered == 1) != query.filtered {
                return Err(disagree("the filter was not applied".to_owned()));
            }
            let matching = match query.filtered {
                true => {
                    let bytes = reader.take((rows as usize).div_ceil(8)).await?;
                    Some(read_bitmap(&mut Reader::new(WHAT, bytes), rows as usize)?)
                }
                false => None,
            };
            scoring.begin(entry, matching.as_deref());
            let part = (entry, rows, level, folded.is_some());
            self.read_answers(reader, query, part, matching, scoring, run).await?;
        }
        let missing = directory.entries().iter().zip(seen).find(|(entry, seen)| {
            !seen
                && query.segments.as_ref().is_none_or(|named| named.contains(&entry.id))
                && !newer.contains(&entry.id)
                && !directory.quarantined().contains(&entry.id)
                && (!query.filtered || chosen(query, entry))
        });
        if let Some((missing, _)) = missing {
            let detail = "the server left it out".to_owned();
            return Err(Error::Directory { segment: missing.id.to_string(), detail });
        }
        Ok(())
    }

    /// The answers of one segment to all queries, part by part.
    async fn read_answers(
        &self,
        reader: &mut AnswerReader<'_>,
        query: &Query,
        (entry, rows, level, folded): (usize, u32, u8, bool),
        matching: Option<Vec<bool>>,
        scoring: &mut Scoring<'_>,
        run: Runner<'_>,
    ) -> Result<()> {
        for (queries, rows, length) in self.parts(reader, query, rows as usize, level).await? {
            let part = AnswerPart { queries, rows, bytes: reader.take(length).await?, folded };
            let mut scored = Ok(());
            run(&mut || scored = scoring.part(entry, &part, matching.as_deref()));
            scored?;
        }
        let mut ended = Ok(());
        run(&mut || ended = scoring.end(entry));
        ended
    }

    /// How one segment's answers are cut: queries, rows and bytes of each part.
    async fn parts(
        &self,
        reader: &mut AnswerReader<'_>,
        query: &Query,
        rows: usize,
        level: u8,
    ) -> Result<Vec<Cut>> {
        let (spec, words, count) = (self.spec(), query.words.as_ref(), query.len());
        let form = form::of(spec);
        let (answer, blocks) =
            (form.answer_len(spec, rows, level, words)?, form.answer_blocks(spec, level, words)?);
        let (Some(answer), Some(block)) = (answer, blocks) else {
            let length =
                usize::try_from(u64::from_le_bytes(reader.array().await?)).unwrap_or(usize::MAX);
            return Ok(vec![(0..count, 0..rows, length)]);
        };
        let piece = reader.piece();
        if answer <= piece {
            let at_once = (piece / answer.max(1)).clamp(1, count.max(1));
            let starts = (0..count).step_by(at_once);
            let queries = starts.map(|first| first..count.min(first + at_once));
            return Ok(queries
                .map(|all| (all.clone(), 0..rows, all.len().saturating_mul(answer)))
                .collect());
        }
        let at_once = (piece / block.bytes).max(1);
        let mut parts = Vec::new();
        for query in 0..count {
            let mut left = answer;
            for first in (0..rows).step_by(at_once * block.rows) {
                let last = rows.min(first + at_once * block.rows);
                let length = left.min(at_once * block.bytes);
                parts.push((query..query + 1, first..last, length));
                left -= length;
            }
        }
        Ok(parts)
    }

    /// Reads past the part of a segment that does not open.
    async fn pass_over(
        &self,
        reader: &mut AnswerReader<'_>,
        query: &Query,
        rows: u32,
        level: u8,
        filtered: u8,
    ) -> Result<()> {
        let rows = rows as usize;
        if filtered == 1 {
            reader.skip(rows.div_ceil(8)).await?;
        }
        let answer =
            form::of(self.spec()).answer_len(self.spec(), rows, level, query.words.as_ref())?;
        let length = match answer {
            Some(answer) => query.len().saturating_mul(answer),
            None => {
                usize::try_from(u64::from_le_bytes(reader.array().await?)).unwrap_or(usize::MAX)
            }
        };
        reader.skip(length).await
    }
}

/// Whether a filter chooses live rows of a segment, as far as the owner knows.
fn chosen(query: &Query, entry: &Entry) -> bool {
    let rows = query.matching.get().and_then(|rows| rows.get(&entry.id));
    rows.is_some_and(|rows| rows.iter().zip(entry.deleted.iter()).any(|(one, gone)| *one && !gone))
}
