//! Evaluation keys: the owner makes them, and the server multiplies and rotates with them. Public.

use super::super::params::Params;
use super::super::serialize::{check, open};
use super::key_switch_key::KeySwitchKey;
use super::plan::{FIXED_BYTES, KeyPlan, RELINEARISE, conjugation_element, rotation_element};
use crate::error::{Error, Result};
use crate::wire::{self, Header, InnerFrame, KeyId, Kind, Put, Scheme, Source};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A set of evaluation keys. Public: of no use for reading anything.
#[derive(Clone)]
pub struct EvaluationKeys {
    params: Arc<Params>,
    key: KeyId,
    level: usize,
    /// By Galois element, 0 for relinearisation.
    keys: BTreeMap<u64, Arc<KeySwitchKey>>,
}

impl EvaluationKeys {
    /// Keys by Galois element, 0 for relinearisation. Hidden: whoever has a secret key makes them with it.
    #[doc(hidden)]
    pub fn from_parts(
        params: &Arc<Params>,
        key: KeyId,
        level: usize,
        keys: BTreeMap<u64, Arc<KeySwitchKey>>,
    ) -> Self {
        EvaluationKeys { params: params.clone(), key, level, keys }
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The secret key they belong to.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// The highest level they serve.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Bytes serialised.
    pub fn bytes(&self) -> usize {
        let entry = 8 + KeySwitchKey::bytes_at(&self.params, self.level);
        wire::HEADER_LEN + FIXED_BYTES + self.keys.len() * entry
    }

    /// Bytes in memory, where the masks are expanded.
    pub fn memory(&self) -> usize {
        self.keys.values().map(|key| key.memory()).sum()
    }

    /// Whether `plan` can be carried out with these keys.
    pub fn covers(&self, plan: &KeyPlan) -> bool {
        let level = plan.level.unwrap_or(self.params.max_level());
        let elements = plan.galois_elements(&self.params);
        level <= self.level
            && (!plan.relinearise || self.keys.contains_key(&RELINEARISE))
            && elements.iter().all(|element| self.keys.contains_key(element))
    }

    /// The keys that `plan` lists and this set lacks, in words; all of them where the set does not
    /// reach the plan's level.
    pub fn missing(&self, plan: &KeyPlan) -> Vec<String> {
        let level = plan.level.unwrap_or(self.params.max_level());
        let lacks = |element| level > self.level || !self.keys.contains_key(&element);
        let steps = |element| {
            plan.rotations.iter().find(|&&steps| rotation_element(&self.params, steps) == element)
        };
        let named = |element| match steps(element) {
            Some(steps) => format!("rotation by {steps}"),
            None => "conjugation".to_owned(),
        };
        let relinearisation = plan.relinearise && lacks(RELINEARISE);
        let relinearisation = relinearisation.then(|| "relinearisation".to_owned());
        let elements = plan.galois_elements(&self.params);
        relinearisation
            .into_iter()
            .chain(elements.into_iter().filter(|element| lacks(*element)).map(named))
            .map(|name| format!("{name} at level {level}"))
            .collect()
    }

    /// Adds the keys of another set of the same secret key and level.
    ///
    /// # Errors
    /// [`Error::Parameters`], [`Error::WrongKey`], or [`Error::Range`] for another level.
    pub fn merge(&mut self, other: &EvaluationKeys) -> Result<()> {
        let what = "a set of evaluation keys";
        self.params.check_same(what, &other.params)?;
        if self.key != other.key {
            return Err(Error::WrongKey { what, expected: self.key, actual: other.key });
        }
        if self.level != other.level {
            return Err(Error::Range {
                what: "the level of the keys to add",
                expected: self.level.to_string(),
                actual: other.level.to_string(),
            });
        }
        self.keys.extend(other.keys.iter().map(|(element, key)| (*element, key.clone())));
        Ok(())
    }

    /// The relinearisation key for a ciphertext at `level`.
    pub(in super::super) fn relinearisation(&self, level: usize) -> Result<&KeySwitchKey> {
        let make = "KeyPlan::relinearise";
        let key = self.keys.get(&RELINEARISE);
        self.at_level(key, level).map_err(|detail| missing("relinearisation", make, detail))
    }

    /// The conjugation key for a ciphertext at `level`.
    pub(in super::super) fn conjugation(&self, level: usize) -> Result<(u64, &KeySwitchKey)> {
        let element = conjugation_element(&self.params);
        let key = self.at_level(self.keys.get(&element), level);
        let key = key.map_err(|detail| missing("conjugation", "KeyPlan::conjugate", detail))?;
        Ok((element, key))
    }

    /// The key that rotates `slots` slots by `steps`, for a ciphertext at `level`. As fewer slots
    /// repeat, any key that rotates by the same number modulo their number will do.
    pub(in super::super) fn rotation(
        &self,
        steps: i64,
        slots: usize,
        level: usize,
    ) -> Result<(u64, &KeySwitchKey)> {
        let repeats = (self.params.max_slots() / slots) as i64;
        let alike = (0..repeats).map(|repeat| steps + repeat * slots as i64);
        let elements = alike.map(|steps| rotation_element(&self.params, steps));
        let found = elements.filter_map(|element| Some((element, self.keys.get(&element)?)));
        let mut detail = None;
        for (element, key) in found {
            match self.at_level(Some(key), level) {
                Ok(key) => return Ok((element, key)),
                Err(reason) => detail = reason,
            }
        }
        Err(missing(
            &format!("rotation by {steps}"),
            &format!("KeyPlan::rotations([{steps}])"),
            detail,
        ))
    }

    /// The key, if it reaches `level`; else why not.
    fn at_level<'a>(
        &self,
        key: Option<&'a Arc<KeySwitchKey>>,
        level: usize,
    ) -> core::result::Result<&'a KeySwitchKey, Option<String>> {
        let key = key.ok_or(None)?;
        if key.level() >= level {
            return Ok(key);
        }
        Err(Some(format!(" at level {level} (the one here reaches level {})", key.level())))
    }

    fn header(&self) -> Header {
        Header {
            scheme: Scheme::Ckks,
            kind: Kind::EvaluationKeys,
            params: self.params.param_id(),
            key: self.key,
        }
    }

    /// Serialises the keys; masks are written as their seeds.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(self.bytes());
        frame.resize(wire::HEADER_LEN, 0);
        self.begin(&mut frame);
        for (element, key) in &self.keys {
            self.append(*element, key, &mut frame);
        }
        self.header().seal(&mut frame);
        frame
    }

    /// The header of [`Self::to_bytes`].
    pub(in super::super) fn sealed_header(&self) -> Result<[u8; wire::HEADER_LEN]> {
        let length = self.bytes() - wire::HEADER_LEN;
        self.header().seal_pieces(length, |put| self.payload(put))
    }

    /// What follows that header, a key at a time.
    pub(in super::super) fn payload(&self, put: &mut Put<'_>) -> Result<()> {
        let mut piece = Vec::with_capacity(8 + KeySwitchKey::bytes_at(&self.params, self.level));
        self.begin(&mut piece);
        put(&piece)?;
        for (element, key) in &self.keys {
            piece.clear();
            self.append(*element, key, &mut piece);
            put(&piece)?;
        }
        Ok(())
    }

    fn begin(&self, out: &mut Vec<u8>) {
        out.extend((self.level as u32).to_le_bytes());
        out.extend((self.keys.len() as u32).to_le_bytes());
    }

    fn append(&self, element: u64, key: &KeySwitchKey, out: &mut Vec<u8>) {
        out.extend(element.to_le_bytes());
        key.append(&self.params, out);
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, other parameters, elements that are not of this ring or not in
    /// order.
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self> {
        let (header, mut reader) = open(params, Kind::EvaluationKeys, bytes)?;
        let keys = Self::read_payload(params, header.key, &mut reader)?;
        reader.finish()?;
        Ok(keys)
    }

    /// The same from a frame within another that comes piece by piece.
    pub(in super::super) fn read(params: &Arc<Params>, outer: &mut dyn Source) -> Result<Self> {
        let mut frame = InnerFrame::new(Kind::EvaluationKeys, outer)?;
        let header = *frame.header();
        check(params, &header)?;
        let keys = Self::read_payload(params, header.key, &mut frame)?;
        frame.finish()?;
        Ok(keys)
    }

    fn read_payload(params: &Arc<Params>, key: KeyId, source: &mut dyn Source) -> Result<Self> {
        let mut reader = source.piece(FIXED_BYTES)?;
        let (level, count) = (reader.u32()? as usize, reader.u32()? as usize);
        if level > params.max_level() {
            return Err(reader.error(format!("level {level} of {}", params.max_level())));
        }
        let entry = 8 + KeySwitchKey::bytes_at(params, level);
        let expected = count.checked_mul(entry).map(|bytes| bytes as u64);
        let left = source.left();
        if expected != Some(left) {
            let detail = format!("{count} keys of {entry} bytes expected in {left} bytes");
            return Err(Error::malformed(Kind::EvaluationKeys.as_str(), detail));
        }
        let order = params.ring().root_order(params.spec().log_degree);
        let mut keys = BTreeMap::new();
        for _ in 0..count {
            let mut reader = source.piece(entry)?;
            let element = reader.u64()?;
            if keys.last_key_value().is_some_and(|(last, _)| *last >= element) {
                return Err(reader.error("keys in the order of their Galois elements expected"));
            }
            let rotates = element % 4 == 1 && element > 1 && element < order;
            let conjugates = element == conjugation_element(params);
            if element != RELINEARISE && !rotates && !conjugates {
                return Err(reader.error(format!("{element} is no Galois element of this ring")));
            }
            keys.insert(element, Arc::new(KeySwitchKey::read(params, level, &mut reader)?));
        }
        Ok(EvaluationKeys { params: params.clone(), key, level, keys })
    }
}

fn missing(what: &str, make: &str, detail: Option<String>) -> Error {
    Error::MissingKey {
        key: format!("{what}{}", detail.unwrap_or_default()),
        make: format!("SecretKey::evaluation_keys and {make}"),
    }
}

impl core::fmt::Debug for EvaluationKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let elements = self.keys.keys().collect::<Vec<_>>();
        write!(f, "EvaluationKeys({}, level {}, elements {elements:?})", self.key, self.level)
    }
}
