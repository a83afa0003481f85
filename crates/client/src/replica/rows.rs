//! Which rows a request selects, and their parts as it wants them read.

use std::collections::HashSet;

use ciphervec_owner::search::Exactness;
use ciphervec_owner::{Id, Metric, Mode};

use crate::error::Result;
use crate::host::Host;
use crate::records::Filter;
use crate::records::record::Record;
use crate::replica::Replica;
use crate::replica::fetching::Way;
use crate::replica::request::{GetResult, Parts, Row, Selection};

/// How parts of so many rows would be read; an error where they can't be.
pub async fn way(
    replica: &mut Replica,
    host: &dyn Host,
    parts: Parts,
    bound: usize,
) -> Result<Way> {
    if parts.multi {
        replica.encoder()?;
    }
    if parts.sparse {
        replica.check_sparse_kept()?;
    }
    replica.way(host, parts.fetch, parts.wanted(), bound).await
}

pub fn filter_of(replica: &Replica, which: &Selection) -> Result<Option<Filter>> {
    if which.filter.is_none() && which.document.is_none() {
        return Ok(None);
    }
    let filterable = &replica.description.filterable;
    Filter::new(which.filter.as_deref(), which.document.as_deref(), filterable).map(Some)
}

pub async fn select(
    replica: &mut Replica,
    host: &dyn Host,
    names: Option<Vec<Id>>,
    filter: Option<&Filter>,
    most: usize,
) -> Result<Vec<Id>> {
    let Some(filter) = filter else {
        return Ok(names
            .unwrap_or_else(|| replica.directory.records().map(|(id, ..)| id.clone()).collect()));
    };
    let most = if names.is_none() { most } else { usize::MAX };
    let passing = replica.matching(host, filter, true, most).await?;
    let passing = replica.ids_of(&passing);
    if passing.is_empty() {
        replica.say_why(host, filter).await?;
    }
    let Some(names) = names else { return Ok(passing) };
    let allowed: HashSet<_> = passing.into_iter().collect();
    Ok(names.into_iter().filter(|name| allowed.contains(name)).collect())
}

/// The parts of these rows, which are at most `bound`.
pub async fn rows_of(
    replica: &mut Replica,
    host: &dyn Host,
    ids: Vec<Id>,
    parts: Parts,
    bound: usize,
) -> Result<GetResult> {
    let way = way(replica, host, parts, bound).await?;
    let (vectors, records) = match way {
        Way::Private(bound) => {
            let (records, kept) = replica.fetch_private(host, &ids, parts.wanted(), bound).await?;
            let vectors = replica.vectors_of_kept(&kept)?;
            (parts.vectors().then_some(vectors), records)
        }
        Way::All => {
            let (records, vectors) = replica.read_whole(host, &ids, parts.wanted()).await?;
            (vectors, records)
        }
        Way::Segments | Way::Rows => {
            let vectors =
                if parts.vectors() { Some(replica.read_vectors(host, &ids).await?) } else { None };
            let records = match (parts.wanted().0, way) {
                (false, _) => Vec::new(),
                (true, Way::Rows) => replica.fetch_rows(host, &ids).await?,
                (true, _) => replica.read_records(host, &ids).await?,
            };
            (vectors, records)
        }
    };
    let spec = &replica.description.spec;
    let outdated = || {
        let mut segments = replica.directory.segments();
        segments.any(|(id, ..)| replica.directory.exactness(id) == Some(Exactness::Outdated))
    };
    let owners_only = spec.metric() != Metric::Hamming
        && vectors.as_ref().is_some_and(|vectors| vectors.original.contains(&false))
        && (spec.mode() == Mode::Sealed || outdated());
    let dimension = spec.dimension();
    let mut rows = Vec::with_capacity(ids.len());
    for (i, id) in ids.into_iter().enumerate() {
        let mut record = match records.get(i) {
            Some(record) => Record::read(record)?,
            None => Record::default(),
        };
        let sparse = record.sparse.take().filter(|_| parts.sparse);
        let (metadata, document) = if parts.records { record.parts() } else { (None, None) };
        let embedding =
            vectors.as_ref().map(|vectors| vectors.rows[i * dimension..][..dimension].to_vec());
        let matrix = vectors.as_ref().and_then(|vectors| vectors.matrices.get(i));
        let tokens = matrix.filter(|_| parts.multi).map(|matrix| replica.matrix(matrix));
        rows.push(Row {
            id,
            metadata,
            document,
            embedding: embedding.filter(|_| parts.embeddings),
            tokens: tokens.transpose()?.map(|matrix| matrix.values()),
            sparse,
        });
    }
    Ok(GetResult { rows, owners_only })
}
