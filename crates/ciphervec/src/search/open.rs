//! Opening answers: remove masks, scale, rank, round. Response bytes enter, hits leave. Owner only.

use super::catalogue::{Catalogue, Entry, Selection};
use super::owner::Owner;
use super::probe::expect_cosines;
use super::query::Query;
use super::rank::{Ask, Hit, Ranking};
use super::seal::Engine;
use super::secrets::SegmentSecrets;
use crate::error::{Error, Result};
use crate::message::{answer_len, expect_params, read_bitmap};
use crate::{Metric, Mode, Precision};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::compact;
use ciphervec_he::lattice::ring::{Layout, MaskSums, QueryOpener};
use ciphervec_he::wire::{self, KeyId, Kind, Reader};
use std::time::Instant;

/// Where the owner spent its time, in seconds.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct OwnerTimings {
    /// Removing masks and decrypting.
    pub decrypt: f64,
    /// Selecting the hits.
    pub rank: f64,
}

/// What an answer says, one list of hits a query, closest first.
pub struct Opened {
    /// The hits.
    pub hits: Vec<Vec<Hit>>,
    /// Where the time went.
    pub timings: OwnerTimings,
}

/// What one answer is opened with: the compact form's combined masks or the ring form's mask sums.
struct Opening<'a> {
    owner: &'a Owner,
    query: &'a Query,
    combined: Vec<u64>,
    sums: Vec<(u8, Vec<MaskSums>)>,
}

/// The part of an answer that belongs to one segment.
struct Part<'a> {
    entry: usize,
    matching: Option<Vec<bool>>,
    answers: &'a [u8],
}

impl Owner {
    /// The step that cosines are rounded to before anyone sees them: one query's exact scores would give the segment's
    /// secret away (`docs/sealed.md`, section 4).
    pub fn rounding(&self) -> f64 {
        match (self.spec().mode(), self.spec().precision()) {
            (Mode::Open, _) => 0.0,
            // Hamming distances are whole numbers already.
            _ if self.spec().metric() == Metric::Hamming => 0.0,
            // Here rounding hides nothing; digits below the error are not worth showing.
            _ if self.spec().scheme().is_additive() => {
                self.spec().similarity_precision().scales().step
            }
            (_, Precision::Wide) => f64::exp2(-30.0),
            _ => f64::exp2(-16.0),
        }
    }

    /// Opens a server's answer to `query`.
    ///
    /// # Errors
    /// Damaged or foreign bytes; an answer that names segments the catalogue does not know, or leaves some out.
    pub fn open(
        &self,
        query: &Query,
        response: &[u8],
        catalogue: &Catalogue,
        ask: Ask,
        selection: Option<&Selection>,
    ) -> Result<Opened> {
        self.open_without(query, response, catalogue, ask, selection, &[])
    }

    /// As [`Self::open`], for a catalogue that has moved on since the query was asked: segments in `newer` may be missing
    /// from the answer, because it was computed before they were committed. No other may.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_without(
        &self,
        query: &Query,
        response: &[u8],
        catalogue: &Catalogue,
        ask: Ask,
        selection: Option<&Selection>,
        newer: &[SegmentId],
    ) -> Result<Opened> {
        let (header, payload) = wire::open(Kind::Response, response)?;
        let what = Kind::Response.as_str();
        expect_params(self.spec(), what, &header)?;
        let expected = match (&self.engine, self.spec().mode().encrypts_queries()) {
            (Engine::Additive(_), _) => self.key_pair()?.key_id(),
            (_, true) => self.key_id(),
            (_, false) => KeyId::default(),
        };
        if header.key != expected {
            return Err(ciphervec_he::Error::WrongKey { what, expected, actual: header.key }.into());
        }
        let mut reader = Reader::new(what, payload);
        self.spec().expect_id(what, reader.array()?)?;
        let count = reader.u32()? as usize;
        if count != query.len() {
            return Err(reader
                .error(format!("answers to {} queries expected, {count} came", query.len()))
                .into());
        }
        let sums = self.read_sums(&mut reader, count)?;
        let parts = self.read_parts(&mut reader, query, catalogue, newer)?;
        reader.finish()?;
        let mut timings = OwnerTimings::default();
        let step = self.rounding();
        let mut rankings: Vec<Ranking<'_>> = query
            .norms
            .iter()
            .map(|&norm| Ranking::new(self.spec().metric(), ask, step, norm, catalogue.entries()))
            .collect();
        let start = Instant::now();
        let combined = match &self.engine {
            Engine::Compact { masks, .. } if !parts.is_empty() => masks.combine(&query.integers),
            _ => Vec::new(),
        };
        let opening = Opening { owner: self, query, combined, sums };
        timings.decrypt += start.elapsed().as_secs_f64();
        let mut cosines = Vec::new();
        for part in &parts {
            let entry = &catalogue.entries()[part.entry];
            let rows = entry.deleted.len();
            if let Some(probes) = &query.probes {
                let start = Instant::now();
                let cosines =
                    self.key_pair()?.open_scores(self.spec(), rows, probes, part.answers)?;
                expect_cosines(query, &cosines)?;
                timings.decrypt += start.elapsed().as_secs_f64();
                let start = Instant::now();
                for (ranking, cosines) in rankings.iter_mut().zip(cosines.chunks_exact(rows)) {
                    ranking.visit(part.entry, cosines, part.matching.as_deref(), selection);
                }
                timings.rank += start.elapsed().as_secs_f64();
                continue;
            }
            let length = answer_len(self.spec(), rows, entry.sidecar.level)?;
            for (index, ranking) in rankings.iter_mut().enumerate() {
                let answer = &part.answers[index * length..][..length];
                let start = Instant::now();
                cosines.clear();
                cosines.resize(rows, 0.0);
                opening.cosines(index, entry, answer, &mut cosines)?;
                expect_cosines(query, &cosines)?;
                timings.decrypt += start.elapsed().as_secs_f64();
                let start = Instant::now();
                ranking.visit(part.entry, &cosines, part.matching.as_deref(), selection);
                timings.rank += start.elapsed().as_secs_f64();
            }
        }
        let start = Instant::now();
        let hits = rankings.into_iter().map(Ranking::finish).collect();
        timings.rank += start.elapsed().as_secs_f64();
        Ok(Opened { hits, timings })
    }

    /// Mask sums: per level, one pair a query.
    fn read_sums(&self, reader: &mut Reader<'_>, count: usize) -> Result<Vec<(u8, Vec<MaskSums>)>> {
        let levels = reader.u8()?;
        let Engine::Ring { ring, .. } = &self.engine else {
            return if levels == 0 {
                Ok(Vec::new())
            } else {
                Err(reader.error("no mask sums expected").into())
            };
        };
        (0..levels)
            .map(|_| {
                let level = reader.u8()?;
                let sums = (0..count)
                    .map(|_| MaskSums::read(ring, reader))
                    .collect::<core::result::Result<_, _>>()?;
                Ok((level, sums))
            })
            .collect()
    }

    /// The answers of every segment; all known segments but the `newer` ones must be there unless a filter chose among
    /// them.
    fn read_parts<'a>(
        &self,
        reader: &mut Reader<'a>,
        query: &Query,
        catalogue: &Catalogue,
        newer: &[SegmentId],
    ) -> Result<Vec<Part<'a>>> {
        let segments = reader.u32()? as usize;
        let mut parts: Vec<Part<'a>> = Vec::new();
        for _ in 0..segments {
            let id = SegmentId(reader.array()?);
            let (rows, level, filtered) = (reader.u32()?, reader.u8()?, reader.u8()?);
            let disagree = |detail: String| Error::Catalogue { segment: id.to_string(), detail };
            if catalogue.refused().contains(&id) {
                self.pass_over(reader, query, rows, level, filtered)?;
                continue;
            }
            let entry = catalogue.entries().iter().position(|entry| entry.id == id);
            let entry =
                entry.ok_or_else(|| disagree("the catalogue does not know it".to_owned()))?;
            let sidecar = &catalogue.entries()[entry].sidecar;
            if (rows, level) != (sidecar.rows, sidecar.level) {
                let known = format!("{} rows at level {}", sidecar.rows, sidecar.level);
                return Err(disagree(format!(
                    "{known} expected, {rows} rows at level {level} came"
                )));
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
            && let Some(missing) = catalogue.entries().iter().enumerate().find(|(index, entry)| {
                !newer.contains(&entry.id) && !parts.iter().any(|part| part.entry == *index)
            })
        {
            let detail = "the server left it out".to_owned();
            return Err(Error::Catalogue { segment: missing.1.id.to_string(), detail });
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
        let length = match &self.engine {
            // A frame of all queries' scores.
            Engine::Additive(_) => usize::try_from(reader.u64()?).unwrap_or(usize::MAX),
            _ => query.len() * answer_len(self.spec(), rows as usize, level)?,
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

impl Opening<'_> {
    /// The cosines of one query with every row of one segment, in full precision.
    fn cosines(&self, index: usize, entry: &Entry, answer: &[u8], out: &mut [f64]) -> Result<()> {
        let (owner, query) = (self.owner, self.query);
        let (rows, level) = (out.len(), entry.sidecar.level);
        let secrets = match entry.secrets.get() {
            Some(secrets) => secrets,
            None => {
                let derived = owner.secrets(entry.root(owner), entry.id, rows, level)?;
                entry.secrets.get_or_init(|| derived)
            }
        };
        let mut unit = query.scales.vector * query.scales.query;
        match (&owner.engine, secrets) {
            (Engine::Compact { scheme, .. }, SegmentSecrets::Compact(key)) => {
                let degree = scheme.width().degree();
                compact::unmask(
                    scheme,
                    key,
                    &self.combined[index * degree..][..degree],
                    answer,
                    out,
                );
            }
            (Engine::Ring { ring, .. }, secrets) => {
                unit *= f64::exp2(f64::from(level));
                let layout = Layout::new(owner.spec().dimension(), level)?;
                let key = match secrets {
                    SegmentSecrets::Ring(key) => Some(key),
                    _ => None,
                };
                let masked =
                    self.sums.iter().find(|(of, _)| *of == level).map(|(_, sums)| &sums[index]);
                if key.is_some() != masked.is_some() {
                    let detail = format!("the answer has no mask sums of level {level}");
                    return Err(Error::Catalogue { segment: entry.id.to_string(), detail });
                }
                let secret = owner.query_key(ring, query.epoch);
                QueryOpener::new(ring, &secret, masked).open(&layout, key, answer, out);
            }
            _ => {
                let words = answer.as_chunks::<4>().0;
                out.iter_mut()
                    .zip(words)
                    .for_each(|(out, word)| *out = f64::from(f32::from_le_bytes(*word)));
            }
        }
        let inverse = 1.0 / unit;
        out.iter_mut().for_each(|cosine| *cosine *= inverse);
        Ok(())
    }
}
