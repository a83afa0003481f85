//! Filter tags and filters for JavaScript: the owner makes tags, a server matches rows by them.

use ciphervec_client::record;
use ciphervec_client::{FieldKinds, Filter, Table};
use ciphervec_owner::protect::filter::{FilterTag, FilterTags};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::{Failure, Result};
use crate::owner::JsOwner;

/// Per row of a segment, the tags of its filterable fields.
#[wasm_bindgen(js_name = FilterTags)]
pub struct JsFilterTags(FilterTags);

fn table(rows: &[Vec<FilterTag>]) -> Result<FilterTags> {
    let mut table = FilterTags::new();
    for row in rows {
        table.push(row)?;
    }
    Ok(table)
}

#[wasm_bindgen(js_class = FilterTags)]
impl JsFilterTags {
    /// From the tags of every row, 16 bytes each.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "Uint8Array[][]")] rows: Vec<JsValue>,
    ) -> Result<JsFilterTags> {
        let row = |row: &JsValue| {
            let tags = arrays::items(row).map(|tag| tag.dyn_into::<Uint8Array>());
            let tags = tags.collect::<core::result::Result<Vec<_>, _>>();
            let tags = tags.map_err(|_| Failure::input("a filter tag is a Uint8Array"))?;
            arrays::exacts("a filter tag", &tags)
        };
        let rows = rows.iter().map(row).collect::<Result<Vec<_>>>()?;
        Ok(JsFilterTags(table(&rows)?))
    }

    /// Which rows carry all of these tags: 1 where they do, a byte a row.
    pub fn matches(&self, all_of: Vec<Uint8Array>) -> Result<Uint8Array> {
        let found = self.0.matches(&arrays::exacts("a filter tag", &all_of)?);
        Ok(arrays::out(&found.into_iter().map(u8::from).collect::<Vec<_>>()))
    }

    /// Rows.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> u32 {
        self.0.rows()
    }

    /// What a server stores.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.0.to_bytes())
    }

    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsFilterTags> {
        Ok(JsFilterTags(FilterTags::from_bytes(&arrays::bytes("filter tags", data)?)?))
    }
}

/// A checked filter, from the JSON of `where` and of `whereDocument`.
#[wasm_bindgen(js_name = Filter)]
pub struct JsFilter(Filter);

#[wasm_bindgen(js_class = Filter)]
impl JsFilter {
    /// Throws InvalidInput, naming the part that is not understood.
    #[wasm_bindgen(constructor)]
    pub fn new(
        metadata: Option<String>,
        document: Option<String>,
        filterable: Vec<String>,
    ) -> Result<JsFilter> {
        Ok(JsFilter(Filter::new(metadata.as_deref(), document.as_deref(), &filterable)?))
    }

    /// Whether keyed tags are the whole filter, so that no record needs to be opened.
    #[wasm_bindgen(getter)]
    pub fn complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Whether a row with this record passes.
    pub fn matches(&self, record: &[u8]) -> Result<bool> {
        Ok(self.0.matches(record)?)
    }

    /// The tags that every row has which passes.
    pub fn tags(&self, owner: &JsOwner) -> Vec<Uint8Array> {
        let tags =
            self.0.equalities().iter().map(|(field, value)| owner.0.filter_tag(field, value));
        tags.map(|tag| arrays::out(&tag)).collect()
    }

    /// Which of a segment's rows may pass as far as their tags tell, 1 or 0 a row, and one byte more: whether that is all there is
    /// to test.
    pub fn bound(&self, owner: &JsOwner, tags: &JsFilterTags, rows: usize) -> Uint8Array {
        let found =
            self.0.bound(rows, Some(&tags.0), |field, value| owner.0.filter_tag(field, value));
        let bytes: Vec<u8> = found.rows.into_iter().chain([found.exact]).map(u8::from).collect();
        arrays::out(&bytes)
    }
}

/// What kinds of values the fields of rows have, which tells why no row passes a filter.
#[wasm_bindgen(js_name = FieldKinds)]
#[derive(Default)]
pub struct JsFieldKinds(FieldKinds);

#[wasm_bindgen(js_class = FieldKinds)]
impl JsFieldKinds {
    /// Of no rows yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> JsFieldKinds {
        JsFieldKinds::default()
    }

    /// Those of rows with these records too.
    pub fn add(&mut self, records: Vec<Uint8Array>) -> Result<()> {
        let records: Vec<Vec<u8>> = records.iter().map(Uint8Array::to_vec).collect();
        self.0.add(&Table::new(records.iter().map(Vec::as_slice))?);
        Ok(())
    }

    /// Why no row passes; empty where fields and their kinds do not tell.
    #[wasm_bindgen(js_name = whyNone)]
    pub fn why_none(&self, filter: &JsFilter) -> String {
        self.0.why_none(&filter.0)
    }
}

/// A record without the fields `removed` of its metadata, then with those of the JSON object `metadata` laid over the others, and
/// `document` in place of its own. Values that stay keep their text.
#[wasm_bindgen(js_name = mergeRecord)]
pub fn merge_record(
    record: &[u8],
    metadata: Option<String>,
    document: Option<String>,
    removed: Vec<String>,
) -> Result<Uint8Array> {
    Ok(arrays::out(&record::merge(record, metadata.as_deref(), document.as_deref(), &removed)?))
}

/// The tags of a record's filterable fields.
#[wasm_bindgen(js_name = recordTags)]
pub fn record_tags(
    owner: &JsOwner,
    filterable: Vec<String>,
    record: &[u8],
) -> Result<Vec<Uint8Array>> {
    let tags = record::tags(record, &filterable, |field, value| owner.0.filter_tag(field, value))?;
    Ok(tags.iter().map(|tag| arrays::out(tag)).collect())
}
