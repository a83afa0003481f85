//! The description of a lookup and a client's key. Objects enter, framed bytes leave, and back. Both sides.
//!
//! - a description: `strategy u8 | tables u32 | rows u32 | columns u32 | zero row u8 | pooling u8 | limit u32 | bytes of a word or
//!   bits of precision u8 | levels u8 | digest 16 | scale of counts f64 | scale of weights f64 | unit f64 | bound f64`; the scales
//!   and the unit are 1 where a strategy has none;
//! - tables, for whoever keeps them: `description's frame, its length before it as u32 | numbers f64 each`;
//! - a secret key: `32 bytes | description's frame`.

use super::histogram::Scales;
use super::server::Server;
use super::spec::{Method, Options, Pooling, Spec};
use super::strategy::Strategy;
use super::table::{MAX_COLUMNS, MAX_TABLE_ROWS, MAX_TABLES, Table};
use crate::error::{Error, Result};
use ciphervec_he::params::ParamId;
use ciphervec_he::wire::{self, Header, KeyId, Kind, Reader, Scheme};

/// Largest absolute value of log2 of a scale or a bound that is read.
const MAX_LOG_SCALE: f64 = 1024.0;

impl Spec {
    /// The description, framed. Public.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Options { strategy, pooling, limit, word_bytes, precision_bits, levels } = self.options;
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
        frame(Kind::Spec, self.params, KeyId::default(), &payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or malformed bytes, sizes that no table has, and options that do not go together.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Spec, bytes)?;
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
        let mut scale = || {
            let scale = reader.f64()?;
            if scale > 0.0 && scale.log2().abs() <= MAX_LOG_SCALE {
                return Ok(scale);
            }
            Err(reader.error(format!("a positive scale expected, got {scale}")))
        };
        let [count, weight, unit, bound] = [scale()?, scale()?, scale()?, scale()?];
        if header.key != KeyId::default() {
            return Err(reader.error("a description names no key").into());
        }
        let mut options = Options { strategy, pooling, limit, levels, ..Options::default() };
        let histogram = strategy == Strategy::Histogram;
        match histogram {
            true => options.word_bytes = usize::from(detail),
            false => options.precision_bits = u32::from(detail),
        }
        let method = Method::new(&options, shape)?;
        let most = if pooling == Pooling::Mean { 1.0 } else { limit as f64 };
        let fits = match &method {
            Method::Histogram(scheme) => count * most <= scheme.capacity(),
            Method::Tokens(_) => [count, weight, unit] == [1.0; 3],
        };
        if !fits || zero_row && shape.1 < 2 {
            return Err(reader.error("sizes that fit each other expected").into());
        }
        reader.finish()?;
        let scales = histogram.then_some(Scales { count, weight, unit, bound });
        let params = method.param_id();
        let spec = Spec { shape, zero_row, digest, options, scales, bound, params };
        expect_params("the description of a lookup", &spec, &header)?;
        Ok(spec)
    }
}

impl Server {
    /// The tables with their description, framed: not for clients.
    pub fn to_bytes(&self) -> Vec<u8> {
        let spec = self.spec().to_bytes();
        let values = self.table().values();
        let mut payload = Vec::with_capacity(4 + spec.len() + 8 * values.len());
        payload.extend_from_slice(&(spec.len() as u32).to_le_bytes());
        payload.extend_from_slice(&spec);
        values.iter().for_each(|value| payload.extend_from_slice(&value.to_le_bytes()));
        frame(Kind::Segment, self.spec().params, KeyId::default(), &payload)
    }

    /// Reads what [`Self::to_bytes`] wrote. Evaluation keys have to be registered again.
    ///
    /// # Errors
    /// Damaged or malformed bytes, and tables that are not those of the description.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Segment, bytes)?;
        let mut reader = Reader::new("the tables of a lookup", payload);
        expect_scheme(&header, &reader)?;
        let length = reader.u32()? as usize;
        let spec = Spec::from_bytes(reader.take(length)?)?;
        expect_params("the tables of a lookup", &spec, &header)?;
        let (tables, rows, columns) = spec.shape;
        if header.key != KeyId::default() || reader.remaining() != 8 * tables * rows * columns {
            let left = reader.remaining();
            let detail = format!("{tables} × {rows} × {columns} numbers expected in {left} bytes");
            return Err(reader.error(detail).into());
        }
        let values = reader.take(reader.remaining())?.as_chunks::<8>().0;
        let values: Vec<f64> = values.iter().map(|value| f64::from_le_bytes(*value)).collect();
        let table = Table::from_parts(values, spec.shape, spec.zero_row)?;
        if table.digest() != spec.digest {
            return Err(reader.error("these are not the tables of the description").into());
        }
        let server = Server::new(table, spec.options)?;
        if *server.spec() != spec {
            return Err(reader.error("these tables have another description").into());
        }
        Ok(server)
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

pub(super) fn header(kind: Kind, params: ParamId, key: KeyId) -> Header {
    Header { scheme: Scheme::Lookup, kind, params, key }
}

fn frame(kind: Kind, params: ParamId, key: KeyId, payload: &[u8]) -> Vec<u8> {
    header(kind, params, key).frame(payload)
}

pub(super) fn flag(reader: &mut Reader<'_>) -> Result<bool> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.error(format!("a flag of 0 or 1 expected, got {other}")).into()),
    }
}

pub(super) fn expect_scheme(header: &Header, reader: &Reader<'_>) -> Result<()> {
    if header.scheme == Scheme::Lookup {
        return Ok(());
    }
    let detail = format!("this is one of the scheme {}, not of a lookup", header.scheme.as_str());
    Err(reader.error(detail).into())
}

pub(super) fn expect_params(what: &'static str, spec: &Spec, header: &Header) -> Result<()> {
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
    let detail = "made for another table, or for other settings of this one; take the description that the server has now".into();
    Err(Error::Lookup { operation, detail })
}
