//! The scripts of vectors/client about tables of records by key: made, stored, and looked up in private.

use std::collections::BTreeMap;

use ciphervec_client::{Error, block_on};
use ciphervec_owner::Keys;
use ciphervec_owner::keyed::{LookupKey, new_records, write_table};
use serde_json::{Value, json};

use crate::conformance::refused;
use crate::support::{Server, connection, keys};

#[derive(serde::Deserialize)]
struct Tables {
    tables: Vec<Table>,
}

#[derive(serde::Deserialize)]
struct Table {
    name: String,
    build: Build,
    r#is: Option<BTreeMap<String, Value>>,
    says: Option<String>,
    #[serde(default)]
    steps: Vec<Lookup>,
}

#[derive(serde::Deserialize)]
struct Build {
    seed: Option<String>,
    #[serde(default)]
    record_bytes: usize,
    #[serde(default)]
    sealed: bool,
    records: Vec<(Value, String)>,
}

#[derive(serde::Deserialize)]
struct Lookup {
    keys: Vec<Value>,
    bound: Option<usize>,
    gives: Option<Vec<Option<String>>>,
    says: Option<String>,
}

/// A key's bytes, text or integer.
enum TableKey {
    Bytes(Vec<u8>),
    Text(String),
    Integer(i128),
}

impl TableKey {
    fn of(value: &Value) -> Result<Self, Error> {
        let digits = |name| value.get(name).and_then(Value::as_str);
        match (value, digits("$bytes"), digits("$integer")) {
            (Value::String(text), ..) => Ok(TableKey::Text(text.clone())),
            (_, Some(bytes), _) => Ok(TableKey::Bytes(unhex(bytes))),
            (_, _, Some(number)) => {
                number.parse().map(TableKey::Integer).or_else(|_| refused("key of 128 bits"))
            }
            _ => panic!("{value}"),
        }
    }

    fn borrow(&self) -> LookupKey<'_> {
        match self {
            TableKey::Bytes(bytes) => LookupKey::Bytes(bytes),
            TableKey::Text(text) => LookupKey::Text(text),
            TableKey::Integer(integer) => LookupKey::Integer(*integer),
        }
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The bytes of a table's file, and its fingerprint.
fn built(build: &Build, keys: Option<&Keys>) -> Result<(Vec<u8>, String), Error> {
    let seed = build.seed.as_deref().map(|seed| <[u8; 32]>::try_from(unhex(seed)));
    let seed = seed.transpose().or_else(|_| refused("seed, of 32 bytes"))?;
    let mut records = new_records(keys, seed)?;
    for (key, record) in &build.records {
        records.push(TableKey::of(key)?.borrow(), &unhex(record))?;
    }
    let mut file = std::io::Cursor::new(Vec::new());
    let path = std::path::Path::new("script");
    let description = write_table(&records, keys, build.record_bytes, path, &mut file)?;
    let digits = description.fingerprint().map(|byte| format!("{byte:02x}")).concat();
    Ok((file.into_inner(), digits))
}

/// What was found; none where an error says what it should.
fn told<T>(found: Result<T, Error>, says: Option<&str>, name: &str) -> Option<T> {
    match (found, says) {
        (Ok(found), None) => Some(found),
        (Err(error), Some(says)) if error.to_string().contains(says) => None,
        (Ok(_), Some(says)) => panic!("{name}: nothing raised, for {says}"),
        (Err(error), says) => panic!("{name}: {error}, for {says:?}"),
    }
}

#[test]
fn tables_give_what_they_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/client/tables.json");
    let Tables { tables } = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (server, (host, _warnings), keys) = (Server::start(), connection(), keys());
    let client = server.client(&keys);
    for Table { name, build, r#is, says: raises, steps } in tables {
        let made = built(&build, build.sealed.then_some(&*keys));
        let Some((file, fingerprint)) = told(made, raises.as_deref(), &name) else { continue };
        block_on(client.put_table(&host, "script", &file)).unwrap();
        let table = block_on(client.get_table(&host, "script", Some(&fingerprint))).unwrap();
        let description = table.description();
        let geometry = description.geometry();
        let facts = [
            ("records", json!(description.records())),
            ("record_bytes", json!(geometry.content)),
            ("sealed", json!(geometry.sealed)),
        ];
        assert_eq!(r#is, Some(facts.map(|(name, value)| (name.to_owned(), value)).into()));
        for step in steps {
            let asked: Vec<_> = step.keys.iter().map(|key| TableKey::of(key).unwrap()).collect();
            let asked: Vec<_> = asked.iter().map(TableKey::borrow).collect();
            let found = block_on(table.get(&host, &asked, step.bound));
            let found = found.map(|found| found.into_iter().map(|one| one.map(|one| one.to_vec())));
            if let Some(found) = told(found, step.says.as_deref(), &name) {
                let right = step.gives.unwrap_or_default().into_iter();
                let right = right.map(|one| one.map(|digits| unhex(&digits)));
                assert_eq!(found.collect::<Vec<_>>(), right.collect::<Vec<_>>(), "{name}");
            }
        }
        block_on(client.delete_table(&host, "script")).unwrap();
    }
}
