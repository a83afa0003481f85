//! The owner of an index for JavaScript: it holds the keys, seals rows and queries, and opens answers.

use std::sync::Arc;

use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::protect::records::{self, Place, seal_records};
use ciphervec_owner::search::{
    AnswerFormat, Expected, OpenOptions, Owner, QueryOptions, RotationState, SegmentRootKey,
    Standing, StoredSidecar,
};
use ciphervec_owner::{Keys, Network, SegmentId};
use js_sys::{Float32Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::errors::{Failure, Result};
use crate::evaluation_keys::JsEvaluationKeys;
use crate::keys::JsKeys;
use crate::query::JsSealedQuery;
use crate::records::JsRecordBatch;
use crate::segment::{self, JsSealedSegment};
use crate::segment_directory::JsSegmentDirectory;
use crate::spec::JsIndexSpec;
use crate::wish::Wish;
use crate::writer_card::JsWriterCard;
use crate::{arrays, ids, state, wipe};

/// The half that holds the keys. `free()` wipes what it derived from them, once nothing is being opened any more.
#[wasm_bindgen(js_name = Owner)]
pub struct JsOwner(#[wasm_bindgen(skip)] pub Arc<Owner>);

impl Drop for JsOwner {
    fn drop(&mut self) {
        wipe::stack();
    }
}

fn make(
    keys: &JsKeys,
    spec: &JsIndexSpec,
    mask_seed: Option<Uint8Array>,
    previous: Option<&Keys>,
) -> Result<JsOwner> {
    let mask_seed = mask_seed.map(|seed| arrays::one("a mask seed", &seed)).transpose()?;
    let custody = RotationState { mask_seed, previous };
    Ok(JsOwner(Arc::new(Owner::with_rotation(&keys.0, spec.0.clone(), &custody)?)))
}

/// What rows are packed for.
fn expected_rows(rows: usize, network: &JsValue) -> Result<Expected> {
    if network.is_undefined() || network.is_null() {
        return Ok(Expected::rows(rows));
    }
    let number = |key: &str| {
        let value = arrays::field(network, key)?.as_f64();
        value.ok_or_else(|| Failure::input(format!("{key:?} must be a number")))
    };
    let (bytes_per_second, round_trip) = (number("bytesPerSecond")?, number("roundTrip")?);
    Ok(Expected { rows, network: Network { bytes_per_second, round_trip } })
}

#[wasm_bindgen(js_class = Owner)]
impl JsOwner {
    /// The owner of an index; `maskSeed` is that of one whose keys were changed.
    #[wasm_bindgen(constructor)]
    pub fn new(
        keys: &JsKeys,
        spec: &JsIndexSpec,
        mask_seed: Option<Uint8Array>,
    ) -> Result<JsOwner> {
        make(keys, spec, mask_seed, None)
    }

    /// The owner of an index whose keys are being changed: what `previous` sealed opens too.
    #[wasm_bindgen(js_name = withPrevious)]
    pub fn with_previous(
        keys: &JsKeys,
        spec: &JsIndexSpec,
        mask_seed: Option<Uint8Array>,
        previous: &JsKeys,
    ) -> Result<JsOwner> {
        make(keys, spec, mask_seed, Some(&previous.0))
    }

    /// The public name of the keys.
    #[wasm_bindgen(getter, js_name = keyId)]
    pub fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// The seed of the public masks, which outlives the keys.
    #[wasm_bindgen(getter, js_name = maskSeed)]
    pub fn mask_seed(&self) -> Uint8Array {
        arrays::out(self.0.mask_seed())
    }

    /// What a server needs to answer encrypted queries of `epoch`; empty where queries are plain.
    pub fn evaluation(&self, epoch: u32) -> Result<JsEvaluationKeys> {
        let made = self.0.evaluation(epoch)?;
        let bytes = made.map(|keys| keys.to_bytes()).unwrap_or_default();
        Ok(JsEvaluationKeys::new(bytes, epoch, self.key_id()))
    }

    /// Takes in the evaluation keys that a server holds, where they are not those of `evaluation`.
    #[wasm_bindgen(js_name = holdEvaluation)]
    pub fn hold_evaluation(&self, data: &[u8]) -> Result<()> {
        Ok(self.0.hold_evaluation(data)?)
    }

    /// Other keys, encrypted under the owner's own and bound to the index.
    #[wasm_bindgen(js_name = sealKeys)]
    pub fn seal_keys(&self, keys: &JsKeys) -> Result<Uint8Array> {
        Ok(arrays::out(&self.0.seal_keys(&keys.0)?))
    }

    /// The keys that `sealKeys` was given.
    #[wasm_bindgen(js_name = openKeys)]
    pub fn open_keys(&self, sealed: &Uint8Array) -> Result<JsKeys> {
        Ok(JsKeys(Arc::new(self.0.open_keys(&arrays::bytes("sealed keys", sealed)?)?)))
    }

    /// A card for the writer of this name.
    #[wasm_bindgen(js_name = writerCard)]
    pub fn writer_card(
        &self,
        writer: &str,
        filterable: Vec<String>,
        centre: Option<Vec<f32>>,
    ) -> Result<JsWriterCard> {
        let centre = centre.unwrap_or_default();
        Ok(JsWriterCard(self.0.writer_card_around(writer, &filterable, &centre)?))
    }

    /// Whether this owner made the card as it is.
    #[wasm_bindgen(js_name = knowsCard)]
    pub fn knows_card(&self, card: &JsWriterCard) -> bool {
        self.0.knows_card(&card.0)
    }

    /// Makes the key pair of an additively homomorphic scheme. Once.
    #[wasm_bindgen(js_name = generateKeyPair)]
    pub fn generate_key_pair(&self) -> Result<()> {
        Ok(self.0.generate_key_pair()?)
    }

    /// Takes in what `sealedKeyPair` gave, instead.
    #[wasm_bindgen(js_name = openKeyPair)]
    pub fn open_key_pair(&self, sealed: &Uint8Array) -> Result<()> {
        Ok(self.0.open_key_pair(&arrays::bytes("a sealed key pair", sealed)?)?)
    }

    /// The pair, encrypted under the owner's key and bound to the index.
    #[wasm_bindgen(js_name = sealedKeyPair)]
    pub fn sealed_key_pair(&self) -> Result<Uint8Array> {
        Ok(arrays::out(&self.0.sealed_key_pair()?))
    }

    /// The public half, which is what the server needs.
    #[wasm_bindgen(js_name = publicKey)]
    pub fn public_key(&self) -> Result<JsEvaluationKeys> {
        let bytes = self.0.public_key()?;
        let key_id = wire::open(Kind::PublicKey, &bytes)?.0.key.to_string();
        Ok(JsEvaluationKeys::new(bytes, 0, key_id))
    }

    /// Seals rows, given one after the other, under a new nonce. `expected` is how many the index will hold, for the packing;
    /// left out, these. `network` is what answers travel over. Rows are taken less `centre`.
    pub fn seal(
        &self,
        vectors: &Float32Array,
        #[wasm_bindgen(unchecked_param_type = "Id[]")] ids: Vec<JsValue>,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] expected: Option<usize>,
        #[wasm_bindgen(unchecked_optional_param_type = "Network")] network: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "Float32Array")] centre: Option<Vec<f32>>,
    ) -> Result<JsSealedSegment> {
        let names = ids::all(&ids)?;
        let expected = expected_rows(expected.unwrap_or(names.len()), network)?;
        let rows = arrays::rows(vectors, self.0.spec().dimension(), Some(names.len()))?;
        let centre = centre.unwrap_or_default();
        Ok(JsSealedSegment(self.0.seal_around(&rows, &names, &expected, &centre)?))
    }

    /// The segments that are packed for another index than one of `expected` rows.
    pub fn repack(
        &self,
        directory: &JsSegmentDirectory,
        expected: usize,
        #[wasm_bindgen(unchecked_optional_param_type = "Network")] network: &JsValue,
    ) -> Result<Vec<Uint8Array>> {
        let expected = expected_rows(expected, network)?;
        let mut found = Vec::new();
        for (id, rows, level) in directory.0.segments() {
            if !self.0.suits(rows as usize, level, &expected)? {
                found.push(arrays::out(&id.0));
            }
        }
        Ok(found)
    }

    /// How most rows of an index of `expected` are packed; null in modes without a choice.
    #[wasm_bindgen(unchecked_return_type = "Packing | null")]
    pub fn packing(
        &self,
        expected: usize,
        #[wasm_bindgen(unchecked_optional_param_type = "Network")] network: &JsValue,
    ) -> Result<JsValue> {
        let choice = self.0.packing(&expected_rows(expected, network)?)?;
        Ok(choice.map_or(JsValue::NULL, |choice| {
            arrays::object(&[
                ("level", choice.level.into()),
                ("answerBytes", choice.answer_len.into()),
                ("seconds", choice.transfer.into()),
            ])
        }))
    }

    /// Takes a segment into the directory, with what its sidecar says; `wrap` is the key of a segment that a writer sealed.
    /// `standing` says what becomes of ids that are known: `new` (an error where the owner sealed both), `stored` (the later
    /// row counts), `appended` (the authenticated row counts). Rows in `aside` don't count.
    #[wasm_bindgen(js_name = addTo)]
    #[expect(clippy::too_many_arguments, reason = "one call of JavaScript's")]
    pub fn add_to(
        &self,
        directory: &mut JsSegmentDirectory,
        segment_id: &[u8],
        sidecar: &Uint8Array,
        #[wasm_bindgen(unchecked_optional_param_type = "Uint32Array")] deleted_rows: Option<
            Vec<u32>,
        >,
        #[wasm_bindgen(unchecked_optional_param_type = "Uint8Array")] wrap: Option<Uint8Array>,
        #[wasm_bindgen(unchecked_optional_param_type = "\"new\" | \"stored\" | \"appended\"")]
        standing: Option<String>,
        #[wasm_bindgen(unchecked_optional_param_type = "Uint32Array")] aside: Option<Vec<u32>>,
    ) -> Result<()> {
        let id = segment::id(segment_id)?;
        let sidecar = arrays::bytes("a sidecar", sidecar)?;
        let wrap = wrap.map(|wrap| arrays::bytes("a wrapped key", &wrap)).transpose()?;
        let standing = match (standing.as_deref(), &wrap) {
            (None | Some("new"), None) => Standing::New,
            (Some("appended"), _) => Standing::Appended,
            (None | Some("new" | "stored"), _) => Standing::Stored,
            (Some(other), _) => {
                let message = format!("standing is new, stored or appended, got {other:?}");
                return Err(Failure::input(message));
            }
        };
        let (deleted, aside) = (deleted_rows.unwrap_or_default(), aside.unwrap_or_default());
        let stored = StoredSidecar {
            sidecar: &sidecar,
            wrap: wrap.as_deref(),
            deleted: &deleted,
            aside: &aside,
        };
        Ok(directory.0.attach_stored(&self.0, id, &stored, standing)?)
    }

    /// Who sealed a writer's segment of this wrap, and when; zero where it does not say.
    #[wasm_bindgen(unchecked_return_type = "WrittenFacts")]
    pub fn written(&self, segment_id: &[u8], wrap: &Uint8Array) -> Result<JsValue> {
        let wrap = arrays::bytes("a wrapped key", wrap)?;
        let written = self.0.written(segment::id(segment_id)?, &wrap)?;
        Ok(arrays::object(&[
            ("writer", written.writer.into()),
            ("time", written.time.into()),
            ("segmentId", arrays::out(&written.segment).into()),
        ]))
    }

    /// Authenticates a state under the owner's key.
    #[wasm_bindgen(js_name = sealState)]
    pub fn seal_state(
        &self,
        #[wasm_bindgen(unchecked_param_type = "StateFacts")] facts: &JsValue,
    ) -> Result<Uint8Array> {
        Ok(arrays::out(&self.0.seal_state(&state::record(facts)?)?))
    }

    /// What `sealState` was given, and the `key` that it was authenticated under.
    #[wasm_bindgen(js_name = openState, unchecked_return_type = "OpenedState")]
    pub fn open_state(&self, sealed: &Uint8Array) -> Result<JsValue> {
        let record = self.0.open_state(&arrays::bytes("a state", sealed)?)?;
        Ok(state::facts(&record))
    }

    /// The rows of a segment, or those asked for, at unit length, as far as the seal keeps them: one after the other.
    pub fn unseal(
        &self,
        segment: &Uint8Array,
        directory: &JsSegmentDirectory,
        rows: Option<Vec<u32>>,
    ) -> Result<Float32Array> {
        let segment = arrays::bytes("a segment", segment)?;
        let rows = rows.map(|rows| rows.iter().map(|&row| row as usize).collect::<Vec<_>>());
        let found = self.0.unseal_rows(&segment, rows.as_deref(), &directory.0)?;
        Ok(Float32Array::from(found.as_slice()))
    }

    /// Does ahead what opening an answer to the query takes beside the answer itself, while a server works on it.
    pub fn prepare(&self, query: &JsSealedQuery, directory: &JsSegmentDirectory) -> Result<()> {
        let levels = directory.0.levels(query.0.segments());
        Ok(self.0.prepare(&query.0, &levels)?)
    }

    /// Takes in a plain query that somebody else made, and checks that its probes are unit vectors.
    #[wasm_bindgen(js_name = readQuery)]
    pub fn read_query(&self, query: &Uint8Array) -> Result<JsSealedQuery> {
        let query = self.0.read_query(&arrays::bytes("a query", query)?)?;
        Ok(JsSealedQuery(Arc::new(query)))
    }

    /// Seals queries for the segments that the directory knows, or for those of them in `segments`. `tags` restrict the answer
    /// on the server. `format` is that of the answer: "first", which every server knows, or "short". Rows are taken less
    /// `centre`.
    #[expect(clippy::too_many_arguments, reason = "one call of JavaScript's")]
    pub fn query(
        &self,
        vectors: &Float32Array,
        directory: &JsSegmentDirectory,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] epoch: Option<u32>,
        #[wasm_bindgen(unchecked_optional_param_type = "Uint8Array[]")] tags: Option<
            Vec<Uint8Array>,
        >,
        #[wasm_bindgen(unchecked_optional_param_type = "Uint8Array[]")] segments: Option<
            Vec<Uint8Array>,
        >,
        #[wasm_bindgen(unchecked_optional_param_type = "\"first\" | \"short\"")] format: Option<
            String,
        >,
        #[wasm_bindgen(unchecked_optional_param_type = "Float32Array")] centre: Option<Vec<f32>>,
    ) -> Result<JsSealedQuery> {
        let format = match format.as_deref() {
            Some("first") => AnswerFormat::First,
            None | Some("short") => AnswerFormat::Short,
            Some(other) => {
                let message = format!("format is first or short, got {other:?}");
                return Err(Failure::input(message));
            }
        };
        let tags = arrays::exacts("a filter tag", &tags.unwrap_or_default())?;
        let segments = segments.map(|ids| segment::ids(&ids)).transpose()?;
        let rows = arrays::rows(vectors, self.0.spec().dimension(), None)?;
        let (epoch, segments) = (epoch.unwrap_or(0), segments.as_deref());
        let centre = centre.unwrap_or_default();
        let (tags, centre) = (&*tags, &*centre);
        let options =
            QueryOptions { epoch, tags, segments, format, centre, tokens: None, fold: None };
        Ok(JsSealedQuery(Arc::new(self.0.query(&rows, &directory.0, options)?)))
    }

    /// Decrypts and ranks an answer: ids and scores of each query, the `count` closest or those within `threshold`. `allow`
    /// restricts it to some ids; segments in `newer` may be missing from the answer. With `flood`, noise of that standard
    /// deviation comes first. Throws TamperedAnswer or MismatchedAnswer with the `segments` that it is about.
    #[wasm_bindgen(unchecked_return_type = "Answers")]
    #[expect(clippy::too_many_arguments, reason = "one call of JavaScript's")]
    pub fn open(
        &self,
        query: &JsSealedQuery,
        response: &Uint8Array,
        directory: &JsSegmentDirectory,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] count: Option<usize>,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] threshold: Option<f64>,
        #[wasm_bindgen(unchecked_optional_param_type = "Id[]")] allow: Option<Vec<JsValue>>,
        #[wasm_bindgen(unchecked_optional_param_type = "Uint8Array[]")] newer: Option<
            Vec<Uint8Array>,
        >,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] flood: Option<f64>,
    ) -> Result<JsValue> {
        let wish = Wish::new(count, threshold, allow, flood, &directory.0)?;
        let (newer, flood) = (segment::ids(&newer.unwrap_or_default())?, wish.flood()?);
        let response = arrays::bytes("an answer", response)?;
        let (known, selection) = (&directory.0, wish.selection.as_deref());
        let options = OpenOptions {
            retrieval: wish.retrieval,
            selection,
            newer: &newer,
            flood: flood.as_ref(),
        };
        Ok(wish.answers(self.0.open(&query.0, &response, known, options)?))
    }

    /// What one score says about noise that outlives it, as cosines: of its row, and of the epoch's keys.
    #[wasm_bindgen(unchecked_return_type = "Hints")]
    pub fn hints(&self, directory: &JsSegmentDirectory) -> Result<JsValue> {
        let hints = self.0.hints(&directory.0)?;
        Ok(arrays::object(&[("row", hints.row.into()), ("key", hints.key.into())]))
    }

    /// Blocks that nothing is checked about, because their segments have no check sums.
    #[wasm_bindgen(js_name = uncheckedBlocks)]
    pub fn unchecked_blocks(&self, directory: &JsSegmentDirectory) -> usize {
        directory.0.unchecked_blocks(&self.0)
    }

    /// Encrypts one payload per row of a segment, bound to the collection, the segment, the row and the id.
    #[wasm_bindgen(js_name = sealRecords)]
    pub fn seal_records(
        &self,
        segment_id: &[u8],
        #[wasm_bindgen(unchecked_param_type = "Id[]")] ids: Vec<JsValue>,
        payloads: Vec<Uint8Array>,
    ) -> Result<JsRecordBatch> {
        if ids.len() != payloads.len() {
            let (payloads, ids) = (payloads.len(), ids.len());
            let message = format!("one payload per id expected, got {payloads} for {ids}");
            return Err(Failure::input(message));
        }
        let (id, names) = (segment::id(segment_id)?, ids::all(&ids)?);
        let rows = names.into_iter().zip(&payloads);
        let rows = rows.map(|(name, payload)| Ok((name, arrays::bytes("a payload", payload)?)));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let binding = self.0.spec().binding();
        let place = Place { collection: &binding, segment: &id.0 };
        JsRecordBatch::read(seal_records(self.0.aead(), place, &rows)?)
    }

    /// Decrypts the payload of one row, under the key that the directory has for the segment, or the owner's own.
    #[wasm_bindgen(js_name = openRecord)]
    pub fn open_record(
        &self,
        segment_id: &[u8],
        records: &JsRecordBatch,
        row: u32,
        #[wasm_bindgen(unchecked_param_type = "Id")] id: &JsValue,
        directory: &JsSegmentDirectory,
    ) -> Result<Uint8Array> {
        let (segment, id) = (segment::id(segment_id)?, ids::of(id)?);
        let binding = self.0.spec().binding();
        let place = Place { collection: &binding, segment: &segment.0 };
        let root = root_of(&directory.0, segment);
        let aead = root.as_deref().map_or_else(|| self.0.aead(), SegmentRootKey::aead);
        let Some(sealed) = records.ciphertext(row as usize) else {
            let message = format!("the sealed records of this segment have no row {row}");
            return Err(Failure::corrupt(message));
        };
        Ok(arrays::out(&records::open_record(aead, place, &id, row, sealed)?))
    }

    /// The keyed hash of a filterable field's value.
    #[wasm_bindgen(js_name = filterTag)]
    pub fn filter_tag(&self, field: &str, value: &[u8]) -> Uint8Array {
        arrays::out(&self.0.filter_tag(field, value))
    }
}

/// The key that one segment's records are sealed under: the directory knows it where it is not the owner's own.
fn root_of(
    directory: &ciphervec_owner::search::SegmentDirectory,
    segment: SegmentId,
) -> Option<Arc<SegmentRootKey>> {
    directory.root(segment).map(Arc::clone)
}

#[wasm_bindgen(js_class = Keys)]
impl JsKeys {
    /// What a server needs to answer encrypted queries of `epoch`; empty where queries are plain.
    pub fn evaluation(&self, spec: &JsIndexSpec, epoch: Option<u32>) -> Result<JsEvaluationKeys> {
        if spec.0.scheme().is_additive() {
            return Err(Failure::input(format!(
                "under scheme {:?} the server's key is half of a pair that the index's owner holds; take owner.publicKey()",
                spec.0.scheme().as_str()
            )));
        }
        let epoch = epoch.unwrap_or(0);
        let made = self.0.evaluation(&spec.0, epoch)?;
        let bytes = made.map(|keys| keys.to_bytes()).unwrap_or_default();
        Ok(JsEvaluationKeys::new(bytes, epoch, self.key_id()))
    }
}
