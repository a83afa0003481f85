//! Frames of encrypted vectors, encrypted scores and probes.
//!
//! Each starts with its description: `dimension u32 | metric u8 | precision u8 | layout u8`. Then
//!
//! - encrypted vectors: `blocks u32 | in layout lanes, vectors u16 a block | the table's own
//!   frame`,
//! - encrypted scores: `probes u32 | blocks u32 | vectors as above | scale u64 a probe | the
//!   table's own frame`,
//! - probes: `probes u32 | scale u64 a probe | weights, i16, i64 at precision high`.
//!
//! A frame around a table repeats its scheme, parameters and key. How many ciphertexts a table has
//! follows from the description and the key, and a table of another shape is refused.
//!
//! Precision is 0 standard, 1 small, 2 high; layout 0 elements, 1 lanes, 2 horizontal. The layout of probes is 0, their scheme 0,
//! and they have no key.

use super::layout::{Layout, Packing};
use super::precision::GridPrecision;
use super::quantize::Probes;
use super::scores::EncryptedScores;
use super::spec::VectorSpec;
use super::vectors::{EncryptedVectors, expect_key};
use crate::error::Result;
use crate::index::spec::MAX_QUERIES;
use ciphervec_he::additive::{Evaluate, Table};
use ciphervec_he::params::ParamId;
use ciphervec_he::wire::{self, Header, KeyId, Kind, Reader, Scheme};

/// Bytes that every ciphertext takes at least.
const SHORTEST_CIPHERTEXT: usize = 16;

impl<T: Table> EncryptedVectors<T> {
    /// The vectors, framed.
    ///
    /// # Errors
    /// [`ciphervec_he::Error::WrongKey`] unless `public` is the key they are encrypted under.
    pub fn to_bytes<P: Evaluate<Table = T>>(&self, public: &P) -> Result<Vec<u8>> {
        self.expect_key(public)?;
        let mut payload = Vec::new();
        self.spec.write(&mut payload);
        write_blocks(&self.packing, &self.fill, &mut payload);
        frame(Kind::EncryptedVectors, payload, &public.table_to_bytes(&self.table))
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged, malformed or foreign bytes.
    pub fn from_bytes<P: Evaluate<Table = T>>(public: &P, bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::EncryptedVectors, bytes)?;
        let what = Kind::EncryptedVectors.as_str();
        expect_key(what, public.key_id(), header.key)?;
        let mut reader = Reader::new(what, payload);
        let spec = VectorSpec::read(&mut reader)?;
        let packing = spec.packing(public.message_bits())?;
        let fill = read_blocks(&packing, &mut reader)?;
        let shape = match fill.len() {
            1 => (1, packing.rows()),
            blocks => (packing.rows(), blocks),
        };
        let table = read_table(public, &header, reader, shape)?;
        Ok(EncryptedVectors { spec, packing, key: header.key, fill, table })
    }
}

impl<T: Table> EncryptedScores<T> {
    /// The scores, framed.
    ///
    /// # Errors
    /// [`ciphervec_he::Error::WrongKey`] unless `public` is the key they are encrypted under.
    pub fn to_bytes<P: Evaluate<Table = T>>(&self, public: &P) -> Result<Vec<u8>> {
        expect_key("encrypted scores", public.key_id(), self.key)?;
        let mut payload = Vec::new();
        self.spec.write(&mut payload);
        payload.extend_from_slice(&(self.scales.len() as u32).to_le_bytes());
        write_blocks(&self.packing, &self.fill, &mut payload);
        self.scales.iter().for_each(|scale| payload.extend_from_slice(&scale.to_le_bytes()));
        frame(Kind::Response, payload, &public.table_to_bytes(&self.table))
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged, malformed or foreign bytes.
    pub fn from_bytes<P: Evaluate<Table = T>>(public: &P, bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Response, bytes)?;
        let what = Kind::Response.as_str();
        expect_key(what, public.key_id(), header.key)?;
        let mut reader = Reader::new(what, payload);
        let spec = VectorSpec::read(&mut reader)?;
        let packing = spec.packing(public.message_bits())?;
        let probes = read_probes(&mut reader)?;
        let fill = read_blocks(&packing, &mut reader)?;
        let scales = read_scales(&mut reader, probes)?;
        let allowed = spec.grid().probe_scales();
        if let Some(scale) = scales.iter().find(|scale| !allowed.contains(scale)) {
            return Err(reader.error(format!("no probe has the scale {scale}")).into());
        }
        let table = read_table(public, &header, reader, (1, probes * fill.len()))?;
        Ok(EncryptedScores { spec, packing, key: header.key, fill, scales, table })
    }
}

impl Probes {
    /// The probes, framed. They are not encrypted, and say nothing of their norms.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        self.spec().write(&mut payload);
        payload.extend_from_slice(&(self.len() as u32).to_le_bytes());
        self.scales().iter().for_each(|scale| payload.extend_from_slice(&scale.to_le_bytes()));
        for probe in 0..self.len() {
            for &weight in self.weights(probe) {
                match self.spec().precision() {
                    GridPrecision::High => payload.extend_from_slice(&weight.to_le_bytes()),
                    // No weight of the other precisions exceeds 2^14.
                    _ => payload.extend_from_slice(&(weight as i16).to_le_bytes()),
                }
            }
        }
        let header = Header {
            scheme: Scheme::Plain,
            kind: Kind::Query,
            params: probe_params(),
            key: KeyId::default(),
        };
        header.frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote and checks it as [`Probes::from_weights`] does. The
    /// layout named is `elements`: probes fit every one.
    ///
    /// # Errors
    /// Damaged or malformed bytes; weights that no unit vector has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Query, bytes)?;
        let mut reader = Reader::new(Kind::Query.as_str(), payload);
        if header.scheme != Scheme::Plain
            || header.params != probe_params()
            || header.key != KeyId::default()
        {
            return Err(reader.error("the header is not that of plain probes").into());
        }
        let spec = VectorSpec::read(&mut reader)?;
        if spec.layout() != Layout::Elements {
            return Err(reader.error("probes have no layout").into());
        }
        let probes = read_probes(&mut reader)?;
        let scales = read_scales(&mut reader, probes)?;
        let count = probes * spec.dimension();
        let weights: Vec<i64> = match spec.precision() {
            GridPrecision::High => {
                let words = reader.take(8 * count)?.as_chunks::<8>().0;
                words.iter().map(|&word| i64::from_le_bytes(word)).collect()
            }
            _ => {
                let words = reader.take(2 * count)?.as_chunks::<2>().0;
                words.iter().map(|&word| i64::from(i16::from_le_bytes(word))).collect()
            }
        };
        reader.finish()?;
        Probes::from_weights(&spec, &weights, &scales)
    }
}

fn probe_params() -> ParamId {
    ParamId::of("additive: plain probes")
}

/// The payload and the table's frame under a header like the table's.
fn frame(kind: Kind, mut payload: Vec<u8>, table: &[u8]) -> Result<Vec<u8>> {
    let (header, _) = wire::open(Kind::Ciphertexts, table)?;
    payload.extend_from_slice(table);
    Ok(Header { kind, ..header }.frame(&payload))
}

/// The table that is the rest of the bytes.
fn read_table<P: Evaluate>(
    public: &P,
    header: &Header,
    mut reader: Reader<'_>,
    shape: (usize, usize),
) -> Result<P::Table> {
    let bytes = reader.take(reader.remaining())?;
    let (inner, _) = wire::open(Kind::Ciphertexts, bytes)?;
    if (inner.scheme, inner.params, inner.key) != (header.scheme, header.params, header.key) {
        return Err(reader.error("the ciphertexts are of another key than the header says").into());
    }
    let table = public.table_from_bytes(bytes)?;
    let found = (table.rows(), table.columns());
    if found != shape {
        return Err(reader
            .error(format!(
                "{} × {} ciphertexts expected, {} × {} came",
                shape.0, shape.1, found.0, found.1
            ))
            .into());
    }
    Ok(table)
}

fn write_blocks(packing: &Packing, fill: &[u16], out: &mut Vec<u8>) {
    out.extend_from_slice(&(fill.len() as u32).to_le_bytes());
    if packing.layout() == Layout::Lanes {
        fill.iter().for_each(|fill| out.extend_from_slice(&fill.to_le_bytes()));
    }
}

fn read_blocks(packing: &Packing, reader: &mut Reader<'_>) -> Result<Vec<u16>> {
    let blocks = reader.u32()? as usize;
    // Every block has a ciphertext behind it at least, and no scheme has any as short as this: a
    // count that is not covered is refused before it allocates.
    if blocks == 0 || blocks > reader.remaining() / SHORTEST_CIPHERTEXT {
        return Err(reader
            .error(format!("{blocks} blocks in {} bytes", reader.remaining()))
            .into());
    }
    if packing.layout() != Layout::Lanes {
        return Ok(vec![1; blocks]);
    }
    let fill: Vec<u16> = reader
        .take(2 * blocks)?
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&fill| u16::from_le_bytes(fill))
        .collect();
    match fill.iter().find(|&&fill| fill == 0 || usize::from(fill) > packing.lanes()) {
        Some(fill) => Err(reader
            .error(format!("blocks hold 1 to {} vectors, not {fill}", packing.lanes()))
            .into()),
        None => Ok(fill),
    }
}

fn read_probes(reader: &mut Reader<'_>) -> Result<usize> {
    let probes = reader.u32()?;
    if probes == 0 || probes > MAX_QUERIES {
        return Err(reader.error(format!("1 to {MAX_QUERIES} probes, not {probes}")).into());
    }
    Ok(probes as usize)
}

fn read_scales(reader: &mut Reader<'_>, probes: usize) -> Result<Vec<u64>> {
    let bytes = reader.take(8 * probes)?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|&scale| u64::from_le_bytes(scale)).collect())
}
