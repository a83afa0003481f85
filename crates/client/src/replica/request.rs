//! What a collection is asked and what it answers, as plain values that every face translates.

use ciphervec_owner::Id;

use crate::replica::fetch::Fetch;
use crate::replica::fusion::Hybrid;

/// Which parts of rows are read, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Metadata and documents.
    pub records: bool,
    /// Vectors.
    pub embeddings: bool,
    /// What a server may see of which rows they are of.
    pub fetch: Fetch,
}

/// Who will read a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The key owner.
    Owner,
    /// Anybody: results of mode `sealed` are functions of rows and queries alone, or flooded with noise that hides that of the key and
    /// counted, as [`crate::Collection::flooding_plan`] says; others that carry noise of the key are refused.
    Others,
}

/// Which rows.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// These ids.
    pub ids: Option<Vec<Id>>,
    /// A filter on metadata, as JSON.
    pub filter: Option<String>,
    /// A filter on documents, as JSON.
    pub document: Option<String>,
}

/// What [`crate::Collection::query`] is asked.
#[derive(Clone, Debug, Default)]
pub struct QueryRequest {
    /// Queries end to end.
    pub embeddings: Vec<f32>,
    /// The most hits of each; 10 where there is no `within` either.
    pub n_results: Option<usize>,
    /// Texts that are asked beside the vectors, by their words; the collection has to be made with [`crate::Choices::sparse`].
    pub hybrid: Option<Hybrid>,
    /// The largest distance.
    pub within: Option<f64>,
    /// Only rows among these.
    pub among: Selection,
    /// What is read of the hits.
    pub parts: Parts,
    /// Who will read them; left out, the key owner.
    pub audience: Option<Audience>,
    /// The standard deviation, as a cosine, of the noise that results for others carry in mode `sealed`. Left out, they are ranked by the
    /// vectors themselves where all of these may be read, and carry none; elsewhere it is 2⁻⁸.
    pub flooding: Option<f64>,
    /// Ask about the others where segments failed a check before.
    pub skip_quarantined: bool,
}

/// One row as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its id.
    pub id: Id,
    /// A JSON object.
    pub metadata: Option<String>,
    /// A text.
    pub document: Option<String>,
    /// Its vector.
    pub embedding: Option<Vec<f32>>,
}

/// A row that is close to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The row.
    pub row: Row,
    /// Lower is closer: 1 − cosine, 1 − inner product, squared Euclidean, or differing bits; minus the score of a fusion.
    pub distance: f64,
    /// Higher is closer: cosine, inner product, or minus the distance; of a [`crate::Fusion`] what that makes of both.
    pub score: f64,
}

/// What rows are read.
#[derive(Clone, Debug, PartialEq)]
pub struct GetResult {
    /// These.
    pub rows: Vec<Row>,
    /// Whether vectors among them carry noise of the encryption: such are the key owner's own, and shown to others give the key away.
    pub owners_only: bool,
}

/// What a query finds.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryResult {
    /// The hits of each query, the closest first.
    pub hits: Vec<Vec<Found>>,
    /// Whether scores carry noise of the encryption, as in modes `sealed` and `sealed-query`: such are the key owner's own, and many of
    /// them shown to others give the key away.
    pub owners_only: bool,
    /// Whether every block of rows that the answer rests on was checked: what the server answered is what those rows give to the
    /// queries. What is not checked is as good as the server that answered.
    pub checked: bool,
    /// The standard deviation, as a cosine, of the noise that was added to every score for others.
    pub flooding: Option<f64>,
}
