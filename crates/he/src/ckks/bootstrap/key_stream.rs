//! Bootstrapping keys as the bytes of a frame, written and read a key at a time.
//!
//! The keys are gigabytes, and their frame half as many: neither way are both in memory.

use super::super::keys::EvaluationKeys;
use super::super::params::Params;
use super::super::serialize::check;
use super::encapsulation::Encapsulation;
use super::keys::BootstrappingKeys;
use crate::error::{Error, Result};
use crate::wire::{self, FrameReader, Header, Kind, Put, Scheme, Source};
use std::io::{Read, Write};
use std::sync::Arc;

impl BootstrappingKeys {
    fn header(&self) -> Header {
        Header {
            scheme: Scheme::Ckks,
            kind: Kind::BootstrappingKeys,
            params: self.params.param_id(),
            key: self.key,
        }
    }

    /// Bytes serialised.
    pub fn bytes(&self) -> usize {
        let sets: usize = self.sets.iter().map(|set| 8 + set.bytes()).sum();
        wire::HEADER_LEN + Encapsulation::bytes_at(&self.params) + sets
    }

    /// The payload: `headers` are those of the sets' own frames.
    fn payload(&self, headers: &[[u8; wire::HEADER_LEN]; 3], put: &mut Put<'_>) -> Result<()> {
        let mut piece = Vec::with_capacity(Encapsulation::bytes_at(&self.params));
        self.encapsulation.append(&self.params, &mut piece);
        put(&piece)?;
        drop(piece);
        for (set, header) in self.sets.iter().zip(headers) {
            put(&(set.bytes() as u64).to_le_bytes())?;
            put(header)?;
            set.payload(put)?;
        }
        Ok(())
    }

    /// Serialises the keys; masks are written as their seeds.
    ///
    /// # Panics
    /// Never: memory takes what it is given.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(self.bytes());
        self.write_to(&mut frame).expect("a Vec takes all bytes, and they are as many as counted");
        frame
    }

    /// Writes [`Self::to_bytes`] a key at a time. A checksum stands before what it is of, so that the
    /// keys are gone through three times, twice of them without writing.
    ///
    /// # Errors
    /// [`Error::Stream`] with what the writer says.
    pub fn write_to(&self, out: &mut dyn Write) -> Result<()> {
        let [low, middle, high] = &self.sets;
        let headers = [low.sealed_header()?, middle.sealed_header()?, high.sealed_header()?];
        let length = self.bytes() - wire::HEADER_LEN;
        let header = self.header().seal_pieces(length, |put| self.payload(&headers, put))?;
        let mut write = |piece: &[u8]| {
            out.write_all(piece).map_err(|error| failed("writing bootstrapping keys", &error))
        };
        write(&header)?;
        self.payload(&headers, &mut write)?;
        out.flush().map_err(|error| failed("writing bootstrapping keys", &error))
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, other parameters, or sets of another secret key.
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self> {
        // The whole of it first: then damage is called that, wherever it is.
        let (_, payload) = wire::open(Kind::BootstrappingKeys, bytes)?;
        let mut rest = bytes;
        let keys = Self::read_from(params, &mut rest)?;
        debug_assert!(rest.is_empty() && !payload.is_empty());
        Ok(keys)
    }

    /// Reads what [`Self::write_to`] wrote, a key at a time, and nothing beyond. Nothing is returned
    /// unless all of it has come and its checksum is right.
    ///
    /// # Errors
    /// As [`Self::from_bytes`]; [`Error::Stream`] with what the reader says.
    pub fn read_from(params: &Arc<Params>, from: &mut dyn Read) -> Result<Self> {
        let mut frame = FrameReader::new(Kind::BootstrappingKeys, from)?;
        let header = *frame.header();
        check(params, &header)?;
        let what = Kind::BootstrappingKeys.as_str();
        if params.spec().special_primes == 0 {
            return Err(Error::malformed(what, "parameters with special primes expected"));
        }
        let mut piece = frame.piece(Encapsulation::bytes_at(params))?;
        let encapsulation = Arc::new(Encapsulation::read(params, &mut piece)?);
        let mut set = || {
            let length = frame.piece(8)?.u64()?;
            let before = frame.left();
            let keys = EvaluationKeys::read(params, &mut frame)?;
            let came = before - frame.left();
            if length != came {
                let detail = format!("a set of {length} bytes announced, {came} came");
                return Err(Error::malformed(what, detail));
            }
            if keys.key_id() == header.key {
                return Ok(Arc::new(keys));
            }
            let (expected, actual) = (header.key, keys.key_id());
            Err(Error::WrongKey { what: "a set of bootstrapping keys", expected, actual })
        };
        let sets = [set()?, set()?, set()?];
        frame.finish()?;
        Ok(BootstrappingKeys { params: params.clone(), key: header.key, encapsulation, sets })
    }
}

fn failed(doing: &'static str, error: &std::io::Error) -> Error {
    Error::Stream { doing, detail: error.to_string() }
}
