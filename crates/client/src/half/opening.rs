//! Opening: what an answer is opened for, once nothing can keep that from being shown.

use std::sync::Arc;

use ciphervec_owner::search::{Flood, Retrieval, Selection};

/// A [`crate::Wish`], checked, and counted where others are to be shown it.
pub struct Opening {
    pub retrieval: Retrieval,
    pub count: Option<usize>,
    pub selection: Option<Arc<Selection>>,
    pub flood: Option<Arc<Flood>>,
    pub others: bool,
}
