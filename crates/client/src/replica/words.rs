//! Ranking by words: exact, at the key holder, from words that lie sealed beside the rows. The server is asked nothing about a question: it
//! sees that the words of all segments are read, once, whatever is looked for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ciphervec_owner::search::Origin;
use ciphervec_owner::{Id, SegmentId};

use crate::change::{RECORDS, StoredSegment, TERMS};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::records::bm25::{Bm25, Corpus};
use crate::records::terms::{Terms, TermsBuilder};
use crate::records::words::each_word;
use crate::replica::Replica;
use crate::replica::fusion::ByWords;
use crate::replica::search::{Matches, Question};
use crate::threads::heavy;

/// Rows of a segment that are there, and may be found.
struct Part {
    id: SegmentId,
    terms: Arc<Terms>,
    there: Vec<bool>,
    allowed: Option<Vec<bool>>,
}

/// A word of a question: how often it is asked, and how many rows have it.
type Asked = (u32, u64);

impl Replica {
    /// How rows are ranked by words.
    ///
    /// # Errors
    /// [`Error::Input`] where they are not.
    pub fn bm25(&self) -> Result<Bm25> {
        self.description.sparse.ok_or_else(|| {
            Error::Input(format!(
                "{} was made without sparse, and has no ranking by words. Leave the fusion out, or put its rows into a collection with it.",
                self.name()
            ))
        })
    }

    /// The highest rows by the words of each text, as many as `count`, and what words say of the rows that `found` has.
    pub async fn ranked_by_words(
        &mut self,
        host: &dyn Host,
        question: &Question,
        texts: &[String],
        found: &[Matches],
        count: usize,
    ) -> Result<Vec<ByWords>> {
        let bm25 = self.bm25()?;
        let parts = self.parts(host, question).await?;
        let corpus = heavy(|| corpus(&parts));
        let mut ranked = Vec::with_capacity(texts.len());
        for (text, found) in texts.iter().zip(found) {
            let scores = heavy(|| scores(&bm25, &corpus, &parts, text));
            let place = |id: &Id| {
                let (segment, row) = self.directory.locate(id)?;
                let part = parts.iter().position(|part| part.id == segment)?;
                Some((id.clone(), *scores.get(part)?.get(row as usize)?))
            };
            let others = found.ids.iter().filter_map(place).collect();
            let highest = highest(&parts, &scores, count);
            let named = self.named(&parts, highest);
            ranked.push(ByWords { ranked: named, others });
            host.check()?;
        }
        Ok(ranked)
    }

    /// The segments that a question is about, with their words.
    async fn parts(&mut self, host: &dyn Host, question: &Question) -> Result<Vec<Part>> {
        let mut allowed: Option<HashMap<SegmentId, Vec<u32>>> = None;
        if let Some(filter) = &question.filter {
            // In mode `open` tags are the server's, and metadata decides.
            let by_tags = self.states.present.is_some();
            let rows = self.matching(host, filter, by_tags, usize::MAX).await?;
            allowed = Some(rows.into_iter().collect());
        }
        if let Some(among) = &question.among {
            let mut named: HashMap<SegmentId, Vec<u32>> = HashMap::new();
            for (segment, row) in among.iter().filter_map(|id| self.directory.locate(id)) {
                named.entry(segment).or_default().push(row);
            }
            allowed = Some(match allowed {
                None => named,
                Some(mut passing) => {
                    for (segment, rows) in &mut passing {
                        let mut named = named.remove(segment).unwrap_or_default();
                        named.sort_unstable();
                        rows.retain(|row| named.binary_search(row).is_ok());
                    }
                    passing
                }
            });
        }
        let held = self.directory.quarantined().to_vec();
        let mut entries = self.read_entries();
        entries.retain(|one| !held.contains(&one.id));
        let unread: Vec<_> = entries
            .iter()
            .filter(|one| one.has(TERMS) && !self.payloads.terms.contains_key(&one.id))
            .cloned()
            .collect();
        self.store.prefetch(host, &unread, TERMS).await?;
        let mut parts = Vec::with_capacity(entries.len());
        for one in &entries {
            let mask = |rows: &[u32]| {
                let mut mask = vec![false; one.rows as usize];
                let places = rows.iter().map(|row| *row as usize);
                places.for_each(|row| mask.get_mut(row).into_iter().for_each(|one| *one = true));
                mask
            };
            let (id, terms) = (one.id, self.terms(host, one).await?);
            let there = mask(&self.live_rows(id));
            let of = |all: &HashMap<SegmentId, Vec<u32>>| {
                mask(all.get(&id).map_or(&[][..], Vec::as_slice))
            };
            parts.push(Part { id, terms, there, allowed: allowed.as_ref().map(of) });
        }
        Ok(parts)
    }

    /// The words of a segment, which are held: as its owner sealed them, or of its documents where it has none, as in one of a writer's.
    async fn terms(&mut self, host: &dyn Host, segment: &StoredSegment) -> Result<Arc<Terms>> {
        if let Some((terms, rows)) = self.payloads.terms.get(&segment.id) {
            // Rows that others hid may be there again.
            let of_all = rows.as_ref().is_none_or(|rows| {
                self.live_rows(segment.id).iter().all(|row| rows.binary_search(row).is_ok())
            });
            if of_all {
                return Ok(Arc::clone(terms));
            }
        }
        let sealed =
            segment.has(TERMS) && matches!(self.directory.origin(segment.id), Some(Origin::Owner));
        let (terms, rows) = match sealed {
            true => (self.read_terms(host, segment).await?, None),
            false => {
                let rows = self.live_rows(segment.id);
                (self.terms_of_records(host, segment, &rows).await?, Some(rows))
            }
        };
        let terms = Arc::new(terms);
        self.payloads.terms.insert(segment.id, (Arc::clone(&terms), rows));
        Ok(terms)
    }

    async fn terms_of_records(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        rows: &[u32],
    ) -> Result<Terms> {
        let mut made = TermsBuilder::new(segment.rows);
        if segment.may_have(RECORDS) {
            let names = self.ids_of(&[(segment.id, rows.to_vec())]);
            let rows: Vec<_> = rows.iter().copied().zip(&names).collect();
            let records = self.records(host, segment, &rows).await?;
            for ((row, _), record) in rows.iter().zip(records) {
                made.set(*row, &record)?;
            }
        }
        Terms::read(&made.to_bytes(), segment.rows)
    }

    /// Ids of rows that are there.
    fn named(&self, parts: &[Part], rows: Vec<(usize, u32, f64)>) -> Vec<(Id, f64)> {
        let mut wanted: BTreeMap<usize, Vec<(usize, u32, f64)>> = BTreeMap::new();
        for (rank, (part, row, score)) in rows.into_iter().enumerate() {
            wanted.entry(part).or_default().push((rank, row, score));
        }
        let mut named = Vec::new();
        for (part, rows) in wanted {
            let Some(names) = self.directory.names(parts[part].id) else { continue };
            let names: Vec<_> = names.collect();
            for (rank, row, score) in rows {
                let name = names.get(row as usize).copied().flatten().cloned();
                named.extend(name.map(|id| (rank, id, score)));
            }
        }
        named.sort_by_key(|(rank, ..)| *rank);
        named.into_iter().map(|(_, id, score)| (id, score)).collect()
    }
}

fn corpus(parts: &[Part]) -> Corpus {
    let mut corpus = Corpus::default();
    for Part { terms, there, .. } in parts {
        for (length, _) in
            terms.lengths().iter().zip(there).filter(|(length, there)| **there && **length > 0)
        {
            corpus.rows += 1;
            corpus.words += u64::from(*length);
        }
    }
    corpus
}

/// By part, what the words of a text say of each row.
fn scores(bm25: &Bm25, corpus: &Corpus, parts: &[Part], text: &str) -> Vec<Vec<f64>> {
    let mut words: Vec<(String, Asked)> = Vec::new();
    each_word(text, |word| match words.iter_mut().find(|(known, _)| known == word) {
        Some((_, (times, _))) => *times += 1,
        None => words.push((word.to_owned(), (1, 0))),
    });
    for Part { terms, there, .. } in parts {
        for (word, (_, having)) in &mut words {
            *having += terms.places(word).filter(|(row, _)| there[*row as usize]).count() as u64;
        }
    }
    let of = |Part { terms, there, .. }: &Part| {
        let mut scores = vec![0.0; there.len()];
        for (word, (asked, having)) in &words {
            for (row, times) in terms.places(word).filter(|(row, _)| there[*row as usize]) {
                let length = terms.lengths()[row as usize];
                scores[row as usize] +=
                    f64::from(*asked) * bm25.weight(corpus, *having, times, length);
            }
        }
        scores
    };
    parts.iter().map(of).collect()
}

/// The highest rows that may be found, as many as `count`: part, row, score. Of equally high ones the first that were added.
fn highest(parts: &[Part], scores: &[Vec<f64>], count: usize) -> Vec<(usize, u32, f64)> {
    let mut hits: Vec<(usize, u32, f64)> = Vec::new();
    for (at, (part, scores)) in parts.iter().zip(scores).enumerate() {
        let may = |row: usize| part.allowed.as_ref().is_none_or(|allowed| allowed[row]);
        let rows = scores.iter().enumerate().filter(|(row, score)| **score > 0.0 && may(*row));
        hits.extend(rows.map(|(row, score)| (at, row as u32, *score)));
    }
    let order = |a: &(usize, u32, f64), b: &(usize, u32, f64)| {
        b.2.total_cmp(&a.2).then_with(|| (a.0, a.1).cmp(&(b.0, b.1)))
    };
    if hits.len() > count {
        hits.select_nth_unstable_by(count, order);
        hits.truncate(count);
    }
    hits.sort_unstable_by(order);
    hits
}
