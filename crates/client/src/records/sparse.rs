//! Sparse: what rows are ranked by beside their vectors, and the sparse vectors that a model makes. One that is stored has ascending
//! indices, each once, and weights that are finite and above zero.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::records::bm25::Bm25;

/// What rows are ranked by beside their vectors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sparse {
    /// The words of their documents.
    Bm25(Bm25),
    /// Sparse vectors that come with them, by inner product.
    Vectors,
}

/// What is stored of that, as the first byte says; records begin with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Words = 1,
    Weights = 2,
}

impl Sparse {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Bm25(_) => Kind::Words,
            Self::Vectors => Kind::Weights,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Bm25(bm25) => bm25.check(),
            Self::Vectors => Ok(()),
        }
    }
}

/// A vector of which most numbers are zero, such as of SPLADE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseVector {
    /// Which numbers are not zero, ascending.
    pub indices: Vec<u32>,
    /// What they are.
    pub values: Vec<f32>,
}

impl SparseVector {
    /// What it is not as it has to be.
    pub(crate) fn fault(&self) -> Option<String> {
        let SparseVector { indices, values } = self;
        if indices.len() != values.len() {
            return Some(format!("has {} indices and {} values", indices.len(), values.len()));
        }
        if let Some(pair) = indices.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Some(format!("has index {} after {}; indices ascend", pair[1], pair[0]));
        }
        let wrong = values.iter().find(|value| !(value.is_finite() && **value > 0.0));
        wrong.map(|value| format!("has the weight {value}; weights are finite and above 0"))
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, f32)> + use<'_> {
        self.indices.iter().copied().zip(self.values.iter().copied())
    }
}
