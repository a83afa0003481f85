//! What a collection is asked and what it answers, as plain values that every face translates.

use ciphervec_owner::Id;

use crate::records::matrix::Tokens;
use crate::records::sparse::SparseVector;
use crate::replica::fetch::Fetch;
use crate::replica::fusion::Hybrid;

/// Which parts of rows are read, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Metadata and documents.
    pub records: bool,
    /// Vectors.
    pub embeddings: bool,
    /// All vectors of rows that have many.
    pub multi: bool,
    /// Sparse vectors, in collections that take them.
    pub sparse: bool,
    /// What a server may see of which rows they are of.
    pub fetch: Fetch,
}

impl Parts {
    /// Whether what vectors were put in as is read.
    pub(crate) fn vectors(&self) -> bool {
        self.embeddings || self.multi
    }

    /// Whether records are read, which sparse vectors stand in too; and what vectors were put in as.
    pub(crate) fn wanted(&self) -> (bool, bool) {
        (self.records || self.sparse, self.vectors())
    }
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
    /// Queries of many vectors each, in collections that are made with [`crate::Choices::multi`]; instead of `embeddings`.
    pub multi: Vec<Tokens>,
    /// How many rows MaxSim ranks for each of these: the closest by their one vector. At least as many as hits are asked for are;
    /// [`crate::CANDIDATES`] unless told otherwise.
    pub candidates: Option<usize>,
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
    /// All vectors of a row that has many, each number within half a 127th of its vector's largest.
    pub tokens: Option<Tokens>,
    /// Its sparse vector, as it was put in.
    pub sparse: Option<SparseVector>,
}

/// A row that is close to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The row.
    pub row: Row,
    /// Lower is closer: 1 − cosine, 1 − inner product or MaxSim, squared Euclidean, or differing bits; minus the score of a fusion.
    pub distance: f64,
    /// Higher is closer: cosine, inner product, MaxSim, or minus the distance; of a [`crate::Fusion`] what that makes of both.
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
    /// Of each query of many vectors, how far MaxSim of any hit may be from that of the vectors that were put in.
    pub bounds: Vec<f64>,
    /// Whether scores carry noise of the encryption, as in modes `sealed` and `sealed-query`: such are the key owner's own, and many of
    /// them shown to others give the key away.
    pub owners_only: bool,
    /// Whether every block of rows that the answer rests on was checked: what the server answered is what those rows give to the
    /// queries. What is not checked is as good as the server that answered.
    pub checked: bool,
    /// The standard deviation, as a cosine, of the noise that was added to every score for others.
    pub flooding: Option<f64>,
}
