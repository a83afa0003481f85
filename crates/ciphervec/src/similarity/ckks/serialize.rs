//! Frames of encrypted arrays and of what a server receives.
//!
//! - an array: `layout u8 | spread u8 | flags u8 | rows u32 | dimension u32 | stride u32`, then
//!   each ciphertext, length u32 and frame; flags: 1 vectors of length 1, 2 a root is to be taken,
//!   4 a left side, 8 a right side, 16 a batch, 32 scores, 64 conditions. These follow at the end:
//!   their number u32, and for each the interval, f64 twice, and an array of one number a row as
//!   above: layout to stride, then its ciphertexts;
//! - a server: `parameters, length u32 and frame | request | keys for products, keys for rotations,
//!   each length u32 and frame`.
//!
//! How many ciphertexts an array has follows from its shape and the parameters.
//!
//! Layouts are 0 slots, 1 coefficients, 2 single; spreads 0 pairs, 1 gallery, 2 scores; ciphertexts of the left side come first.
//! An owner's secret key, kind 7, is `parameters, length u32 and frame | request | list of keys | secret key, length u32 and
//! frame`; in a file it is the secret of a key file, without evaluation keys. A request is `operation u8 (0 dot, 1 cosine, 2
//! squared distance, 3 distance; 255, and nothing else, for none) | layout u8 | precision in bits u8 | one operand plain u8 |
//! dimension u32 | magnitude f64 | security u8 (0 classical, 1 quantum)`, a list of keys `level of the relinearisation key u8,
//! 255 for none | level of the rotation keys u8 | their number u32 | each rotation i64`. Python's `PublicContext.to_bytes` writes
//! `CVCK | version u32 | length u32 and frame of the server | the frame of the public key, if there is one`.

use super::array::{EncryptedArray, PostProcessing};
use super::layout::{ArrayLayout, ArrayPacking, Spread};
use super::origin::{Condition, MAX_CONDITIONS, Origin};
use super::plan::{Operation, PlanRequest};
use super::server::{Server, expect_key};
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Ciphertext, EvaluationKeys, Params};
use ciphervec_he::params::{ParamId, Security};
use ciphervec_he::wire::{self, Header, KeyId, Kind, Reader, Scheme};
use std::sync::Arc;

const UNIT: u8 = 1;
const ROOT: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;
const BATCH: u8 = 16;
const SCORES: u8 = 32;
const CONDITIONS: u8 = 64;

impl EncryptedArray {
    /// The array, framed. Shape, layout and noise estimates are in clear.
    pub fn to_bytes(&self) -> Vec<u8> {
        let conditions = &self.origin.conditions;
        let flags = flag(self.unit, UNIT)
            | flag(self.post_processing == PostProcessing::Root, ROOT)
            | flag(!self.left.is_empty(), LEFT)
            | flag(!self.right.is_empty(), RIGHT)
            | flag(!conditions.is_empty(), CONDITIONS);
        let mut payload = Vec::new();
        put_packing(&self.packing, flags, &mut payload);
        for (index, cipher) in self.all().enumerate() {
            let seeded = self.seeds.get(index).and_then(|seed| cipher.seeded(seed));
            put(&mut payload, &seeded.map_or_else(|| cipher.to_bytes(), |one| one.to_bytes()));
        }
        if !conditions.is_empty() {
            payload.extend_from_slice(&(conditions.len() as u32).to_le_bytes());
        }
        for condition in conditions {
            for end in [condition.low, condition.high] {
                payload.extend_from_slice(&end.to_le_bytes());
            }
            put_packing(&condition.packing, LEFT, &mut payload);
            condition.ciphertexts.iter().for_each(|one| put(&mut payload, &one.to_bytes()));
        }
        let params = self.params().map_or(ParamId([0; 8]), |params| params.param_id());
        frame(Kind::EncryptedVectors, params, self.key_id(), &payload)
    }

    /// Reads what [`Self::to_bytes`] wrote, for `server`.
    ///
    /// # Errors
    /// Damaged, malformed or foreign bytes.
    pub fn from_bytes(server: &Server, bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::EncryptedVectors, bytes)?;
        expect_key(server.key_id(), header.key)?;
        let params = server.params();
        let what = "an encrypted array";
        let mut reader = Reader::new(what, payload);
        if header.scheme != Scheme::Ckks || header.params != params.param_id() {
            return Err(ciphervec_he::Error::Parameters {
                what,
                expected: params.param_id().to_string(),
                actual: header.params.to_string(),
            }
            .into());
        }
        let (flags, packing) = read_packing(params, &mut reader)?;
        let coefficients = packing.layout == ArrayLayout::Coefficients;
        if flags >= 128 || flags & (LEFT | RIGHT) == 0 || (!coefficients && flags & RIGHT != 0) {
            return Err(reader.error(format!("flags {flags} do not exist in this layout")).into());
        }
        let mut side = |side| match flags & side {
            0 => Ok(Vec::new()),
            _ => read_ciphertexts(params, header.key, &packing, &mut reader),
        };
        let (left, right) = (side(LEFT)?, side(RIGHT)?);
        let conditions = match flags & CONDITIONS {
            0 => Vec::new(),
            _ => read_conditions(params, header.key, &mut reader)?,
        };
        reader.finish()?;
        let post_processing =
            PostProcessing::from_byte(u8::from(flags & ROOT != 0)).unwrap_or_default();
        let array = EncryptedArray::new(packing, left, right, &[]);
        let origin = Origin { claimed: true, conditions };
        Ok(EncryptedArray { post_processing, origin, ..array.of_unit_length(flags & UNIT != 0) })
    }
}

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// A packing, with `flags` of what lies so.
fn put_packing(packing: &ArrayPacking, flags: u8, out: &mut Vec<u8>) {
    let form = flag(packing.batch, BATCH) | flag(packing.scores, SCORES);
    out.extend([packing.layout as u8, packing.spread as u8, flags | form]);
    for number in [packing.rows, packing.dimension, packing.stride] {
        out.extend_from_slice(&(number as u32).to_le_bytes());
    }
}

fn read_packing(params: &Params, reader: &mut Reader<'_>) -> Result<(u8, ArrayPacking)> {
    let (layout, spread) = (ArrayLayout::from_byte(reader.u8()?), Spread::from_byte(reader.u8()?));
    let (Some(layout), Some(spread)) = (layout, spread) else {
        return Err(reader.error("a layout and a spread expected").into());
    };
    let flags = reader.u8()?;
    let mut number = || reader.u32().map(|number| number as usize);
    let (rows, dimension, stride) = (number()?, number()?, number()?);
    let form = (flags & BATCH != 0, flags & SCORES != 0);
    let ring = (params.degree(), params.max_slots());
    let packing = ArrayPacking::read((layout, spread), (rows, dimension, stride), form, ring)?;
    Ok((flags, packing))
}

/// The ciphertexts of one side.
fn read_ciphertexts(
    params: &Arc<Params>,
    key: KeyId,
    packing: &ArrayPacking,
    reader: &mut Reader<'_>,
) -> Result<Vec<Ciphertext>> {
    // Each takes more than its length: a count that the bytes do not cover is refused before it
    // allocates.
    let count = packing.ciphertexts();
    if count > reader.remaining() / 4 {
        return Err(reader.error(format!("{count} ciphertexts expected")).into());
    }
    let one = |_| {
        let cipher = Ciphertext::from_bytes(params, take(reader)?)?;
        expect_key(key, cipher.key_id())?;
        Ok(cipher)
    };
    (0..count).map(one).collect()
}

fn read_conditions(
    params: &Arc<Params>,
    key: KeyId,
    reader: &mut Reader<'_>,
) -> Result<Vec<Arc<Condition>>> {
    let count = reader.u32()? as usize;
    if count == 0 || count > MAX_CONDITIONS {
        return Err(reader.error(format!("{count} conditions found")).into());
    }
    let one = |_| {
        let (low, high) = (reader.f64()?, reader.f64()?);
        let (flags, packing) = read_packing(params, reader)?;
        let scores = packing.layout != ArrayLayout::Coefficients && packing.scores;
        if !(scores && flags & !(BATCH | SCORES) == LEFT && low < high && high.is_finite()) {
            let detail = format!("one number a row within [{low}, {high}] expected");
            return Err(reader.error(detail).into());
        }
        let ciphertexts = read_ciphertexts(params, key, &packing, reader)?;
        Ok(Arc::new(Condition { packing, ciphertexts, low, high }))
    };
    (0..count).map(one).collect()
}

impl Server {
    /// What the key owner sends a server, framed: nothing in it is secret.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        put(&mut payload, &self.params.to_bytes());
        write_request(self.request.as_ref(), &mut payload);
        self.keys.iter().for_each(|keys| put(&mut payload, &keys.to_bytes()));
        frame(Kind::EvaluationKeys, self.params.param_id(), self.key, &payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or malformed bytes, and parameters over the limit of the security table.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::EvaluationKeys, bytes)?;
        let mut reader = Reader::new("a server's context", payload);
        let params = read_params(&header, &mut reader)?;
        let request = read_request(&mut reader)?;
        let mut set = || Ok::<_, Error>(EvaluationKeys::from_bytes(&params, take(&mut reader)?)?);
        let (products, rotations) = (set()?, set()?);
        reader.finish()?;
        expect_key(header.key, products.key_id())?;
        Ok(Server::new(Arc::new(products), Arc::new(rotations))?.described(request))
    }
}

/// The parameters that a frame starts with, which must be those that its header names.
pub fn read_params(header: &Header, reader: &mut Reader<'_>) -> Result<Arc<Params>> {
    let part = take(reader)?;
    // Before anything is computed from them: that takes long for large ones.
    let (inner, _) = wire::open(Kind::Parameters, part)?;
    if header.scheme != Scheme::Ckks || header.params != inner.params {
        return Err(reader.error("the parameters are not those that the header names").into());
    }
    Ok(Params::from_bytes(part)?)
}

/// `operation u8, 255 for none | layout u8 | precision u8 | plain u8 | dimension u32 | magnitude
/// f64 | security u8`.
pub fn write_request(request: Option<&PlanRequest>, out: &mut Vec<u8>) {
    let Some(request) = request else {
        out.push(u8::MAX);
        return;
    };
    out.extend([
        request.operation as u8,
        request.layout as u8,
        request.precision_bits as u8,
        u8::from(request.plain),
    ]);
    out.extend_from_slice(&(request.dimension as u32).to_le_bytes());
    out.extend_from_slice(&request.magnitude.to_le_bytes());
    out.push(u8::from(request.security == Security::Quantum128));
}

pub fn read_request(reader: &mut Reader<'_>) -> Result<Option<PlanRequest>> {
    let operation = reader.u8()?;
    if operation == u8::MAX {
        return Ok(None);
    }
    let (layout, precision, plain) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let dimension = reader.u32()? as usize;
    let magnitude = reader.f64()?;
    let security = match reader.u8()? {
        0 => Some(Security::Classical128),
        1 => Some(Security::Quantum128),
        _ => None,
    };
    let known = (Operation::from_byte(operation), ArrayLayout::from_byte(layout), security);
    let (Some(operation), Some(layout), Some(security), 0..=1) = (known.0, known.1, known.2, plain)
    else {
        return Err(reader.error("an operation, a layout and a security level expected").into());
    };
    let request = PlanRequest {
        operation,
        layout,
        dimension,
        magnitude,
        precision_bits: u32::from(precision),
        plain: plain == 1,
        security,
    };
    request.check()?;
    Ok(Some(request))
}

fn frame(kind: Kind, params: ParamId, key: KeyId, payload: &[u8]) -> Vec<u8> {
    Header { scheme: Scheme::Ckks, kind, params, key }.frame(payload)
}

/// A part with its length before it.
pub fn put(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u32).to_le_bytes());
    out.extend_from_slice(part);
}

/// A part that [`put`] wrote.
pub fn take<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let length = reader.u32()? as usize;
    Ok(reader.take(length)?)
}
