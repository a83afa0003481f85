//! Keyed tags of filterable fields enter, the rows that carry them leave; the server's side, and the owner's who makes them.

use ciphervec::protect::filter::{FilterTag, FilterTags};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::{Failure, Result};

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
