//! Late interaction: rows of many vectors each. The one vector that is made of them is sealed and searched as any other; MaxSim ranks the
//! closest of these at the key holder, from the matrices that are kept beside. A server sees a query of one vector, and how rows are read.

use std::sync::Arc;

use ciphervec_owner::Id;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::matches::Matches;
use crate::records::matrix::{Matrix, Tokens, max_sim};
use crate::records::muvera::{Encoder, Side};
use crate::replica::Replica;
use crate::replica::batch::Records;
use crate::replica::fetch::Fetch;
use crate::replica::fetching::Way;
use crate::sorting::sort_by;
use crate::threads::heavy;

/// Rows that MaxSim ranks for a query, unless told otherwise: as many as are fetched in private at once.
pub const CANDIDATES: usize = 100;

/// What is asked of rows of many vectors.
pub struct Late {
    pub queries: Vec<Tokens>,
    /// How many rows are ranked for each.
    pub candidates: usize,
    pub fetch: Fetch,
}

impl Replica {
    /// What makes one vector of the many of a row.
    ///
    /// # Errors
    /// [`Error::Input`] where rows have one each.
    pub fn encoder(&self) -> Result<Arc<Encoder>> {
        self.description.multi.clone().ok_or_else(|| {
            Error::Input(format!(
                "rows of {} have one vector each: it was made without multi. Pass embeddings, or put its rows into a collection with it.",
                self.name()
            ))
        })
    }

    pub(super) fn matrix(&self, bytes: &[u8]) -> Result<Matrix> {
        Matrix::read(bytes, self.encoder()?.width())?
            .ok_or_else(|| Error::Corrupt(format!("{} has a row without its vectors", self.name())))
    }

    /// How matrices of the closest rows of one query are read.
    pub async fn way_of_late(&mut self, host: &dyn Host, late: &Late) -> Result<Way> {
        let bound = late.candidates.min(self.directory.len());
        self.way(host, late.fetch, (false, true), bound).await
    }

    /// The hits of each query in the order of MaxSim, and how far the score of any of them may be off.
    pub async fn ranked_late(
        &mut self,
        host: &dyn Host,
        late: &Late,
        found: Vec<Matches>,
    ) -> Result<(Vec<Matches>, Vec<f64>)> {
        let (mut all, mut bounds) =
            (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
        for (query, found) in late.queries.iter().zip(found) {
            let way = self.way_of_late(host, late).await?;
            let kept = self.matrices(host, &found.ids, way).await?;
            let scored = heavy(|| {
                let score = |bytes: &Arc<[u8]>| Ok(max_sim(query, &self.matrix(bytes)?));
                kept.iter().map(score).collect::<Result<Vec<_>>>()
            })?;
            let bound = scored.iter().fold(0f64, |most, (_, bound)| most.max(*bound));
            // Equally high ones stay in the order of their one vector.
            let mut hits: Vec<_> = found.ids.into_iter().zip(scored).collect();
            sort_by(&mut hits, |(_, (a, _)), (_, (b, _))| b.total_cmp(a));
            let scores: Vec<f64> = hits.iter().map(|(_, (score, _))| *score).collect();
            all.push(Matches {
                ids: hits.into_iter().map(|(id, _)| id).collect(),
                distances: scores.iter().map(|score| 1.0 - score).collect(),
                scores,
                exact: found.exact,
                checked: found.checked,
            });
            bounds.push(bound);
            host.check()?;
        }
        Ok((all, bounds))
    }

    /// The bytes of the matrices of these rows.
    async fn matrices(&mut self, host: &dyn Host, ids: &[Id], way: Way) -> Result<Vec<Arc<[u8]>>> {
        match way {
            Way::Private(bound) => Ok(self.fetch_private(host, ids, (false, true), bound).await?.1),
            Way::All => {
                let vectors = self.read_whole(host, ids, (false, true)).await?.1;
                Ok(vectors.map(|vectors| vectors.matrices).unwrap_or_default())
            }
            Way::Segments | Way::Rows => {
                let mut found = vec![Arc::from([]); ids.len()];
                for (segment, places) in self.by_segment(ids)? {
                    let rows: Vec<_> = places.iter().map(|(_, row, id)| (*row, *id)).collect();
                    let kept = self.kept_bytes(host, &segment, &rows).await?;
                    for ((position, ..), bytes) in places.iter().zip(kept) {
                        found[*position] = bytes;
                    }
                }
                Ok(found)
            }
        }
    }
}

/// Rows whose vectors were made into the one that is searched, and the bytes that are kept of them.
///
/// # Errors
/// [`Error::Input`] for rows with one vector where they have to have many, and the other way round; [`Error::Rows`] for tokens that are
/// none.
pub fn encoded(encoder: Option<&Encoder>, mut rows: Records) -> Result<(Records, Vec<Arc<[u8]>>)> {
    let Some(encoder) = encoder else {
        if rows.multi.is_empty() {
            return Ok((rows, Vec::new()));
        }
        return Error::input(
            "multi_embeddings are for collections that are made with multi; nothing was written.",
        );
    };
    if !rows.embeddings.is_empty() {
        return Error::input(
            "rows of this collection have many vectors each: pass multi_embeddings, a matrix a row, in place of embeddings.",
        );
    }
    check_tokens(&rows.multi, encoder.width(), "multi_embeddings")?;
    let mut kept = Vec::with_capacity(rows.multi.len());
    for tokens in core::mem::take(&mut rows.multi) {
        heavy(|| {
            let matrix = Matrix::of(&tokens);
            rows.embeddings.extend(encoder.encode(&matrix, Side::Document));
            kept.push(matrix.to_bytes().into());
        });
    }
    Ok((rows, kept))
}

/// That queries are of single vectors, or of many, as rows are.
///
/// # Errors
/// [`Error::Input`] for others, and for what does not go with many.
pub fn check_asked(
    multi: bool,
    (single, many): (bool, bool),
    candidates: Option<usize>,
    within: Option<f64>,
) -> Result<()> {
    let says = match (multi, candidates) {
        (false, None) if !many => return Ok(()),
        (false, _) => {
            "query_multi_embeddings and candidates are for collections that are made with multi; rows of this one have one vector."
        }
        (true, _) if single => {
            "rows of this collection have many vectors each: ask with query_multi_embeddings, a matrix a query, in place of \
             query_embeddings."
        }
        (true, Some(0)) => "candidates must be a whole number of at least 1, got 0.",
        (true, _) if within.is_some() => {
            "within is a distance of single vectors, which MaxSim does not rank by. Leave it out."
        }
        (true, _) => return Ok(()),
    };
    Error::input(says)
}

/// The vectors that queries are asked by.
///
/// # Errors
/// [`Error::Rows`] for tokens that are none.
pub fn asked_by(encoder: &Encoder, queries: &[Tokens]) -> Result<Vec<f32>> {
    check_tokens(queries, encoder.width(), "query_multi_embeddings")?;
    let one = |tokens: &Tokens| heavy(|| encoder.encode(&Matrix::of(tokens), Side::Query));
    Ok(queries.iter().flat_map(one).collect())
}

/// That each of these matrices is what a collection takes whose vectors have `width` numbers; `what` they are called.
///
/// # Errors
/// [`Error::Rows`] naming all that are not.
pub fn check_tokens(given: &[Tokens], width: usize, what: &str) -> Result<()> {
    let fault = |(row, tokens): (usize, &Tokens)| {
        Some((row, format!("{what}[{row}] {}.", tokens.fault(width)?)))
    };
    let faults: Vec<_> = given.iter().enumerate().filter_map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::rows(faults)) }
}
