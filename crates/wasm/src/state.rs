//! States of a collection for JavaScript: their hashes and names, and their records as plain objects. Key owner only.

use ciphervec_owner::KeyId;
use ciphervec_owner::protect::checkpoint::Checkpoint;
use ciphervec_owner::protect::consumed::{Consumed, Written};
use ciphervec_owner::protect::state::{self, SegmentFacts, SetAside, StateRecord};
use js_sys::{Array, BigInt, Object, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;

use crate::arrays::{self, bytes_field, field, object, out};
use crate::errors::{Failure, Result};

/// The hash that stands for a segment in a state; `digests` has the BLAKE3 of those blobs that are covered.
#[wasm_bindgen(js_name = stateLeaf)]
pub fn state_leaf(
    #[wasm_bindgen(unchecked_param_type = "SegmentFacts")] facts: &JsValue,
) -> Result<Uint8Array> {
    let id = bytes_field::<16>(facts, "segmentId")?;
    let deleted = numbers(&field(facts, "deleted")?);
    let text = |value: JsValue| {
        value.as_string().ok_or_else(|| Failure::input("names of blobs must be text"))
    };
    let blobs = arrays::items(&field(facts, "blobs")?).map(text).collect::<Result<Vec<_>>>()?;
    let digests = field(facts, "digests")?;
    let digests = match digests.dyn_ref::<Object>() {
        Some(object) => Object::keys(object)
            .into_iter()
            .map(|name| {
                let name = text(name)?;
                Ok((name.clone(), bytes_field::<32>(object, &name)?))
            })
            .collect::<Result<Vec<_>>>()?,
        None => return Err(Failure::input("\"digests\" must be an object")),
    };
    let rows = number(facts, "rows")?;
    let facts = SegmentFacts { id: &id, rows, deleted: &deleted, blobs: &blobs, digests: &digests };
    Ok(out(&state::leaf(&facts)))
}

/// The hash of segments' leaves, 32 bytes each, in their order.
#[wasm_bindgen(js_name = stateDigest)]
pub fn state_digest(leaves: &Uint8Array) -> Result<Uint8Array> {
    Ok(out(&state::digest(&arrays::bytes("leaves", leaves)?)))
}

/// The 16 bytes that name a sealed state.
#[wasm_bindgen(js_name = stateName)]
pub fn state_name(sealed: &Uint8Array) -> Result<Uint8Array> {
    Ok(out(&state::name(&arrays::bytes("a state", sealed)?)))
}

/// The 24 characters, in groups, that name a state to people; `name` is what `stateName` gave.
#[wasm_bindgen(js_name = stateCheckpoint)]
pub fn state_checkpoint(sequence: u64, name: &Uint8Array) -> Result<String> {
    Ok(Checkpoint::of(sequence, &arrays::one::<16>("a state's name", name)?).to_string())
}

/// The number of a state and the first ten bytes of its name; null for text that is no checkpoint.
#[wasm_bindgen(
    js_name = readCheckpoint,
    unchecked_return_type = "{ sequence: bigint; name: Uint8Array } | null"
)]
pub fn read_checkpoint(text: &str) -> JsValue {
    Checkpoint::parse(text).map_or(JsValue::NULL, |point| {
        object(&[("sequence", point.sequence.into()), ("name", out(&point.name).into())])
    })
}

/// The list of consumed segments `before` (empty: none) with those in `written`.
#[wasm_bindgen(js_name = consumedAfter)]
pub fn consumed_after(
    before: &Uint8Array,
    #[wasm_bindgen(unchecked_param_type = "WrittenFacts[]")] written: &JsValue,
) -> Result<Uint8Array> {
    let before = arrays::bytes("consumed segments", before)?;
    let mut consumed = Consumed::from_bytes(&before)?;
    for one in arrays::items(written) {
        let writer = field(&one, "writer")?.as_string();
        let writer = writer.ok_or_else(|| Failure::input("\"writer\" must be text"))?;
        let segment = bytes_field(&one, "segmentId")?;
        consumed.add(Written { writer, time: big(&one, "time")?, segment });
    }
    Ok(out(&consumed.to_bytes()))
}

fn number(object: &JsValue, key: &str) -> Result<u32> {
    let value = field(object, key)?.as_f64().filter(|value| value.trunc() == *value);
    let value = value.filter(|value| (0.0..=f64::from(u32::MAX)).contains(value));
    value.map(|value| value as u32).ok_or_else(|| {
        Failure::input(format!("{key:?} must be a whole number from 0 to 4294967295"))
    })
}

fn big(object: &JsValue, key: &str) -> Result<u64> {
    let value = field(object, key)?.dyn_into::<BigInt>().ok();
    let value = value.and_then(|value| u64::try_from(value).ok());
    value.ok_or_else(|| Failure::input(format!("{key:?} must be a bigint of 64 bits")))
}

fn numbers(value: &JsValue) -> Vec<u32> {
    Uint32Array::new(value).to_vec()
}

/// The record that the owner's key is to authenticate.
pub fn record(facts: &JsValue) -> Result<StateRecord> {
    let name = |value: JsValue| {
        let array = value.dyn_into::<Uint8Array>();
        let array =
            array.map_err(|_| Failure::input("a state's or segment's name is a Uint8Array"))?;
        arrays::one::<16>("a state's or segment's name", &array)
    };
    let aside = |one: JsValue| {
        let segment = bytes_field(&one, "segmentId")?;
        Ok(SetAside { segment, rows: numbers(&field(&one, "rows")?) })
    };
    Ok(StateRecord {
        key: KeyId::default(),
        origin: bytes_field(facts, "origin")?,
        lineage: bytes_field(facts, "lineage")?,
        begun: big(facts, "begun")?,
        sequence: big(facts, "sequence")?,
        epoch: number(facts, "epoch")?,
        segments: number(facts, "segments")?,
        segments_digest: bytes_field(facts, "segmentsDigest")?,
        description: bytes_field(facts, "description")?,
        evaluation: bytes_field(facts, "evaluation")?,
        key_pair: bytes_field(facts, "keyPair")?,
        ancestors: arrays::items(&field(facts, "ancestors")?).map(name).collect::<Result<_>>()?,
        aside: arrays::items(&field(facts, "aside")?).map(aside).collect::<Result<_>>()?,
        routing: bytes_field(facts, "routing")?,
        consumed: bytes_field(facts, "consumed")?,
        quarantine: arrays::items(&field(facts, "quarantine")?).map(name).collect::<Result<_>>()?,
        signed: None,
    })
}

/// The same the other way round, with the `key` that it was authenticated under.
pub fn facts(record: &StateRecord) -> JsValue {
    let bytes = |data: &[u8]| JsValue::from(out(data));
    let ancestors: Array = record.ancestors.iter().map(|name| bytes(name)).collect();
    let aside: Array = record
        .aside
        .iter()
        .map(|one| {
            let rows = Uint32Array::from(one.rows.as_slice());
            object(&[("segmentId", bytes(&one.segment)), ("rows", rows.into())])
        })
        .collect();
    let quarantine: Array = record.quarantine.iter().map(|id| bytes(id)).collect();
    object(&[
        ("key", record.key.to_string().into()),
        ("origin", bytes(&record.origin)),
        ("lineage", bytes(&record.lineage)),
        ("begun", record.begun.into()),
        ("sequence", record.sequence.into()),
        ("epoch", record.epoch.into()),
        ("segments", record.segments.into()),
        ("segmentsDigest", bytes(&record.segments_digest)),
        ("description", bytes(&record.description)),
        ("evaluation", bytes(&record.evaluation)),
        ("keyPair", bytes(&record.key_pair)),
        ("ancestors", ancestors.into()),
        ("aside", aside.into()),
        ("routing", bytes(&record.routing)),
        ("consumed", bytes(&record.consumed)),
        ("quarantine", quarantine.into()),
    ])
}
