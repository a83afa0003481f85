//! The directory of segments for JavaScript: places, ids and norms of all rows that the owner knows. Owner only.

use std::collections::BTreeMap;

use ciphervec_owner::SegmentId;
use ciphervec_owner::protect::consumed::Consumed;
use ciphervec_owner::protect::id::Id;
use ciphervec_owner::search::{Exactness, Origin, SegmentDirectory};
use js_sys::{Array, Float32Array, Float64Array, Map, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::arrays::{object, out, outs};
use crate::errors::Result;
use crate::ids;
use crate::segment;

/// Which id lies where.
#[wasm_bindgen(js_name = SegmentDirectory)]
#[derive(Default)]
pub struct JsSegmentDirectory(#[wasm_bindgen(skip)] pub SegmentDirectory);

fn place((segment, row): (SegmentId, u32)) -> JsValue {
    object(&[("segmentId", out(&segment.0).into()), ("row", row.into())])
}

fn maybe_place(place_of: Option<(SegmentId, u32)>) -> JsValue {
    place_of.map_or(JsValue::NULL, place)
}

#[wasm_bindgen(js_class = SegmentDirectory)]
impl JsSegmentDirectory {
    /// An empty one.
    #[wasm_bindgen(constructor)]
    pub fn new() -> JsSegmentDirectory {
        JsSegmentDirectory::default()
    }

    /// Takes no appended segment from now on that is in this list of consumed ones.
    #[wasm_bindgen(js_name = expectUnconsumed)]
    pub fn expect_unconsumed(&mut self, consumed: &[u8]) -> Result<()> {
        self.0.expect_unconsumed(Consumed::from_bytes(consumed)?);
        Ok(())
    }

    /// Passes over a segment that does not open.
    pub fn refuse(&mut self, segment_id: &[u8]) -> Result<()> {
        self.0.refuse(segment::id(segment_id)?);
        Ok(())
    }

    /// Segments that are passed over.
    pub fn refused(&self) -> Vec<Uint8Array> {
        outs(self.0.refused().iter().map(|id| &id.0))
    }

    /// Passes over a segment that failed a check, until it is released.
    pub fn quarantine(&mut self, segment_id: &[u8]) -> Result<()> {
        self.0.quarantine(segment::id(segment_id)?);
        Ok(())
    }

    /// Takes a segment out of quarantine; whether it was there.
    pub fn release(&mut self, segment_id: &[u8]) -> Result<bool> {
        Ok(self.0.release(segment::id(segment_id)?))
    }

    /// Segments in quarantine.
    pub fn quarantined(&self) -> Vec<Uint8Array> {
        outs(self.0.quarantined().iter().map(|id| &id.0))
    }

    /// "exact" where results depend on rows and queries alone, "noisy" where they carry the encryption's noise, "outdated"
    /// where sealing again makes them exact; null for an unknown segment.
    #[wasm_bindgen(unchecked_return_type = "\"exact\" | \"noisy\" | \"outdated\" | null")]
    pub fn exactness(&self, segment_id: &[u8]) -> Result<JsValue> {
        let found = self.0.exactness(segment::id(segment_id)?);
        Ok(found.map_or(JsValue::NULL, |exactness| {
            JsValue::from_str(match exactness {
                Exactness::Exact => "exact",
                Exactness::Noisy => "noisy",
                Exactness::Outdated => "outdated",
            })
        }))
    }

    /// Rows by the level that they are packed for.
    #[wasm_bindgen(unchecked_return_type = "Map<number, number>")]
    pub fn levels(&self) -> JsValue {
        let mut rows = BTreeMap::<u8, f64>::new();
        for (_, count, level) in self.0.segments() {
            *rows.entry(level).or_default() += f64::from(count);
        }
        let levels = Map::new();
        for (level, count) in rows {
            levels.set(&level.into(), &count.into());
        }
        levels.into()
    }

    /// Rows that a later segment has taken the id of, to be deleted with the next commit.
    #[wasm_bindgen(unchecked_return_type = "Place[]")]
    pub fn shadowed(&self) -> Vec<JsValue> {
        self.0.shadowed().map(place).collect()
    }

    /// Forgets `shadowed`, once a commit has deleted these rows.
    pub fn settle(&mut self) {
        self.0.settle();
    }

    /// Rows that don't count, because their id was authenticated elsewhere before they came.
    #[wasm_bindgen(unchecked_return_type = "NamedPlace[]")]
    pub fn aside(&self) -> Vec<JsValue> {
        let named = |(id, segment, row): (&Id, SegmentId, u32)| {
            let (id, row) = (ids::out(id), row.into());
            object(&[("id", id), ("segmentId", out(&segment.0).into()), ("row", row)])
        };
        self.0.aside().map(named).collect()
    }

    /// Ids that two of the owner's segments have, of which the later row counts.
    #[wasm_bindgen(unchecked_return_type = "Id[]")]
    pub fn repeated(&self) -> Array {
        ids::outs(self.0.repeated().iter().map(Some))
    }

    /// Lets the rows in `aside` take their ids over.
    #[wasm_bindgen(js_name = takeOver)]
    pub fn take_over(&mut self) {
        self.0.take_over();
    }

    /// Notes that the owner has authenticated every segment.
    pub fn authenticate(&mut self) {
        self.0.authenticate();
    }

    /// Whose keys a segment was sealed under; null for an unknown one.
    #[wasm_bindgen(unchecked_return_type = "Origin | null")]
    pub fn origin(&self, segment_id: &[u8]) -> Result<JsValue> {
        let found = self.0.origin(segment::id(segment_id)?);
        Ok(found.map_or(JsValue::NULL, |origin| {
            let (kind, writer) = match origin {
                Origin::Owner => ("owner", JsValue::NULL),
                Origin::Previous => ("previous", JsValue::NULL),
                Origin::Writer(name) => ("writer", name.as_str().into()),
            };
            object(&[("kind", kind.into()), ("writer", writer)])
        }))
    }

    /// Forgets a segment; whether it was known.
    pub fn remove(&mut self, segment_id: &[u8]) -> Result<bool> {
        Ok(self.0.remove(segment::id(segment_id)?))
    }

    /// Leaves a row out from now on; its place, or null when the id is unknown.
    #[wasm_bindgen(js_name = markDeleted, unchecked_return_type = "Place | null")]
    pub fn mark_deleted(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "Id")] id: &JsValue,
    ) -> Result<JsValue> {
        Ok(maybe_place(self.0.mark_deleted(&ids::of(id)?)))
    }

    /// Where a record lies; null when the id is unknown.
    #[wasm_bindgen(unchecked_return_type = "Place | null")]
    pub fn locate(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Id")] id: &JsValue,
    ) -> Result<JsValue> {
        Ok(maybe_place(self.0.locate(&ids::of(id)?)))
    }

    /// As `locate`, for many ids.
    #[wasm_bindgen(js_name = locateMany, unchecked_return_type = "(Place | null)[]")]
    pub fn locate_many(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Id[]")] ids: Vec<JsValue>,
    ) -> Result<Vec<JsValue>> {
        Ok(ids::all(&ids)?.iter().map(|id| maybe_place(self.0.locate(id))).collect())
    }

    /// Whether a record is there.
    pub fn has(&self, #[wasm_bindgen(unchecked_param_type = "Id")] id: &JsValue) -> Result<bool> {
        Ok(self.0.locate(&ids::of(id)?).is_some())
    }

    /// Live rows.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Every id, in the order of segments and rows.
    #[wasm_bindgen(unchecked_return_type = "Id[]")]
    pub fn ids(&self) -> Array {
        ids::outs(self.0.records().map(|(id, _, _)| Some(id)))
    }

    /// The segments, in the order they came.
    #[wasm_bindgen(js_name = segmentIds)]
    pub fn segment_ids(&self) -> Vec<Uint8Array> {
        self.0.segments().map(|(id, _, _)| out(&id.0)).collect()
    }

    /// Per segment, the id of each row, null where the row is deleted.
    #[wasm_bindgen(unchecked_return_type = "SegmentRows[]")]
    pub fn rows(&self) -> Vec<JsValue> {
        let list = |(id, _, _): (SegmentId, u32, u8)| {
            let names = ids::outs(self.0.names(id).into_iter().flatten());
            object(&[("segmentId", out(&id.0).into()), ("ids", names.into())])
        };
        self.0.segments().map(list).collect()
    }

    /// The ids of one segment's rows; null where it is unknown.
    #[wasm_bindgen(unchecked_return_type = "(Id | null)[] | null")]
    pub fn names(&self, segment_id: &[u8]) -> Result<JsValue> {
        let names = self.0.names(segment::id(segment_id)?);
        Ok(names.map_or(JsValue::NULL, |names| ids::outs(names).into()))
    }

    /// What was taken off a segment's rows; empty where that is nothing, or the segment is unknown.
    pub fn centre(&self, segment_id: &[u8]) -> Result<Vec<f32>> {
        Ok(self.0.centre(segment::id(segment_id)?).unwrap_or_default().to_vec())
    }

    /// The centres of all segments with rows that count, each once.
    pub fn centres(&self) -> Vec<Float32Array> {
        self.0.centres().into_iter().map(Float32Array::from).collect()
    }

    /// That of the latest of the owner's segments that has one; empty where none has.
    #[wasm_bindgen(js_name = centreInUse)]
    pub fn centre_in_use(&self) -> Vec<f32> {
        self.0.centre_in_use().to_vec()
    }

    /// The lengths that the vectors of these ids had, less their centre; 1 where the metric does not keep them, 0 for an unknown id.
    pub fn norms(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Id[]")] ids: Vec<JsValue>,
    ) -> Result<Float64Array> {
        let norms = ids::all(&ids)?.into_iter().map(|id| self.0.norm(&id).unwrap_or(0.0));
        Ok(Float64Array::from(norms.collect::<Vec<_>>().as_slice()))
    }
}
