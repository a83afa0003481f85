//! What an answer is to be opened for, and its bytes, enter; ids and scores leave. Owner only.

use std::rc::Rc;

use ciphervec::SegmentId;
use ciphervec::search::{Flood, Opened, Owner, Query, Retrieval, SegmentDirectory, Selection};
use js_sys::{Float64Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::errors::{Failure, Result};
use crate::owner::JsOwner;
use crate::query::JsSealedQuery;
use crate::segment_directory::JsSegmentDirectory;
use crate::{arrays, ids, memory, segment};

/// What is wanted of an answer.
pub struct Wish {
    retrieval: Retrieval,
    count: usize,
    selection: Option<Selection>,
    newer: Vec<SegmentId>,
    flood: Option<Flood>,
}

impl Wish {
    /// The `count` closest, or those within a threshold, of these ids, where there are some.
    pub fn new(
        count: Option<usize>,
        threshold: Option<f64>,
        allow: Option<Vec<JsValue>>,
        newer: Option<Vec<Uint8Array>>,
        flood: Option<f64>,
        directory: &SegmentDirectory,
    ) -> Result<Self> {
        let allow = allow.map(|names| ids::all(&names)).transpose()?;
        Ok(Wish {
            retrieval: retrieval(count, threshold)?,
            count: count.unwrap_or(usize::MAX),
            selection: allow.map(|names| directory.select(&names)),
            newer: segment::ids(&newer.unwrap_or_default())?,
            flood: flood.map(Flood::new).transpose()?,
        })
    }

    /// What the answer says.
    pub fn open(
        &self,
        owner: &Owner,
        query: &Query,
        response: &[u8],
        directory: &SegmentDirectory,
    ) -> Result<JsValue> {
        let Wish { retrieval, selection, newer, .. } = self;
        let selection = selection.as_ref();
        let opened = match &self.flood {
            None => owner.open_without(query, response, directory, *retrieval, selection, newer)?,
            Some(flood) => owner
                .open_flooded(query, response, directory, *retrieval, selection, newer, flood)?,
        };
        Ok(answers(opened, self.count))
    }
}

fn retrieval(count: Option<usize>, threshold: Option<f64>) -> Result<Retrieval> {
    match (count, threshold) {
        (_, Some(threshold)) => Ok(Retrieval::Range(threshold)),
        (Some(count), None) => Ok(Retrieval::TopK(count)),
        (None, None) => Err(Failure::input("give a count, a threshold, or both")),
    }
}

/// What an answer says, at most `count` of each query.
fn answers(opened: Opened, count: usize) -> JsValue {
    let answer = |mut hits: Vec<ciphervec::search::Hit>| {
        hits.truncate(count);
        let scores: Vec<f64> = hits.iter().map(|hit| hit.value).collect();
        let names = ids::outs(hits.iter().map(|hit| Some(&hit.id)));
        let scores = Float64Array::from(scores.as_slice());
        arrays::object(&[("ids", names.into()), ("scores", scores.into())])
    };
    let found: js_sys::Array = opened.hits.into_iter().map(answer).collect();
    let disqualified = arrays::outs(opened.disqualified.iter().map(|id| &id.0));
    let disqualified: js_sys::Array = disqualified.into_iter().collect();
    arrays::object(&[
        ("answers", found.into()),
        ("exact", opened.exact.into()),
        ("disqualified", disqualified.into()),
    ])
}

/// Opens one answer as it comes, of the segments that the directory knew when this was made.
#[wasm_bindgen(js_name = AnswerOpener)]
pub struct JsAnswerOpener {
    owner: Rc<Owner>,
    query: Rc<Query>,
    directory: SegmentDirectory,
    wish: Wish,
    came: Vec<u8>,
}

#[wasm_bindgen(js_class = AnswerOpener)]
impl JsAnswerOpener {
    /// As `Owner.open`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        owner: &JsOwner,
        query: &JsSealedQuery,
        directory: &JsSegmentDirectory,
        count: Option<usize>,
        threshold: Option<f64>,
        #[wasm_bindgen(unchecked_optional_param_type = "Id[]")] allow: Option<Vec<JsValue>>,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] flood: Option<f64>,
    ) -> Result<JsAnswerOpener> {
        let wish = Wish::new(count, threshold, allow, None, flood, &directory.0)?;
        let (owner, query) = (Rc::clone(&owner.0), Rc::clone(&query.0));
        let directory = directory.0.snapshot();
        Ok(JsAnswerOpener { owner, query, directory, wish, came: Vec::new() })
    }

    /// Begins anew: what was written is forgotten.
    pub fn restart(&mut self) {
        self.came = Vec::new();
    }

    /// The next bytes of the answer.
    pub fn write(&mut self, piece: &Uint8Array) -> Result<()> {
        let length = piece.length() as usize;
        memory::grow("an answer", &mut self.came, length)?;
        let start = self.came.len();
        self.came.resize(start + length, 0);
        piece.copy_to(&mut self.came[start..]);
        Ok(())
    }

    /// What was written is the whole answer. Throws as `Owner.open`.
    #[wasm_bindgen(unchecked_return_type = "Answers")]
    pub fn finish(&mut self) -> Result<JsValue> {
        let came = std::mem::take(&mut self.came);
        self.wish.open(&self.owner, &self.query, &came, &self.directory)
    }
}
