//! What is wanted of an answer, as the core takes it, and what was found, as plain objects. Owner only.

use std::sync::Arc;

use ciphervec_owner::search::{Flood, Hit, Opened, Retrieval, SegmentDirectory, Selection};
use js_sys::{Array, Float64Array};
use wasm_bindgen::JsValue;

use crate::errors::{Failure, Result};
use crate::{arrays, ids};

/// What is wanted of an answer: the `count` closest, or those within a threshold, of some ids where there are such.
pub struct Wish {
    pub retrieval: Retrieval,
    pub selection: Option<Arc<Selection>>,
    pub flood: Option<f64>,
    count: usize,
}

impl Wish {
    pub fn new(
        count: Option<usize>,
        threshold: Option<f64>,
        allow: Option<Vec<JsValue>>,
        flood: Option<f64>,
        directory: &SegmentDirectory,
    ) -> Result<Self> {
        let allow = allow.map(|names| ids::all(&names)).transpose()?;
        Ok(Wish {
            retrieval: retrieval(count, threshold)?,
            selection: allow.map(|names| Arc::new(directory.select(&names))),
            flood,
            count: count.unwrap_or(usize::MAX),
        })
    }

    /// The noise that comes first.
    pub fn flood(&self) -> Result<Option<Flood>> {
        Ok(self.flood.map(Flood::new).transpose()?)
    }

    /// What an answer says, at most `count` of each query.
    pub fn answers(&self, opened: Opened) -> JsValue {
        let answer = |mut hits: Vec<Hit>| {
            hits.truncate(self.count);
            let scores: Vec<f64> = hits.iter().map(|hit| hit.value).collect();
            let names = ids::outs(hits.iter().map(|hit| Some(&hit.id)));
            let scores = Float64Array::from(scores.as_slice());
            arrays::object(&[("ids", names.into()), ("scores", scores.into())])
        };
        let found: Array = opened.hits.into_iter().map(answer).collect();
        let disqualified = arrays::outs(opened.disqualified.iter().map(|id| &id.0));
        let disqualified: Array = disqualified.into_iter().collect();
        arrays::object(&[
            ("answers", found.into()),
            ("exact", opened.exact.into()),
            ("checked", opened.checked.into()),
            ("disqualified", disqualified.into()),
        ])
    }
}

fn retrieval(count: Option<usize>, threshold: Option<f64>) -> Result<Retrieval> {
    match (count, threshold) {
        (_, Some(threshold)) => Ok(Retrieval::Range(threshold)),
        (Some(count), None) => Ok(Retrieval::TopK(count)),
        (None, None) => Err(Failure::input("give a count, a threshold, or both")),
    }
}
