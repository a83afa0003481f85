//! Opening answers: response bytes enter; the parts of every segment are read and scored; hits leave. Owner only.

use super::directory::{SegmentDirectory, Selection};
use super::flood::Flood;
use super::form::{self, expect_key};
use super::message::{expect_params, read_bitmap};
use super::owner::Owner;
use super::query::Query;
use super::rank::Retrieval;
use super::score::{self, Asked, Opened, Part};
use crate::error::{Error, Result};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{self, Kind, Reader};

impl Owner {
    /// The step that cosines are rounded to where they carry noise: digits below it say nothing of rows
    /// (`docs/sealed.md`, section 4).
    pub fn rounding(&self) -> f64 {
        // Whole numbers are rounded already.
        if self.spec().metric().compares_signs() { 0.0 } else { self.form().rounding() }
    }

    /// Opens a server's answer to `query`.
    ///
    /// # Errors
    /// Damaged or foreign bytes; an answer that names segments the directory does not know, or leaves some out;
    /// [`Error::Tampered`] for one that is not what the segments give to the query, [`Error::Mismatched`] if somebody else
    /// made that.
    pub fn open(
        &self,
        query: &Query,
        response: &[u8],
        directory: &SegmentDirectory,
        retrieval: Retrieval,
        selection: Option<&Selection>,
    ) -> Result<Opened> {
        self.open_without(query, response, directory, retrieval, selection, &[])
    }

    /// As [`Self::open`], for a directory that has moved on since the query was asked: segments in `newer` may be missing
    /// from the answer, because it was computed before they were committed. No other may.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_without(
        &self,
        query: &Query,
        response: &[u8],
        directory: &SegmentDirectory,
        retrieval: Retrieval,
        selection: Option<&Selection>,
        newer: &[SegmentId],
    ) -> Result<Opened> {
        self.open_with(query, response, directory, retrieval, selection, newer, None)
    }

    /// As [`Self::open_without`], for others to see, in mode `sealed`: noise is added to the score of every row first, and
    /// what is ranked, compared and returned is a function of the flooded scores. The caller has counted what they tell
    /// ([`Self::hints`]) before.
    ///
    /// # Errors
    /// As [`Self::open`]; another mode; rows of a writer's that were not adopted.
    #[expect(clippy::too_many_arguments, reason = "those of opening, and the flood")]
    pub fn open_flooded(
        &self,
        query: &Query,
        response: &[u8],
        directory: &SegmentDirectory,
        retrieval: Retrieval,
        selection: Option<&Selection>,
        newer: &[SegmentId],
        flood: &Flood,
    ) -> Result<Opened> {
        self.expect_flooded(directory)?;
        self.open_with(query, response, directory, retrieval, selection, newer, Some(flood))
    }

    #[expect(clippy::too_many_arguments, reason = "those of opening, and the flood")]
    fn open_with(
        &self,
        query: &Query,
        response: &[u8],
        directory: &SegmentDirectory,
        retrieval: Retrieval,
        selection: Option<&Selection>,
        newer: &[SegmentId],
        flood: Option<&Flood>,
    ) -> Result<Opened> {
        let (header, payload) = wire::open(Kind::Response, response)?;
        let what = Kind::Response.as_str();
        expect_params(self.spec(), what, &header)?;
        expect_key(what, self.form().response_key(self.root())?, header.key)?;
        let mut reader = Reader::new(what, payload);
        self.spec().expect_id(what, reader.array()?)?;
        let count = reader.u32()? as usize;
        if count != query.len() {
            return Err(reader
                .error(format!("answers to {} queries expected, {count} came", query.len()))
                .into());
        }
        let opening = self.form().open(self.root(), &query.kept, count, &mut reader)?;
        let parts = self.read_parts(&mut reader, query, directory, newer)?;
        reader.finish()?;
        score::hits(
            &Asked { owner: self, query, directory, retrieval, selection, flood },
            &*opening,
            &parts,
        )
    }

    /// The answers of every segment; all known segments that the query is about, but the `newer` ones, must be there unless a
    /// filter chose among them.
    fn read_parts<'a>(
        &self,
        reader: &mut Reader<'a>,
        query: &Query,
        directory: &SegmentDirectory,
        newer: &[SegmentId],
    ) -> Result<Vec<Part<'a>>> {
        let segments = reader.u32()? as usize;
        let mut parts: Vec<Part<'a>> = Vec::new();
        for _ in 0..segments {
            let id = SegmentId(reader.array()?);
            let (rows, level, filtered) = (reader.u32()?, reader.u8()?, reader.u8()?);
            let disagree = |detail: String| Error::Directory { segment: id.to_string(), detail };
            if directory.refused().contains(&id) || directory.quarantined().contains(&id) {
                self.pass_over(reader, query, rows, level, filtered)?;
                continue;
            }
            let entry = directory.entries().iter().position(|entry| entry.id == id);
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
            if parts.iter().any(|part| part.entry == entry) {
                return Err(disagree("it was answered twice".to_owned()));
            }
            if filtered > 1 || (filtered == 1) != query.filtered {
                return Err(disagree("the filter was not applied".to_owned()));
            }
            let matching =
                if query.filtered { Some(read_bitmap(reader, rows as usize)?) } else { None };
            let answers = self.take_answers(reader, query, rows, level)?;
            parts.push(Part { entry, matching, answers });
        }
        if !query.filtered
            && let Some(missing) = directory.entries().iter().enumerate().find(|(index, entry)| {
                query.segments.as_ref().is_none_or(|named| named.contains(&entry.id))
                    && !newer.contains(&entry.id)
                    && !directory.quarantined().contains(&entry.id)
                    && !parts.iter().any(|part| part.entry == *index)
            })
        {
            let detail = "the server left it out".to_owned();
            return Err(Error::Directory { segment: missing.1.id.to_string(), detail });
        }
        Ok(parts)
    }
}

impl Owner {
    /// The answers of one segment to all queries.
    fn take_answers<'a>(
        &self,
        reader: &mut Reader<'a>,
        query: &Query,
        rows: u32,
        level: u8,
    ) -> Result<&'a [u8]> {
        let answer = form::of(self.spec()).answer_len(self.spec(), rows as usize, level)?;
        let length = match answer {
            Some(answer) => query.len() * answer,
            None => usize::try_from(reader.u64()?).unwrap_or(usize::MAX),
        };
        Ok(reader.take(length)?)
    }

    /// Reads past the part of a segment that does not open.
    fn pass_over(
        &self,
        reader: &mut Reader<'_>,
        query: &Query,
        rows: u32,
        level: u8,
        filtered: u8,
    ) -> Result<()> {
        if filtered == 1 {
            read_bitmap(reader, rows as usize)?;
        }
        self.take_answers(reader, query, rows, level).map(drop)
    }
}
