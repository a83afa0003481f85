//! Ranking by words, or by sparse vectors: exact, at the key holder, from what lies sealed beside the rows. The server is asked
//! nothing about a question: it sees that the words of all segments are read, once, whatever is looked for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ciphervec_owner::search::Origin;
use ciphervec_owner::{Id, SegmentId};

use crate::change::{RECORDS, StoredSegment, TERMS};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::matches::Matches;
use crate::records::bm25::{Corpus, rarity};
use crate::records::sparse::{Kind, Sparse, SparseVector};
use crate::records::terms::{Terms, TermsBuilder};
use crate::records::words::each_word;
use crate::replica::Replica;
use crate::replica::asking::Question;
use crate::replica::fusion::{Asked, ByWords, Hybrid};
use crate::sorting::sort_by;
use crate::threads::heavy;

/// Rows of a segment that are there, and may be found.
struct Part {
    id: SegmentId,
    terms: Arc<Terms>,
    there: Vec<bool>,
    allowed: Option<Vec<bool>>,
}

/// A word of a question, or an index, and how much it weighs there.
type Word = (String, f64);

impl Replica {
    /// What rows are ranked by beside vectors.
    fn sparse(&self) -> Result<Sparse> {
        self.description.sparse.ok_or_else(|| {
            Error::Input(format!(
                "{} was made without sparse, which a fusion needs. Leave the fusion out, or put its rows into a collection with it.",
                self.name()
            ))
        })
    }

    /// That rows are ranked by what is asked.
    ///
    /// # Errors
    /// [`Error::Input`] where they are not.
    pub fn check_asked(&self, asked: &Asked) -> Result<()> {
        match (self.sparse()?, asked) {
            (Sparse::Bm25(_), Asked::Texts(_)) | (Sparse::Vectors, Asked::Vectors(_)) => Ok(()),
            (Sparse::Bm25(_), Asked::Vectors(_)) => Error::input(format!(
                "{} ranks by the words of documents. Ask it with texts, not with sparse vectors.",
                self.name()
            )),
            (Sparse::Vectors, Asked::Texts(_)) => Error::input(format!(
                "{} ranks by sparse vectors. Ask it with such, not with texts alone.",
                self.name()
            )),
        }
    }

    /// That rows have sparse vectors to be read.
    ///
    /// # Errors
    /// [`Error::Input`] where they have none.
    pub fn check_sparse_kept(&self) -> Result<()> {
        match self.description.sparse {
            Some(Sparse::Vectors) => Ok(()),
            Some(Sparse::Bm25(_)) => Error::input(format!(
                "{} ranks by the words of documents, and has no sparse vectors to read. Read its documents.",
                self.name()
            )),
            None => Error::input(format!(
                "{} was made without sparse vectors, so that it has none to read.",
                self.name()
            )),
        }
    }

    /// The highest rows by the words that are asked, as many as `count`, and what words say of the rows that `found` has.
    pub async fn ranked_by_words(
        &mut self,
        host: &dyn Host,
        question: &Question,
        Hybrid { asked, idf, .. }: &Hybrid,
        found: &[Matches],
        count: usize,
    ) -> Result<Vec<ByWords>> {
        let sparse = self.sparse()?;
        let parts = self.parts(host, question).await?;
        let corpus = heavy(|| corpus(&parts));
        let mut ranked = Vec::with_capacity(found.len());
        for (words, found) in words_of(asked).iter().zip(found) {
            let scores = heavy(|| scores(sparse, *idf, &corpus, &parts, words));
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
            let there = mask(&self.view().live_rows(id));
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
                self.view().live_rows(segment.id).iter().all(|row| rows.binary_search(row).is_ok())
            });
            if of_all {
                return Ok(Arc::clone(terms));
            }
        }
        let sealed =
            segment.has(TERMS) && matches!(self.directory.origin(segment.id), Some(Origin::Owner));
        let kind = self.sparse()?.kind();
        let (terms, rows) = match sealed {
            true => (self.read_terms(host, segment, kind).await?, None),
            false => {
                let rows = self.view().live_rows(segment.id);
                (self.terms_of_records(host, segment, kind, &rows).await?, Some(rows))
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
        kind: Kind,
        rows: &[u32],
    ) -> Result<Terms> {
        let mut made = TermsBuilder::new(kind, segment.rows);
        if segment.may_have(RECORDS) {
            let names = self.ids_of(&[(segment.id, rows.to_vec())]);
            let rows: Vec<_> = rows.iter().copied().zip(&names).collect();
            let records = self.records(host, segment, &rows).await?;
            for ((row, _), record) in rows.iter().zip(records) {
                made.set(*row, &record)?;
            }
        }
        Terms::read(&made.to_bytes(), kind, segment.rows)
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
        sort_by(&mut named, |a, b| a.0.cmp(&b.0));
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

fn words_of(asked: &Asked) -> Vec<Vec<Word>> {
    let of_text = |text: &String| {
        let mut words: Vec<Word> = Vec::new();
        each_word(text, |word| match words.iter_mut().find(|(known, _)| known == word) {
            Some((_, times)) => *times += 1.0,
            None => words.push((word.to_owned(), 1.0)),
        });
        words
    };
    let of_vector = |vector: &SparseVector| {
        vector.pairs().map(|(index, weight)| (index.to_string(), f64::from(weight))).collect()
    };
    match asked {
        Asked::Texts(texts) => texts.iter().map(of_text).collect(),
        Asked::Vectors(vectors) => vectors.iter().map(of_vector).collect(),
    }
}

/// By part, what the words that are asked say of each row.
fn scores(
    sparse: Sparse,
    idf: bool,
    corpus: &Corpus,
    parts: &[Part],
    words: &[Word],
) -> Vec<Vec<f64>> {
    let all = parts.iter().flat_map(|part| &part.there).filter(|there| **there).count() as f64;
    let mut scores: Vec<_> = parts.iter().map(|part| vec![0.0; part.there.len()]).collect();
    for (word, asked) in words {
        let places = |part: &Part| -> Vec<(u32, u32)> {
            part.terms.places(word).filter(|(row, _)| part.there[*row as usize]).collect()
        };
        let places: Vec<_> = parts.iter().map(places).collect();
        let having: u64 = places.iter().map(|places| places.len() as u64).sum();
        let rare = if idf { rarity(all, having as f64) } else { 1.0 };
        for ((Part { terms, .. }, places), scores) in parts.iter().zip(places).zip(&mut scores) {
            for (row, times) in places {
                let says = match sparse {
                    Sparse::Bm25(bm25) => {
                        bm25.weight(corpus, having, times, terms.lengths()[row as usize])
                    }
                    Sparse::Vectors => rare * f64::from(f32::from_bits(times)),
                };
                scores[row as usize] += asked * says;
            }
        }
    }
    scores
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
    sort_by(&mut hits, order);
    hits
}
