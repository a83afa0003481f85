//! Ring rows and queries: unit rows enter, packed polynomials and encrypted queries leave. Owner only.

use super::open::{RingQueries, RingScores};
use super::packing::{Packing, answer_words, vectors};
use super::scale::{scales, vector_scale};
use crate::error::Result;
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{
    AnswerFormat, EncodedQueries, EncryptedRows, Exactness, Expected, Kept, KeyHolderHalf,
    LevelSums, MaskedQueries, Opening, PackingChoice, RowEncryptor, StoredRows, not_probed,
    select_rows,
};
use crate::search::form::halves::MaskSeed;
use crate::search::message::WordsAsked;
use crate::search::quantize::{Checked, signs_or_units};
use crate::search::root_key::SegmentRootKey;
use ciphervec_arith::parallel::*;
use ciphervec_he::keys::random_bytes;
use ciphervec_he::lattice::nonce;
use ciphervec_he::lattice::ring::{
    self, AnswerWords, Binding, Ciphertext, EvaluationKeys, Hints, Layout, Masks, QueryKey, Ring,
    SegmentKey, Vectors,
};
use ciphervec_he::wire::{KeyId, Reader};
use std::sync::{Arc, Mutex};
use zeroize::Zeroizing;

/// Query keys that are kept: sessions come and go.
const QUERY_KEYS: usize = 8;

pub struct RingKeyHolder {
    pub(super) spec: IndexSpec,
    pub(super) rows: Rows,
    pub(super) ring: Ring,
    masks: Masks,
    /// The latest query keys.
    query_keys: Mutex<Vec<Arc<QueryKey>>>,
}

impl RingKeyHolder {
    pub fn new(spec: IndexSpec, rows: Rows, mask_seed: [u8; 32]) -> Result<Self> {
        let masks = Masks::new(mask_seed, spec.dimension());
        let query_keys = Mutex::new(Vec::new());
        Ok(RingKeyHolder { spec, rows, ring: Ring::new()?, masks, query_keys })
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
    ) -> Result<(Vec<Vec<Ciphertext>>, RingQueries)> {
        let (ring, dimension) = (&self.ring, self.spec.dimension());
        let layout = Layout::new(dimension, 0)?;
        let secret = self.query_key(root, epoch);
        let scales = scales(&self.spec, self.rows, ring, top_level);
        let values = Zeroizing::new(rows.quantize(scales.query).values());
        let noise_seeds = (0..rows.len())
            .map(|_| Ok(Zeroizing::new(random_bytes::<32>()?)))
            .collect::<Result<Vec<_>>>()?;
        let encrypt = |((query, values), noise_seed): ((usize, &[i64]), &Zeroizing<[u8; 32]>)| {
            let (seed, first) = place(query);
            Ciphertext::encrypt(ring, &secret, &layout, values, &seed, noise_seed, first)
        };
        let encrypted = values.par_chunks_exact(dimension).enumerate().zip(&noise_seeds);
        let queries = RingQueries { epoch, scales, words: self.words_for(top_level, format)? };
        Ok((encrypted.map(encrypt).collect(), queries))
    }

    /// The words that answers to queries for levels up to `top_level` are wanted in.
    fn words_for(&self, top_level: u8, format: AnswerFormat) -> Result<Option<WordsAsked>> {
        let round_sums = match format {
            AnswerFormat::First => return Ok(None),
            AnswerFormat::Precise => false,
            AnswerFormat::Brief => true,
        };
        let scales = scales(&self.spec, self.rows, &self.ring, top_level);
        let linear = (0..=top_level).map(|level| {
            let layout = Layout::new(self.spec.dimension(), level)?;
            let words = Ring::answer_words(&layout, vectors(self.rows), scales, round_sums);
            Ok(words.linear() as u8)
        });
        Ok(Some(WordsAsked { round_sums, linear: linear.collect::<Result<_>>()? }))
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
        let plaintext = rows.quantize(vector_scale(spec, self.rows));
        let layout = self.packed_for(expected).layout(rows.len(), expected.rows)?;
        let (binding, level) = (spec.binding(), layout.level());
        let key = self.segment_key(root)?;
        let (id, words) = match self.rows {
            Rows::Encrypted => {
                ring::seal(ring, &self.masks, master, &binding, &layout, &plaintext)?
            }
            Rows::Plain => {
                let id = nonce::draw(master, &binding, &plaintext)?;
                (id, ring::pack(ring, &layout, &plaintext))
            }
        };
        Ok(EncryptedRows { id, level, key, words, witness: Zeroizing::default() })
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
        let longer = Ring::answer_words(&layout, Vectors::Sealed, scales, false);
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
        let (encrypted, queries) = self.encrypt(root, rows, top_level, epoch, format, &place)?;
        let mut body = seed.to_vec();
        encrypted.iter().flatten().for_each(|piece| piece.append(&mut body));
        let words = queries.words.clone();
        Ok(EncodedQueries { body, key: root.key_id(), kept: Kept::new(queries), words })
    }

    fn masked_queries(&self) -> Option<&dyn MaskedQueries> {
        Some(self)
    }

    fn read_queries(&self, _count: u32, _key: KeyId, _body: Reader<'_>) -> Result<Kept> {
        Err(not_probed(&self.spec))
    }

    fn sums_len(&self, queries: &Kept, level: u8) -> Result<usize> {
        Ok(answer_words(queries.get::<RingQueries>()?.words.as_ref(), level)?.sums_len())
    }

    fn open<'a>(
        &'a self,
        root: &'a SegmentRootKey,
        queries: &'a Kept,
        sums: Vec<LevelSums>,
    ) -> Result<Box<dyn Opening + 'a>> {
        let queries: &RingQueries = queries.get()?;
        let secret = self.query_key(root, queries.epoch);
        Ok(Box::new(RingScores::new(&self.spec, self.rows, &self.ring, queries, secret, &sums)?))
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
        let secret = match self.rows {
            Rows::Encrypted => Some(SegmentKey::derive(
                ring,
                root.master(),
                &spec.binding(),
                head.id,
                &layout,
                rows,
            )),
            Rows::Plain => None,
        };
        let secrets = secret.as_ref().map(|key| (&self.masks, key));
        let integers = ring::unseal(ring, &layout, secrets, stored.words, rows)?;
        let scale = vector_scale(spec, self.rows);
        let all = signs_or_units(spec, scale, integers.iter().copied());
        select_rows(all, wanted, spec.dimension())
    }

    fn evaluation_keys(&self, root: &SegmentRootKey, epoch: u32) -> Result<Option<EvaluationKeys>> {
        let key = self.query_key(root, epoch);
        let binding = Binding { index: self.spec.id(), mask_seed: *self.masks.seed() };
        let dimension = self.spec.dimension();
        Ok(Some(EvaluationKeys::generate(&self.ring, &key, root.key_id(), binding, dimension)?))
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
        let (encrypted, queries) = self.encrypt(root, rows, top_level, epoch, format, &place)?;
        let mut body = Vec::new();
        for (seed, pieces) in masks.iter().zip(&encrypted) {
            body.extend_from_slice(seed);
            pieces.iter().for_each(|piece| piece.append(&mut body));
        }
        let words = queries.words.clone();
        Ok(EncodedQueries { body, key: root.key_id(), kept: Kept::new(queries), words })
    }
}
