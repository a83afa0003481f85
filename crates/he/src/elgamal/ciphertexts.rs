//! Table of ciphertexts, of 64 bytes each in a frame.

use std::ops::Range;

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::traits::IsIdentity;
use rayon::prelude::*;

use super::addition_chain::Points;
use super::param_id;
use crate::additive::Table;
use crate::error::{Error, Result};
use crate::params::ParamId;
use crate::wire::{self, Header, KeyId, Kind, Reader, Scheme};

const WHAT: &str = "ciphertexts";

/// `rows × columns` ciphertexts `(r G, m G + r H)`, ready to compute on.
///
/// 320 bytes a ciphertext in memory and 64 in bytes; reading takes two decompressions each.
#[derive(Clone, Debug)]
pub struct Ciphertexts {
    pub(super) key: KeyId,
    rows: usize,
    columns: usize,
    points: Vec<Points<2>>,
}

impl Ciphertexts {
    #[doc(hidden)]
    pub fn new(key: KeyId, rows: usize, columns: usize, points: Vec<Points<2>>) -> Self {
        debug_assert_eq!(points.len(), rows * columns);
        Ciphertexts { key, rows, columns, points }
    }

    /// The ciphertexts, row after row.
    #[doc(hidden)]
    pub fn points(&self) -> &[Points<2>] {
        &self.points
    }

    pub(super) fn points_mut(&mut self) -> &mut [Points<2>] {
        &mut self.points
    }

    /// A table of the same key and shape.
    pub(super) fn with_points(&self, points: Vec<Points<2>>) -> Self {
        Ciphertexts::new(self.key, self.rows, self.columns, points)
    }

    /// Refuses a table of another key.
    #[doc(hidden)]
    pub fn check_key(&self, key: KeyId) -> Result<()> {
        if self.key == key {
            Ok(())
        } else {
            Err(Error::WrongKey { what: WHAT, expected: key, actual: self.key })
        }
    }

    /// The public name of the key.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// The ciphertexts, framed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            scheme: Scheme::ElGamal,
            kind: Kind::Ciphertexts,
            params: param_id(),
            key: self.key,
        };
        let mut payload = Vec::with_capacity(8 + 64 * self.points.len());
        payload.extend_from_slice(&(self.rows as u32).to_le_bytes());
        payload.extend_from_slice(&(self.columns as u32).to_le_bytes());
        let compressed: Vec<[[u8; 32]; 2]> =
            self.points.par_iter().map(|pair| pair.map(|point| point.compress().0)).collect();
        payload.extend_from_slice(compressed.as_flattened().as_flattened());
        header.frame(&payload)
    }

    /// Reads ciphertexts of the key `key`. Refuses points that are not encoded canonically and
    /// neutral elements: no encryption has any, and a sum in which all noise cancels shows its
    /// message, so that it must be re-randomised before it is sent.
    ///
    /// # Errors
    /// [`Error::Malformed`] and the other errors of [`wire::open`]; [`Error::WrongKey`].
    pub fn from_bytes(key: KeyId, bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Ciphertexts, bytes)?;
        check_header(&header, WHAT, param_id())?;
        if header.key != key {
            return Err(Error::WrongKey { what: WHAT, expected: key, actual: header.key });
        }
        let mut reader = Reader::new(WHAT, payload);
        let (rows, columns) = shape(&mut reader)?;
        let count = rows
            .checked_mul(columns)
            .filter(|count| Some(reader.remaining()) == count.checked_mul(64));
        let Some(count) = count else {
            return Err(reader.error(format!(
                "64 bytes each for {rows} × {columns} ciphertexts expected, {} bytes came",
                reader.remaining()
            )));
        };
        let encoded = reader.take(64 * count)?;
        reader.finish()?;
        let points: Result<Vec<Points<2>>> = encoded
            .as_chunks::<64>()
            .0
            .par_iter()
            .map(|bytes| {
                let (one, two) = bytes.split_at(32);
                Ok([point(WHAT, one)?, point(WHAT, two)?])
            })
            .collect();
        Ok(Ciphertexts::new(header.key, rows, columns, points?))
    }
}

/// Rows and columns, each as four bytes.
pub fn shape(reader: &mut Reader<'_>) -> Result<(usize, usize)> {
    let (rows, columns) = (reader.u32()? as usize, reader.u32()? as usize);
    // Without columns nothing would bound the rows, nor the other way round.
    if (rows == 0) != (columns == 0) {
        return Err(reader.error(format!("a table of {rows} × {columns} is no table")));
    }
    Ok((rows, columns))
}

/// Refuses a frame of another scheme.
pub fn check_header(header: &Header, what: &'static str, params: ParamId) -> Result<()> {
    if header.scheme != Scheme::ElGamal {
        let detail = format!("ElGamal expected, these bytes are {}", header.scheme.as_str());
        return Err(Error::malformed(what, detail));
    }
    if header.params != params {
        let (expected, actual) = (params.to_string(), header.params.to_string());
        return Err(Error::Parameters { what, expected, actual });
    }
    Ok(())
}

/// The point that 32 bytes encode canonically, unless it is the neutral element.
pub fn point(what: &'static str, bytes: &[u8]) -> Result<RistrettoPoint> {
    let point = CompressedRistretto::from_slice(bytes).ok().and_then(|bytes| bytes.decompress());
    match point {
        Some(point) if !point.is_identity() => Ok(point),
        Some(_) => Err(Error::malformed(what, "a neutral element where a random point belongs")),
        None => Err(Error::malformed(what, "32 bytes are no canonical encoding in ristretto255")),
    }
}

impl Table for Ciphertexts {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn transposed(&self) -> Self {
        let points = (0..self.columns)
            .flat_map(|column| self.points.iter().skip(column).step_by(self.columns).copied())
            .collect();
        Ciphertexts::new(self.key, self.columns, self.rows, points)
    }

    fn beside(tables: &[&Self]) -> Result<Self> {
        let Some(first) = tables.first() else {
            return Err(range("tables side by side", "at least one".to_owned(), "none"));
        };
        for table in tables {
            table.check_key(first.key)?;
            if table.rows != first.rows {
                return Err(range(
                    "rows of tables side by side",
                    first.rows.to_string(),
                    table.rows,
                ));
            }
        }
        let columns = tables.iter().map(|table| table.columns).sum();
        let rows = (0..first.rows).flat_map(|row| {
            tables
                .iter()
                .flat_map(move |table| &table.points[row * table.columns..][..table.columns])
        });
        Ok(Ciphertexts::new(first.key, first.rows, columns, rows.copied().collect()))
    }

    fn columns_in(&self, range: Range<usize>) -> Result<Self> {
        if range.start > range.end || range.end > self.columns {
            let expected = format!("inside 0..{}", self.columns);
            return Err(self::range("a range of columns", expected, format!("{range:?}")));
        }
        let rows = (0..self.rows)
            .flat_map(|row| &self.points[row * self.columns..][..self.columns][range.clone()]);
        let points = rows.copied().collect();
        Ok(Ciphertexts::new(self.key, self.rows, range.len(), points))
    }
}

/// A count or size that is not what it must be.
pub fn range(what: &'static str, expected: String, actual: impl ToString) -> Error {
    Error::Range { what, expected, actual: actual.to_string() }
}
