//! The frame of one segment's key, wrapped to the owner. A server checks it and learns nothing of the key.
//!
//! A frame of kind 13 under the owner's key id, with the payload
//! `index id 8 | segment id 16 | suite u16 | encapsulated key 1120 | sealed key 48 or 56 | writer's name: u16 and UTF-8, 1 to 64
//! bytes`. In suite 2, which has the algorithms of suite 1, the time of sealing is sealed behind the key: milliseconds since 1970
//! by the writer's clock, u64. Release 0.1 wrote suite 1.

use super::message::{expect_params, header};
use crate::error::Result;
use crate::index::spec::IndexSpec;
pub use crate::protect::hybrid::PUBLIC_KEY;
pub use crate::protect::hybrid::SUITE;
use crate::protect::hybrid::{ENCAPSULATED, SEALED};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{self, KeyId, Kind, Reader};

/// The longest name of a writer, in bytes.
pub const MAX_WRITER: usize = 64;
/// The suite with a time behind the key.
pub const TIMED: u16 = 2;
pub const TIME: usize = 8;

/// A wrapped key, read and not opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrappedKey<'a> {
    /// The segment it belongs to.
    pub segment: SegmentId,
    /// The owner's key that it is addressed to.
    pub owner: KeyId,
    /// The name of the writer, as its card has it.
    pub writer: &'a str,
    #[doc(hidden)]
    pub suite: u16,
    #[doc(hidden)]
    pub encapsulated: &'a [u8],
    #[doc(hidden)]
    pub sealed: &'a [u8],
}

impl<'a> WrappedKey<'a> {
    /// Reads the wrap of a segment of `spec`.
    ///
    /// # Errors
    /// Damaged bytes, another index, an unknown suite, lengths that do not fit.
    pub fn read(spec: &IndexSpec, bytes: &'a [u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::SegmentKey, bytes)?;
        let what = Kind::SegmentKey.as_str();
        expect_params(spec, what, &header)?;
        let mut reader = Reader::new(what, payload);
        spec.expect_id(what, reader.array()?)?;
        let segment = SegmentId(reader.array()?);
        let suite = u16::from_le_bytes(reader.array()?);
        let length = match suite {
            SUITE => SEALED,
            TIMED => SEALED + TIME,
            _ => return Err(unknown_suite(&reader, TIMED, suite)),
        };
        let (encapsulated, sealed) = (reader.take(ENCAPSULATED)?, reader.take(length)?);
        let writer = take_short(&mut reader)?;
        let writer = writer_name(&reader, writer)?;
        reader.finish()?;
        Ok(WrappedKey { segment, owner: header.key, writer, suite, encapsulated, sealed })
    }

    /// The frame again.
    pub fn to_bytes(&self, spec: &IndexSpec) -> Vec<u8> {
        let parts: [&[u8]; 7] = [
            &spec.id(),
            &self.segment.0,
            &self.suite.to_le_bytes(),
            self.encapsulated,
            self.sealed,
            &(self.writer.len() as u16).to_le_bytes(),
            self.writer.as_bytes(),
        ];
        header(spec, Kind::SegmentKey, self.owner).frame(&parts.concat())
    }
}

pub fn unknown_suite(reader: &Reader<'_>, newest: u16, suite: u16) -> crate::error::Error {
    let detail = format!("a suite up to {newest} expected, {suite} came; upgrade ciphervec");
    reader.error(detail).into()
}

/// A writer's name: 1 to [`MAX_WRITER`] bytes of UTF-8.
pub fn writer_name<'a>(reader: &Reader<'_>, bytes: &'a [u8]) -> Result<&'a str> {
    let name = core::str::from_utf8(bytes).ok();
    let fits = |name: &&str| (1..=MAX_WRITER).contains(&name.len());
    name.filter(fits).ok_or_else(|| {
        reader.error(format!("a writer's name of 1 to {MAX_WRITER} bytes expected")).into()
    })
}

/// Bytes behind their length, u16.
pub fn take_short<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let length = u16::from_le_bytes(reader.array()?);
    Ok(reader.take(length.into())?)
}
