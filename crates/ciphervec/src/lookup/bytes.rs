//! What travels between the halves of a lookup, and a client's key. Objects enter, framed bytes leave, and back. Both sides.
//!
//! - a description: `tables u32 | rows u32 | columns u32 | zero row u8 | pooling u8 | limit u32 | word bytes u8 | digest 16 |
//!   scale of counts f64 | scale of weights f64 | unit f64 | bound f64`;
//! - a query: `description's id 16 | nonce 16 | mask seed 32 | wants the hint u8 | documents u32 | words`;
//! - an answer: `description's id 16 | nonce 16 | has the hint u8 | documents u32 | hint, if any, u32 each | sums, as long as a
//!   word each`;
//! - a secret key: `32 bytes | description's frame`.

use super::histogram::Scales;
use super::spec::{MAX_LIMIT, Options, Pooling, Spec};
use super::table::{MAX_COLUMNS, MAX_TABLE_ROWS, MAX_TABLES};
use crate::error::{Error, Result};
use ciphervec_he::params::ParamId;
use ciphervec_he::sealed::SegmentId;
#[cfg(feature = "client")]
use ciphervec_he::sealed::counts::DEGREE;
use ciphervec_he::sealed::counts::{Counts, Hint};
use ciphervec_he::wire::{self, Header, KeyId, Kind, Reader, Scheme};

impl Spec {
    /// The description, framed. Public.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (tables, rows, columns) = self.shape;
        let mut payload = Vec::new();
        for number in [tables, rows, columns] {
            payload.extend_from_slice(&(number as u32).to_le_bytes());
        }
        payload.extend([u8::from(self.zero_row), self.options.pooling as u8]);
        payload.extend_from_slice(&(self.options.limit as u32).to_le_bytes());
        payload.push(self.options.word_bytes as u8);
        payload.extend_from_slice(&self.digest);
        for number in [self.scales.count, self.scales.weight, self.scales.unit, self.scales.bound] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        frame(Kind::Spec, self.params, KeyId::default(), &payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or malformed bytes, and sizes that no table has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Spec, bytes)?;
        let mut reader = Reader::new("the description of a lookup", payload);
        expect_scheme(&header, &reader)?;
        let mut number = |most: usize| {
            let number = reader.u32()? as usize;
            if (1..=most).contains(&number) {
                return Ok(number);
            }
            Err(reader.error(format!("a number from 1 to {most} expected, got {number}")))
        };
        let shape = (number(MAX_TABLES)?, number(MAX_TABLE_ROWS)?, number(MAX_COLUMNS)?);
        let zero_row = flag(&mut reader)?;
        let pooling = Pooling::from_byte(reader.u8()?)
            .ok_or_else(|| reader.error("pooling none, sum or mean expected"))?;
        let limit = reader.u32()? as usize;
        let word_bytes = usize::from(reader.u8()?);
        let digest = reader.array()?;
        let mut scale = || {
            let scale = reader.f64()?;
            if scale > 0.0 && scale.log2().abs() <= 256.0 {
                return Ok(scale);
            }
            Err(reader.error(format!("a positive scale expected, got {scale}")))
        };
        let scales = Scales { count: scale()?, weight: scale()?, unit: scale()?, bound: scale()? };
        let options = Options { pooling, limit, word_bytes };
        options.check()?;
        let scheme = Counts::new(word_bytes)?;
        let most = if pooling == Pooling::Mean { 1.0 } else { limit as f64 };
        if limit > MAX_LIMIT || zero_row && shape.1 < 2 || scales.count * most > scheme.capacity() {
            return Err(reader.error("sizes that fit each other expected").into());
        }
        let spec = Spec { shape, zero_row, digest, options, scales, params: scheme.param_id() };
        expect_params("the description of a lookup", &spec, &header)?;
        if header.key != KeyId::default() {
            return Err(reader.error("a description names no key").into());
        }
        reader.finish()?;
        Ok(spec)
    }
}

/// Encrypted documents as a server reads them.
pub(super) struct Query<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub mask_seed: [u8; 32],
    pub wants_hint: bool,
    pub documents: usize,
    pub words: &'a [u8],
}

impl<'a> Query<'a> {
    #[cfg(feature = "client")]
    pub fn to_bytes(&self, spec: &Spec) -> Vec<u8> {
        let mut out = Vec::with_capacity(wire::HEADER_LEN + 69 + self.words.len());
        out.resize(wire::HEADER_LEN, 0);
        out.extend_from_slice(&spec.id());
        out.extend_from_slice(&self.nonce.0);
        out.extend_from_slice(&self.mask_seed);
        out.push(u8::from(self.wants_hint));
        out.extend_from_slice(&(self.documents as u32).to_le_bytes());
        out.extend_from_slice(self.words);
        header(Kind::Query, spec.params, self.key).seal(&mut out);
        out
    }

    pub fn from_bytes(spec: &Spec, scheme: &Counts, bytes: &'a [u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Query, bytes)?;
        let mut reader = Reader::new("a query of a lookup", payload);
        expect_scheme(&header, &reader)?;
        expect_params("a query", spec, &header)?;
        expect_spec("query", spec, reader.array()?)?;
        let (nonce, mask_seed) = (SegmentId(reader.array()?), reader.array()?);
        let wants_hint = flag(&mut reader)?;
        let documents = reader.u32()? as usize;
        let length = documents.checked_mul(scheme.words_len(1, spec.dimension()));
        if documents == 0 || length != Some(reader.remaining()) {
            let left = reader.remaining();
            return Err(reader
                .error(format!("{documents} documents expected in {left} bytes"))
                .into());
        }
        let words = reader.take(reader.remaining())?;
        Ok(Query { key: header.key, nonce, mask_seed, wants_hint, documents, words })
    }
}

/// Encrypted sums as a client reads them.
pub(super) struct Answer {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub documents: usize,
    pub hint: Option<Hint>,
    pub sums: Vec<u64>,
}

impl Answer {
    pub fn to_bytes(&self, spec: &Spec, scheme: &Counts) -> Vec<u8> {
        let hint = self.hint.as_ref().map_or(&[][..], Hint::values);
        let word = scheme.word_bytes();
        let length = wire::HEADER_LEN + 37 + 4 * hint.len() + word * self.sums.len();
        let mut out = Vec::with_capacity(length);
        out.resize(wire::HEADER_LEN, 0);
        out.extend_from_slice(&spec.id());
        out.extend_from_slice(&self.nonce.0);
        out.push(u8::from(self.hint.is_some()));
        out.extend_from_slice(&(self.documents as u32).to_le_bytes());
        hint.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        self.sums.iter().for_each(|sum| out.extend_from_slice(&sum.to_le_bytes()[..word]));
        header(Kind::Response, spec.params, self.key).seal(&mut out);
        out
    }

    #[cfg(feature = "client")]
    pub fn from_bytes(spec: &Spec, scheme: &Counts, bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Response, bytes)?;
        let mut reader = Reader::new("an answer of a lookup", payload);
        expect_scheme(&header, &reader)?;
        expect_params("an answer", spec, &header)?;
        expect_spec("decode", spec, reader.array()?)?;
        let nonce = SegmentId(reader.array()?);
        let has_hint = flag(&mut reader)?;
        let documents = reader.u32()? as usize;
        let (outputs, word) = (spec.columns(), scheme.word_bytes());
        let hint_bytes = if has_hint { 4 * DEGREE * outputs } else { 0 };
        let sums = documents.checked_mul(outputs * word);
        let expected = sums.and_then(|sums| sums.checked_add(hint_bytes));
        if documents == 0 || expected != Some(reader.remaining()) {
            let left = reader.remaining();
            let detail =
                format!("{documents} documents of {outputs} numbers expected in {left} bytes");
            return Err(reader.error(detail).into());
        }
        let values = reader.take(hint_bytes)?.as_chunks::<4>().0;
        let values = values.iter().map(|value| u32::from_le_bytes(*value)).collect();
        let hint = if has_hint { Hint::from_values(values, outputs) } else { None };
        let sums = reader.take(reader.remaining())?.chunks_exact(word).map(|bytes| {
            let mut wide = [0; 8];
            wide[..word].copy_from_slice(bytes);
            u64::from_le_bytes(wide)
        });
        Ok(Answer { key: header.key, nonce, documents, hint, sums: sums.collect() })
    }
}

#[cfg(feature = "client")]
impl super::Client {
    /// The client, not encrypted, for a key file.
    pub fn to_secret_bytes(&self) -> zeroize::Zeroizing<Vec<u8>> {
        let spec = self.spec().to_bytes();
        // Room for all of it from the start: growing would leave a copy of the secret behind.
        let mut payload = zeroize::Zeroizing::new(Vec::with_capacity(32 + spec.len()));
        payload.extend_from_slice(self.master().expose());
        payload.extend_from_slice(&spec);
        let key = self.master().key_id();
        zeroize::Zeroizing::new(frame(Kind::SecretKey, self.spec().params, key, &payload))
    }

    /// Reads what [`Self::to_secret_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged bytes, and the secret key of another scheme.
    pub fn from_secret_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::SecretKey, bytes)?;
        let mut reader = Reader::new("the key of a lookup", payload);
        expect_scheme(&header, &reader)?;
        let secret = zeroize::Zeroizing::new(reader.array()?);
        let spec = Spec::from_bytes(reader.take(reader.remaining())?)?;
        expect_params("the key of a lookup", &spec, &header)?;
        let master = ciphervec_he::keys::MasterKey::from_bytes(*secret);
        if master.key_id() != header.key {
            let (expected, actual) = (header.key, master.key_id());
            return Err(ciphervec_he::Error::WrongKey {
                what: "the key of a lookup",
                expected,
                actual,
            }
            .into());
        }
        Self::new(spec, master)
    }
}

fn header(kind: Kind, params: ParamId, key: KeyId) -> Header {
    Header { scheme: Scheme::Counts, kind, params, key }
}

fn frame(kind: Kind, params: ParamId, key: KeyId, payload: &[u8]) -> Vec<u8> {
    header(kind, params, key).frame(payload)
}

fn flag(reader: &mut Reader<'_>) -> Result<bool> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.error(format!("a flag of 0 or 1 expected, got {other}")).into()),
    }
}

fn expect_scheme(header: &Header, reader: &Reader<'_>) -> Result<()> {
    if header.scheme == Scheme::Counts {
        return Ok(());
    }
    let detail = format!("this is one of the scheme {}, not of a lookup", header.scheme.as_str());
    Err(reader.error(detail).into())
}

fn expect_params(what: &'static str, spec: &Spec, header: &Header) -> Result<()> {
    if header.params == spec.params {
        return Ok(());
    }
    let (expected, actual) = (spec.params.to_string(), header.params.to_string());
    Err(ciphervec_he::Error::Parameters { what, expected, actual }.into())
}

/// Refuses what was made for another table.
fn expect_spec(operation: &'static str, spec: &Spec, found: [u8; 16]) -> Result<()> {
    if found == spec.id() {
        return Ok(());
    }
    let detail = "made for another table, or for other settings of this one; take the description that the server has now".into();
    Err(Error::Lookup { operation, detail })
}
