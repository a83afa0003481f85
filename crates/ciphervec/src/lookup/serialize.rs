//! The description of a lookup as a frame, and what frames of lookup have in common.
//!
//! `strategy u8 | tables u32 | rows u32 | columns u32 | zero row u8 | pooling u8 | limit u32 | bytes
//! of a word or bits of precision u8 | levels u8 | digest 16 | scale of counts f64 | scale of weights
//! f64 | unit f64 | bound f64`; the scales and the unit are 1 where a strategy has none. In versions 2
//! and 3 `transport u8` follows, which is 0, standard, in version 1, and in version 3 `rounding f64`.
//! Strategy `histogram` has version 1, all others version 3, and versions 1 and 2 where an earlier
//! release wrote them.
//!
//! Strategies are 0 one-hot, 1 one-hot by digits, 2 indicator, 3 ive, 4 ive by digits, 5 histogram; pooling is 0 none, 1 sum, 2
//! mean; transport is 0 standard, 1 compact. `rounding` is what rounding takes from a number of an answer at the most. Frames
//! have scheme 8, whatever the strategy encrypts with, and the parameter id of its parameters. Tables of a server are a frame of
//! kind 2 with the description's frame, its length u32 before it, and the numbers f64; a client's secret key one of kind 7 with
//! 32 bytes and the description's frame. Other evaluation keys than those of compact transport are those of CKKS.

use super::histogram::scales::HistogramScales;
use super::options::{Options, Pooling};
use super::spec::{Instance, Spec};
use super::strategy::Strategy;
use super::table::{MAX_COLUMNS, MAX_TABLE_ROWS, MAX_TABLES};
use super::transport::Transport;
use crate::error::{Error, Result};
use ciphervec_he::params::ParamId;
use ciphervec_he::wire::{self, Header, KeyId, Kind, Reader, Scheme};

/// Largest absolute value of log2 of a scale or a bound that is read.
const MAX_LOG_SCALE: f64 = 1024.0;
/// The version of a description that names a transport, and of messages in it.
pub const TRANSPORT_VERSION: u16 = 2;
/// The version of a description that says how far answers are rounded.
const ROUNDED_VERSION: u16 = 3;

impl Spec {
    /// The description, framed. Public.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Options { strategy, pooling, limit, word_bytes, precision_bits, levels, transport } =
            self.options;
        let (tables, rows, columns) = self.shape;
        let mut payload = vec![strategy as u8];
        for number in [tables, rows, columns] {
            payload.extend_from_slice(&(number as u32).to_le_bytes());
        }
        payload.extend([u8::from(self.zero_row), pooling as u8]);
        payload.extend_from_slice(&(limit as u32).to_le_bytes());
        let detail = self.scales.map_or(precision_bits as u8, |_| word_bytes as u8);
        payload.extend([detail, levels as u8]);
        payload.extend_from_slice(&self.digest);
        let scales = self.scales.map_or([1.0; 3], |one| [one.count, one.weight, one.unit]);
        for number in scales.into_iter().chain([self.bound]) {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        let mut version = wire::VERSION;
        if transport != Transport::Standard || self.rounding.is_some() {
            payload.push(transport as u8);
            version = TRANSPORT_VERSION;
        }
        if let Some(rounding) = self.rounding {
            payload.extend_from_slice(&rounding.to_le_bytes());
            version = ROUNDED_VERSION;
        }
        let mut frame = vec![0; wire::HEADER_LEN];
        frame.extend_from_slice(&payload);
        header(Kind::Spec, self.params, KeyId::default()).seal_version(version, &mut frame);
        frame
    }

    /// The name of everything in this description: queries and answers carry it.
    pub fn id(&self) -> [u8; 16] {
        let digest = blake3::derive_key("ciphervec v1 lookup spec", &self.to_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        id
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or malformed bytes, sizes that no table has, and options that do not go together.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (version, header, payload) = wire::open_version(Kind::Spec, ROUNDED_VERSION, bytes)?;
        let mut reader = Reader::new("the description of a lookup", payload);
        expect_scheme(&header, &reader)?;
        let strategy =
            Strategy::from_byte(reader.u8()?).ok_or_else(|| reader.error("a strategy expected"))?;
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
        let (detail, levels) = (reader.u8()?, usize::from(reader.u8()?));
        let digest = reader.array()?;
        let scale = |reader: &mut Reader<'_>| -> Result<f64> {
            let scale = reader.f64()?;
            if scale > 0.0 && scale.log2().abs() <= MAX_LOG_SCALE {
                return Ok(scale);
            }
            Err(reader.error(format!("a positive scale expected, got {scale}")).into())
        };
        let mut next = || scale(&mut reader);
        let [count, weight, unit, bound] = [next()?, next()?, next()?, next()?];
        let transport = match version {
            TRANSPORT_VERSION | ROUNDED_VERSION => Transport::from_byte(reader.u8()?)
                .filter(|one| *one != Transport::Standard || version == ROUNDED_VERSION)
                .ok_or_else(|| reader.error("a transport other than standard expected"))?,
            _ => Transport::Standard,
        };
        let rounding = (version == ROUNDED_VERSION).then(|| scale(&mut reader)).transpose()?;
        if header.key != KeyId::default() {
            return Err(reader.error("a description names no key").into());
        }
        let mut options =
            Options { strategy, pooling, limit, levels, transport, ..Options::default() };
        let histogram = strategy == Strategy::Histogram;
        match histogram {
            true => options.word_bytes = usize::from(detail),
            false => options.precision_bits = u32::from(detail),
        }
        let instance = Instance::new(&options, shape)?;
        let most = if pooling == Pooling::Mean { 1.0 } else { limit as f64 };
        let fits = match &instance {
            Instance::Histogram(scheme) => count * most <= scheme.capacity() && rounding.is_none(),
            Instance::Tokens(_) => {
                [count, weight, unit] == [1.0; 3] && rounding.is_none_or(|most| most <= bound)
            }
        };
        if !fits || zero_row && shape.1 < 2 {
            return Err(reader.error("sizes that fit each other expected").into());
        }
        reader.finish()?;
        let scales = histogram.then_some(HistogramScales { count, weight, unit, bound });
        let params = instance.param_id();
        let spec = Spec { shape, zero_row, digest, options, scales, bound, rounding, params };
        expect_params("the description of a lookup", &spec, &header)?;
        Ok(spec)
    }
}

pub fn header(kind: Kind, params: ParamId, key: KeyId) -> Header {
    Header { scheme: Scheme::Lookup, kind, params, key }
}

pub fn frame(kind: Kind, params: ParamId, key: KeyId, payload: &[u8]) -> Vec<u8> {
    header(kind, params, key).frame(payload)
}

pub(super) fn flag(reader: &mut Reader<'_>) -> Result<bool> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.error(format!("a flag of 0 or 1 expected, got {other}")).into()),
    }
}

pub fn expect_scheme(header: &Header, reader: &Reader<'_>) -> Result<()> {
    if header.scheme == Scheme::Lookup {
        return Ok(());
    }
    let detail = format!("this is one of the scheme {}, not of a lookup", header.scheme.as_str());
    Err(reader.error(detail).into())
}

pub fn expect_params(what: &'static str, spec: &Spec, header: &Header) -> Result<()> {
    if header.params == spec.params {
        return Ok(());
    }
    let (expected, actual) = (spec.params.to_string(), header.params.to_string());
    Err(ciphervec_he::Error::Parameters { what, expected, actual }.into())
}

/// Refuses what was made for another table.
pub(super) fn expect_spec(operation: &'static str, spec: &Spec, found: [u8; 16]) -> Result<()> {
    if found == spec.id() {
        return Ok(());
    }
    let detail = "made for another table, or for other settings of this one; take the \
        description that the server has now"
        .into();
    Err(Error::Lookup { operation, detail })
}
