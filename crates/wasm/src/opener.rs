//! Opens an answer as its bytes come, for JavaScript. Owner only.

use std::sync::Arc;

use ciphervec_owner::Error;
use ciphervec_owner::search::{AnswerOpener, Opened, Owner, Query, SegmentDirectory};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::Result;
use crate::owner::JsOwner;
use crate::query::JsSealedQuery;
use crate::segment_directory::JsSegmentDirectory;
use crate::wish::Wish;

/// Opens one answer as it comes, of the segments that the directory knew when this was made. What came is in memory only as far
/// as it may still be returned.
#[wasm_bindgen(js_name = AnswerOpener)]
pub struct JsAnswerOpener {
    owner: Arc<Owner>,
    query: Arc<Query>,
    directory: SegmentDirectory,
    wish: Wish,
    opener: Option<AnswerOpener>,
}

impl JsAnswerOpener {
    fn opener(&mut self) -> Result<&mut AnswerOpener> {
        let flood = self.wish.flood()?.map(std::sync::Arc::new);
        let JsAnswerOpener { owner, query, directory, wish, opener } = self;
        Ok(opener.get_or_insert_with(|| {
            let (both, known) = ((Arc::clone(owner), Arc::clone(query)), directory.snapshot());
            AnswerOpener::new(both, known, wish.retrieval, wish.selection.clone(), flood, &|work| {
                work()
            })
        }))
    }
}

#[wasm_bindgen(js_class = AnswerOpener)]
impl JsAnswerOpener {
    /// As `Owner.open`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        owner: &JsOwner,
        query: &JsSealedQuery,
        directory: &JsSegmentDirectory,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] count: Option<usize>,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] threshold: Option<f64>,
        #[wasm_bindgen(unchecked_optional_param_type = "Id[]")] allow: Option<Vec<JsValue>>,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] flood: Option<f64>,
    ) -> Result<JsAnswerOpener> {
        let wish = Wish::new(count, threshold, allow, flood, &directory.0)?;
        wish.flood()?;
        let (owner, query) = (Arc::clone(&owner.0), Arc::clone(&query.0));
        Ok(JsAnswerOpener { owner, query, directory: directory.0.snapshot(), wish, opener: None })
    }

    /// Begins anew: what was written is forgotten. Throws TamperedAnswer or MismatchedAnswer, with the `segments` that it is
    /// about, if that has failed its check already.
    pub fn restart(&mut self) -> Result<()> {
        match self.opener.take().map(AnswerOpener::finish) {
            Some(Err(error @ (Error::Tampered { .. } | Error::Mismatched { .. }))) => {
                Err(error.into())
            }
            Some(Ok(Opened { disqualified: segments, .. })) if !segments.is_empty() => {
                Err(Error::Tampered { segments }.into())
            }
            _ => Ok(()),
        }
    }

    /// The next bytes of the answer: as much is opened as can be. What is wrong with them is thrown by `finish`.
    pub fn write(&mut self, piece: &Uint8Array) -> Result<()> {
        let piece = arrays::bytes("a piece of an answer", piece)?;
        self.opener()?.write(&piece);
        Ok(())
    }

    /// What was written is the whole answer. Throws as `Owner.open`.
    #[wasm_bindgen(unchecked_return_type = "Answers")]
    pub fn finish(&mut self) -> Result<JsValue> {
        self.opener()?;
        let opened = self.opener.take().map(AnswerOpener::finish).transpose()?;
        Ok(opened.map_or(JsValue::UNDEFINED, |opened| self.wish.answers(opened)))
    }
}
