//! Private tables for JavaScript: records by key, their publisher's half, and lookups on a server that learns no key.

use std::io::Cursor;
use std::path::Path;
use std::rc::Rc;

use ciphervec_client::{KeyedTable as Remote, TableRow};
use ciphervec_owner::Keys;
use ciphervec_owner::decode::hex;
use ciphervec_owner::keyed::{
    Description, KeyedTable, LookupKey, new_records, read_record, write_table,
};
use js_sys::{Array, BigInt, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::arrays::{self, object};
use crate::client::JsClient;
use crate::errors::{Failure, Result};
use crate::host::JsHost;
use crate::keys::JsKeys;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &'static str = r#"
/** `js/client/src/native.ts` says what this is. */
export type TableFacts = object;
"#;

/// The greatest integer that a number holds beside its neighbours.
const SAFE: f64 = 9_007_199_254_740_991.0;
/// What stands for the file of a table in memory.
const NOWHERE: &str = "(memory)";

/// A key as JavaScript gives it.
enum OwnKey {
    Bytes(Vec<u8>),
    Text(String),
    Integer(i128),
}

impl OwnKey {
    fn of(value: &JsValue) -> Result<Self> {
        if let Some(text) = value.as_string() {
            return Ok(OwnKey::Text(text));
        }
        if let Some(number) = value.as_f64() {
            if number.trunc() == number && number.abs() <= SAFE {
                return Ok(OwnKey::Integer(number as i128));
            }
            let message = format!("{number} is no integer that a number holds exactly");
            return Err(Failure::input(format!("{message}; give a bigint, or text")));
        }
        if let Some(big) = value.dyn_ref::<BigInt>() {
            let number = i128::try_from(big.clone());
            let refused = |_| Failure::input("a key that is an integer must fit in 128 bits");
            return number.map(OwnKey::Integer).map_err(refused);
        }
        if let Some(bytes) = value.dyn_ref::<Uint8Array>() {
            return Ok(OwnKey::Bytes(arrays::bytes("a key", bytes)?));
        }
        Err(Failure::input("a key is a Uint8Array, text or an integer"))
    }

    fn borrow(&self) -> LookupKey<'_> {
        match self {
            OwnKey::Bytes(bytes) => LookupKey::Bytes(bytes),
            OwnKey::Text(text) => LookupKey::Text(text),
            OwnKey::Integer(integer) => LookupKey::Integer(*integer),
        }
    }
}

fn facts(description: &Description) -> JsValue {
    let table = description.geometry();
    let counts = [
        ("records", description.records() as f64),
        ("recordBytes", table.content as f64),
        ("places", table.parts as f64),
        ("bucketRecords", table.slots() as f64),
        ("buckets", table.all_buckets() as f64),
    ];
    let mut fields = counts.map(|(name, count)| (name, count.into())).to_vec();
    fields.push(("sealed", table.sealed.into()));
    fields.push(("fingerprint", hex(&description.fingerprint()).into()));
    object(&fields)
}

fn record(found: Option<impl AsRef<[u8]>>) -> JsValue {
    found.map_or(JsValue::NULL, |bytes| arrays::out(bytes.as_ref()).into())
}

/// A row of a listing.
pub fn row(row: &TableRow) -> JsValue {
    object(&[
        ("name", row.name.as_str().into()),
        ("records", (row.records as f64).into()),
        ("recordBytes", (row.record_bytes as f64).into()),
        ("sealed", row.sealed.into()),
        ("bytes", (row.bytes as f64).into()),
        ("fingerprint", row.fingerprint.as_str().into()),
    ])
}

/// A table as its publisher has it, in memory.
#[wasm_bindgen(js_name = KeyedTable)]
pub struct JsKeyedTable(KeyedTable);

fn built(
    keys: Option<&Keys>,
    seed: Option<[u8; 32]>,
    (names, contents): (&Array, &Array),
    record_bytes: f64,
) -> Result<JsKeyedTable> {
    let mut records = new_records(keys, seed)?;
    for (name, content) in names.iter().zip(contents.iter()) {
        let content = content.dyn_into::<Uint8Array>();
        let content = content.map_err(|_| Failure::input("a record must be a Uint8Array"))?;
        records.push(OwnKey::of(&name)?.borrow(), &arrays::bytes("a record", &content)?)?;
    }
    let mut file = Cursor::new(Vec::new());
    write_table(&records, keys, record_bytes as usize, Path::new(NOWHERE), &mut file)?;
    Ok(JsKeyedTable(KeyedTable::from_bytes(file.into_inner())?))
}

#[wasm_bindgen(js_class = KeyedTable)]
impl JsKeyedTable {
    /// A table that its server reads: keys and as many records. Throws InvalidInput.
    pub fn plain(
        names: &Array,
        contents: &Array,
        record_bytes: f64,
        seed: Option<Uint8Array>,
    ) -> Result<JsKeyedTable> {
        let seed = seed.map(|seed| arrays::one("a seed", &seed)).transpose()?;
        built(None, seed, (names, contents), record_bytes)
    }

    /// The same under the owner's keys: its server reads neither keys nor records.
    pub fn sealed(
        keys: &JsKeys,
        names: &Array,
        contents: &Array,
        record_bytes: f64,
    ) -> Result<JsKeyedTable> {
        built(Some(&keys.0), None, (names, contents), record_bytes)
    }

    /// Of the bytes of its file. Throws CorruptData, UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(file: &Uint8Array) -> Result<JsKeyedTable> {
        Ok(JsKeyedTable(KeyedTable::from_bytes(arrays::bytes("a table", file)?)?))
    }

    /// The bytes of its file.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Result<Uint8Array> {
        let mut out = crate::memory::room("a table", self.0.byte_len() as usize)?;
        self.0.copy_to(Path::new(NOWHERE), &mut out)?;
        Ok(arrays::out(&out))
    }

    /// What is public of it, and its bytes.
    #[wasm_bindgen(unchecked_return_type = "TableFacts")]
    pub fn facts(&self) -> JsValue {
        facts(self.0.description())
    }

    /// The record of a key, null where there is none. Throws CorruptData.
    pub fn get(&self, key: &JsValue) -> Result<JsValue> {
        Ok(record(read_record(&self.0, None, OwnKey::of(key)?.borrow())?))
    }

    /// The same of a sealed table.
    pub fn open(&self, keys: &JsKeys, key: &JsValue) -> Result<JsValue> {
        Ok(record(read_record(&self.0, Some(&keys.0), OwnKey::of(key)?.borrow())?))
    }

    /// Checks every bucket. Throws CorruptData.
    pub fn verify(&self) -> Result<()> {
        Ok(self.0.verify()?)
    }
}

/// A table on a server.
#[wasm_bindgen(js_name = RemoteTable)]
pub struct JsRemoteTable(pub(crate) Rc<Remote>);

#[wasm_bindgen(js_class = RemoteTable)]
impl JsRemoteTable {
    /// What is public of it.
    #[wasm_bindgen(unchecked_return_type = "TableFacts")]
    pub fn facts(&self) -> JsValue {
        facts(&self.0.description())
    }

    /// The records of keys, in order, null where there is none.
    pub async fn get(&self, host: JsHost, keys: Array, bound: Option<f64>) -> Result<Array> {
        let table = Rc::clone(&self.0);
        let keys = keys.iter().map(|key| OwnKey::of(&key)).collect::<Result<Vec<_>>>()?;
        let keys: Vec<_> = keys.iter().map(OwnKey::borrow).collect();
        let found = table.get(&host, &keys, bound.map(|bound| bound as usize)).await?;
        Ok(found.into_iter().map(record).collect())
    }

    /// How many lookups failed a check, and whether none is made any more.
    pub async fn failures(&self, host: JsHost) -> Result<JsValue> {
        let table = Rc::clone(&self.0);
        let failures = table.failures(&host).await?;
        let count = ("failures", f64::from(failures.count).into());
        Ok(object(&[count, ("ended", failures.ended.into())]))
    }

    /// Goes on after a failure.
    pub async fn resume(&self, host: JsHost) -> Result<()> {
        let table = Rc::clone(&self.0);
        Ok(table.resume(&host).await?)
    }
}

#[wasm_bindgen(js_class = Client)]
impl JsClient {
    /// Opens a table of records on the server, the one of this fingerprint, or the one that was seen there first.
    #[wasm_bindgen(js_name = getTable)]
    pub async fn get_table(
        &self,
        host: JsHost,
        name: String,
        fingerprint: Option<String>,
    ) -> Result<JsRemoteTable> {
        let client = Rc::clone(&self.0);
        let opened = client.get_table(&host, &name, fingerprint.as_deref()).await?;
        Ok(JsRemoteTable(Rc::new(opened)))
    }

    /// Stores the bytes of a table's file under a name; what the server says of it.
    #[wasm_bindgen(js_name = putTable)]
    pub async fn put_table(&self, host: JsHost, name: String, file: Uint8Array) -> Result<JsValue> {
        let client = Rc::clone(&self.0);
        let file = arrays::bytes("a table", &file)?;
        Ok(row(&client.put_table(&host, &name, &file).await?))
    }

    /// The tables of records that the token may see.
    #[wasm_bindgen(js_name = listTables)]
    pub async fn list_tables(&self, host: JsHost) -> Result<Array> {
        let client = Rc::clone(&self.0);
        Ok(client.list_tables(&host).await?.iter().map(row).collect())
    }

    /// Removes a table of records.
    #[wasm_bindgen(js_name = deleteTable)]
    pub async fn delete_table(&self, host: JsHost, name: String) -> Result<()> {
        let client = Rc::clone(&self.0);
        Ok(client.delete_table(&host, &name).await?)
    }
}
