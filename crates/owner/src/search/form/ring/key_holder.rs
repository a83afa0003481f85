//! Seals rows as packed polynomials of the ring form, and encrypts its queries. Owner only.

use super::open::{RingLender, RingQueries, RingScores, RowSecrets, Trees, expand, reaches};
use super::packing::{Packing, vectors};
use super::scale::{scales, vector_scale};
use crate::error::{Error, Result};
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{
    AnswerFormat, EncodedQueries, EncryptedRows, Exactness, Expected, Kept, KeyHolderHalf,
    MaskedQueries, Opening, PackingChoice, RowEncryptor, StoredRows, expect_key, not_probed,
    select_rows,
};
use crate::search::form::key_holder::MaskSeed;
use crate::search::message::WordsAsked;
use crate::search::quantize::{Checked, signs_or_units};
use crate::search::root_key::SegmentRootKey;
use ciphervec::search::TreeLender;
use ciphervec_arith::parallel::*;
use ciphervec_he_secret::keys::random_bytes;
use ciphervec_he_secret::lattice::retrieval::{ChoiceShape, FoldNoise};
use ciphervec_he_secret::lattice::ring::{
    self, AnswerWords, Binding, EvaluationKeys, Hints, Layout, Masks, Packed, QueryKey, Ring,
    Vectors,
};
use ciphervec_he_secret::wire::{KeyId, Kind, Reader};
use std::sync::{Arc, Mutex, OnceLock};
use zeroize::Zeroizing;

/// Query keys that are kept: sessions come and go.
const QUERY_KEYS: usize = 8;

pub struct RingKeyHolder {
    pub(super) spec: IndexSpec,
    pub(super) rows: Rows,
    pub(super) ring: Ring,
    masks: Masks,
    /// Of dimensions; none in collections of release 0.1, whose rows have none.
    signs: Vec<i64>,
    /// The latest query keys.
    query_keys: Mutex<Vec<Arc<QueryKey>>>,
    /// Evaluation keys by epoch: those that the server was given.
    evaluation: Mutex<Vec<Arc<EvaluationKeys>>>,
}

impl RingKeyHolder {
    pub fn new(spec: IndexSpec, rows: Rows, mask_seed: [u8; 32]) -> Result<Self> {
        let masks = Masks::new(mask_seed, spec.dimension());
        let query_keys = Mutex::new(Vec::new());
        let evaluation = Mutex::new(Vec::new());
        let signs = match spec.incarnation() {
            Some(_) => ring::dimension_signs(&mask_seed, spec.dimension()),
            None => Vec::new(),
        };
        let ring = Ring::new()?;
        Ok(RingKeyHolder { spec, rows, ring, masks, signs, query_keys, evaluation })
    }

    /// The query key of an epoch.
    pub(super) fn query_key(&self, root: &SegmentRootKey, epoch: u32) -> Arc<QueryKey> {
        let mut keys = self.query_keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(key) = keys.iter().find(|key| key.epoch() == epoch) {
            return Arc::clone(key);
        }
        let key = QueryKey::derive(&self.ring, root.master(), &self.spec.binding(), epoch);
        let key = Arc::new(key);
        if keys.len() == QUERY_KEYS {
            keys.remove(0);
        }
        keys.push(Arc::clone(&key));
        key
    }

    /// The evaluation keys of an epoch: those that were taken in, or those that the key gives.
    fn held_evaluation(&self, root: &SegmentRootKey, epoch: u32) -> Arc<EvaluationKeys> {
        let lock = || self.evaluation.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let find = |held: &[Arc<EvaluationKeys>]| {
            let mut held = held.iter();
            held.find(|keys| keys.epoch() == epoch && keys.key_id() == root.key_id()).cloned()
        };
        if let Some(keys) = find(&lock()) {
            return keys;
        }
        let secret = self.query_key(root, epoch);
        let (binding, dimension) = (self.spec.binding(), self.spec.dimension());
        let of = self.binding();
        let keys = secret.evaluation_keys(&self.ring, root.master(), &binding, of, dimension);
        let keys = Arc::new(keys);
        // They are made without the lock: threads that work on them may take up other work, which asks for them too.
        let mut held = lock();
        if let Some(keys) = find(&held) {
            return keys;
        }
        // Sessions come and go, and their keys can be made again; those that were taken in can't.
        if held.len() >= QUERY_KEYS
            && let Some(oldest) = held.iter().position(|keys| ring::is_session(keys.epoch()))
        {
            held.remove(oldest);
        }
        held.push(Arc::clone(&keys));
        keys
    }

    fn expanded(
        &self,
        root: &SegmentRootKey,
        queries: &RingQueries,
        levels: &[u8],
    ) -> Result<Trees> {
        let secret = self.query_key(root, queries.epoch);
        let keys = self.held_evaluation(root, queries.epoch);
        let index = (&self.spec, self.rows, &self.ring);
        expand(index, queries, &secret, &keys, &self.masks, levels)
    }

    fn binding(&self) -> Binding {
        Binding { index: self.spec.id(), mask_seed: *self.masks.seed() }
    }
}

impl RingKeyHolder {
    fn packed_for(&self, expected: &Expected) -> Packing<'_> {
        let RingKeyHolder { spec, rows, ring, .. } = self;
        Packing { spec, rows: *rows, ring, network: expected.network }
    }

    /// Encrypts each row under the mask that `place` has for it: a seed, and the first of its streams.
    fn encrypt(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        top_level: u8,
        epoch: u32,
        format: AnswerFormat,
        place: &(dyn Fn(usize) -> (MaskSeed, u64) + Sync),
    ) -> Result<RingQueries> {
        let (ring, dimension) = (&self.ring, self.spec.dimension());
        let layout = Layout::new(dimension, 0)?;
        let secret = self.query_key(root, epoch);
        let scales = scales(&self.spec, self.rows, ring, top_level);
        let quantized = rows.quantize(scales.query).signed(&self.signs);
        let values = Zeroizing::new(quantized.values());
        let noise_seeds = (0..rows.len())
            .map(|_| Ok(Zeroizing::new(random_bytes::<32>()?)))
            .collect::<Result<Vec<_>>>()?;
        let encrypt = |((query, values), noise_seed): ((usize, &[i64]), &Zeroizing<[u8; 32]>)| {
            let (seed, first) = place(query);
            secret.encrypt(ring, &layout, values, &seed, noise_seed, first)
        };
        let encrypted = values.par_chunks_exact(dimension).enumerate().zip(&noise_seeds);
        let pieces = encrypted.map(encrypt).collect();
        let words = self.words_for(top_level, format)?;
        let (fold, prepared) = (OnceLock::new(), OnceLock::new());
        Ok(RingQueries { epoch, scales, words, integers: values, pieces, fold, prepared })
    }

    /// The words that answers to queries for levels up to `top_level` are wanted in.
    fn words_for(&self, top_level: u8, format: AnswerFormat) -> Result<Option<WordsAsked>> {
        if format == AnswerFormat::First {
            return Ok(None);
        }
        let scales = scales(&self.spec, self.rows, &self.ring, top_level);
        let linear = (0..=top_level).map(|level| {
            let layout = Layout::new(self.spec.dimension(), level)?;
            let words = Ring::answer_words(&layout, vectors(self.rows), scales);
            Ok(words.linear() as u8)
        });
        Ok(Some(WordsAsked { linear: linear.collect::<Result<_>>()? }))
    }
}

impl RowEncryptor for RingKeyHolder {
    fn encrypt_rows(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        expected: &Expected,
    ) -> Result<EncryptedRows> {
        let (spec, ring, master) = (&self.spec, &self.ring, root.master());
        let scale = vector_scale(spec, self.rows);
        let plaintext = rows.quantize(scale).signed(&self.signs);
        let layout = self.packed_for(expected).layout(rows.len(), expected.rows)?;
        let (binding, level) = (spec.binding(), layout.level());
        let scales = ring.scales(scale, level);
        let key = self.segment_key(root)?;
        let Packed { id, words, sums } = match self.rows {
            Rows::Encrypted => {
                ring::seal(ring, &self.masks, master, &binding, &layout, &plaintext, scales)?
            }
            Rows::Plain => ring::pack(ring, master, &binding, &layout, &plaintext, scales)?,
        };
        Ok(EncryptedRows { id, level, key, words, witness: sums })
    }
}

impl KeyHolderHalf for RingKeyHolder {
    fn segment_key(&self, root: &SegmentRootKey) -> Result<KeyId> {
        Ok(match self.rows {
            Rows::Encrypted => root.key_id(),
            Rows::Plain => KeyId::default(),
        })
    }

    fn response_key(&self, root: &SegmentRootKey) -> Result<KeyId> {
        Ok(root.key_id())
    }

    fn suits(&self, rows: usize, level: u8, expected: &Expected) -> Result<bool> {
        self.packed_for(expected).suits(rows, level, expected.rows)
    }

    fn packing(&self, expected: &Expected) -> Result<Option<PackingChoice>> {
        let packing = self.packed_for(expected);
        let level = packing.bulk(expected.rows)?.level();
        let answer_len = packing.answer_len(expected.rows, level)?;
        let transfer = expected.network.seconds(answer_len as u64);
        Ok(Some(PackingChoice { level, answer_len, transfer }))
    }

    fn exactness(&self, _witness: &[u8]) -> Exactness {
        Exactness::Noisy
    }

    fn rounding(&self) -> f64 {
        f64::exp2(-16.0)
    }

    fn hints(&self, level: u8, top_level: u8) -> Result<Option<Hints>> {
        if self.rows == Rows::Plain {
            return Ok(None);
        }
        let layout = Layout::new(self.spec.dimension(), level)?;
        let scales = scales(&self.spec, self.rows, &self.ring, top_level);
        // Whatever the answer comes in.
        let longer = Ring::answer_words(&layout, Vectors::Sealed, scales);
        let [first, second] =
            [AnswerWords::FIRST, longer].map(|words| Ring::hints(&layout, scales, words));
        Ok(Some(Hints { row: first.row, key: first.key.max(second.key) }))
    }

    fn encode_queries(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        top_level: u8,
        epoch: u32,
        format: AnswerFormat,
    ) -> Result<EncodedQueries> {
        let seed = random_bytes::<32>()?;
        let chunks = Layout::new(self.spec.dimension(), 0)?.chunks();
        let place = |query: usize| (seed, (query * chunks) as u64);
        let queries = self.encrypt(root, rows, top_level, epoch, format, &place)?;
        let mut body = seed.to_vec();
        queries.pieces.iter().flatten().for_each(|piece| piece.append(&mut body));
        let words = queries.words.clone();
        Ok(EncodedQueries { body, key: root.key_id(), kept: Kept::new(queries), words })
    }

    fn masked_queries(&self) -> Option<&dyn MaskedQueries> {
        Some(self)
    }

    fn encode_choice(
        &self,
        root: &SegmentRootKey,
        queries: &Kept,
        shape: &ChoiceShape,
        chosen: &[usize],
    ) -> Result<Vec<u8>> {
        let queries: &RingQueries = queries.get()?;
        let (ring, binding) = (&self.ring, self.spec.binding());
        let secret = self.query_key(root, queries.epoch);
        let choice = secret.choose(ring, root.master(), &binding, shape, chosen)?;
        queries.fold.get_or_init(|| FoldNoise::of_choice(shape).variance);
        let mut bytes = Vec::with_capacity(shape.byte_len());
        choice.append(&mut bytes);
        Ok(bytes)
    }

    fn read_queries(&self, _count: u32, _key: KeyId, _body: Reader<'_>) -> Result<Kept> {
        Err(not_probed(&self.spec))
    }

    fn prepare(&self, root: &SegmentRootKey, queries: &Kept, levels: &[u8]) -> Result<()> {
        let queries: &RingQueries = queries.get()?;
        if queries.prepared.get().is_none() {
            let trees = self.expanded(root, queries, levels)?;
            queries.prepared.get_or_init(|| Arc::new(trees));
        }
        Ok(())
    }

    fn lender<'a>(
        &'a self,
        root: &'a SegmentRootKey,
        queries: &'a Kept,
    ) -> Result<Option<Box<dyn TreeLender + 'a>>> {
        let queries: &RingQueries = queries.get()?;
        let epoch = queries.epoch;
        let keys = move || (self.query_key(root, epoch), self.held_evaluation(root, epoch));
        let index = (self.rows, &self.ring, &self.masks);
        Ok(Some(Box::new(RingLender::new(index, keys, queries))))
    }

    fn open<'a>(
        &'a self,
        root: &'a SegmentRootKey,
        queries: &'a Kept,
        levels: &[u8],
    ) -> Result<Box<dyn Opening + 'a>> {
        let queries: &RingQueries = queries.get()?;
        let prepared = queries.prepared.get().filter(|trees| reaches(trees, levels));
        let trees = match prepared {
            Some(trees) => Arc::clone(trees),
            None => Arc::new(self.expanded(root, queries, levels)?),
        };
        let secret = self.query_key(root, queries.epoch);
        let index = (&self.spec, self.rows, &self.ring);
        Ok(Box::new(RingScores::new(index, queries, secret, trees)))
    }

    fn decrypt_rows(
        &self,
        root: &SegmentRootKey,
        stored: &StoredRows<'_>,
        wanted: Option<&[usize]>,
    ) -> Result<Vec<f32>> {
        let (spec, ring, head) = (&self.spec, &self.ring, stored.head);
        let rows = head.rows as usize;
        let layout = Layout::new(spec.dimension(), head.level)?;
        let (index, blocks) = ((spec, self.rows, ring), 0..layout.blocks(rows));
        let names = (root, head.id, rows, stored.witness);
        let secrets = RowSecrets::new(index, names, &layout, blocks)?;
        let masks = secrets.key.is_some().then_some(&self.masks);
        let integers = ring::unseal(ring, masks, &secrets.opened(&layout), stored.words, rows)?;
        let Some(integers) = integers else {
            return Err(Error::Tampered { segments: vec![head.id] });
        };
        let scale = vector_scale(spec, self.rows);
        let mut all = signs_or_units(spec, scale, integers.iter().copied());
        if !self.signs.is_empty() {
            for row in all.chunks_exact_mut(spec.dimension()) {
                row.iter_mut().zip(&self.signs).for_each(|(x, sign)| *x *= *sign as f32);
            }
        }
        select_rows(all, wanted, spec.dimension())
    }

    fn unchecked_blocks(&self, witness: &[u8], rows: usize, level: u8) -> Option<usize> {
        let layout = Layout::new(self.spec.dimension(), level).ok()?;
        Some(if witness.is_empty() { layout.blocks(rows) } else { 0 })
    }

    fn evaluation_keys(
        &self,
        root: &SegmentRootKey,
        epoch: u32,
    ) -> Result<Option<Arc<EvaluationKeys>>> {
        Ok(Some(self.held_evaluation(root, epoch)))
    }

    fn hold_evaluation(&self, root: &SegmentRootKey, bytes: &[u8]) -> Result<()> {
        let keys = EvaluationKeys::from_bytes(&self.ring, bytes, self.spec.dimension())?;
        let what = Kind::EvaluationKeys.as_str();
        expect_key(what, root.key_id(), keys.key_id())?;
        if *keys.binding() != self.binding() {
            return Err(Reader::new(what, &[]).error("they are another index's").into());
        }
        let mut held = self.evaluation.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        held.retain(|other| (other.epoch(), other.key_id()) != (keys.epoch(), keys.key_id()));
        held.push(Arc::new(keys));
        Ok(())
    }
}

impl MaskedQueries for RingKeyHolder {
    fn words(&self, top_level: u8, format: AnswerFormat) -> Result<Option<WordsAsked>> {
        self.words_for(top_level, format)
    }

    fn encode_masked(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        top_level: u8,
        epoch: u32,
        format: AnswerFormat,
        masks: &[MaskSeed],
    ) -> Result<EncodedQueries> {
        let place = |query: usize| (masks[query], 0);
        let queries = self.encrypt(root, rows, top_level, epoch, format, &place)?;
        let mut body = Vec::new();
        for (seed, pieces) in masks.iter().zip(&queries.pieces) {
            body.extend_from_slice(seed);
            pieces.iter().for_each(|piece| piece.append(&mut body));
        }
        let words = queries.words.clone();
        Ok(EncodedQueries { body, key: root.key_id(), kept: Kept::new(queries), words })
    }
}
