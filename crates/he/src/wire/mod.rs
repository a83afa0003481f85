//! Frame: 64 header bytes, and a payload that they say the kind, length and checksum of.
//!
//! | bytes | field |
//! |---|---|
//! | 0–3 | magic `CVEC` |
//! | 4–5 | format version, little-endian |
//! | 6 | scheme |
//! | 7 | kind |
//! | 8–15 | parameter id |
//! | 16–23 | key id (zero where no key is involved) |
//! | 24–31 | payload length, little-endian |
//! | 32–63 | BLAKE3 of bytes 0–31 and the payload |
//!
//! The header is 64 bytes long so that a payload mapped from a file starts on a cache line.

mod kind;
mod reader;
mod stream;

pub use crate::id::KeyId;
pub use kind::{Kind, Scheme};
pub use reader::Reader;
pub(crate) use stream::{FrameReader, InnerFrame, Source};

use crate::error::{Error, Result};
use crate::id::ParamId;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 64;
/// The format version of every kind of frame, where its own text does not say of another.
pub const VERSION: u16 = 1;
const MAGIC: [u8; 4] = *b"CVEC";

/// Takes the next bytes of a frame that is made piece by piece.
pub(crate) type Put<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// What the header says beside length and checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The scheme.
    pub scheme: Scheme,
    /// The kind of object.
    pub kind: Kind,
    /// The parameter set.
    pub params: ParamId,
    /// The key, zero where none is involved.
    pub key: KeyId,
}

impl Header {
    fn prefix(&self, version: u16, payload_len: usize) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&version.to_le_bytes());
        bytes[6] = self.scheme as u8;
        bytes[7] = self.kind as u8;
        bytes[8..16].copy_from_slice(&self.params.0);
        bytes[16..24].copy_from_slice(&self.key.0);
        bytes[24..].copy_from_slice(&(payload_len as u64).to_le_bytes());
        bytes
    }

    /// Writes the header into the first [`HEADER_LEN`] bytes of `frame`; the payload stands after
    /// it already.
    ///
    /// # Panics
    /// If `frame` is shorter than a header.
    pub fn seal(&self, frame: &mut [u8]) {
        self.seal_version(VERSION, frame);
    }

    /// As [`Self::seal`], for a payload of this version of its kind's format.
    ///
    /// # Panics
    /// If `frame` is shorter than a header.
    pub fn seal_version(&self, version: u16, frame: &mut [u8]) {
        let (head, payload) = frame.split_at_mut(HEADER_LEN);
        let prefix = self.prefix(version, payload.len());
        head[..32].copy_from_slice(&prefix);
        head[32..].copy_from_slice(digest(&prefix, payload).as_bytes());
    }

    /// The header of a frame that stays in this process and whose payload comes piece by piece: its checksum, which only
    /// the end would tell, is missing. [`Incoming::unchecked`] reads it.
    pub fn announce(&self, version: u16, payload_len: usize) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..32].copy_from_slice(&self.prefix(version, payload_len));
        bytes
    }

    /// The header of a payload of so many bytes that is made piece by piece: `pieces` hands them over
    /// in order.
    pub(crate) fn seal_pieces(
        &self,
        payload_len: usize,
        pieces: impl FnOnce(&mut Put<'_>) -> Result<()>,
    ) -> Result<[u8; HEADER_LEN]> {
        let mut bytes = self.announce(VERSION, payload_len);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes[..32]);
        let mut came = 0;
        pieces(&mut |piece| {
            came += piece.len();
            hasher.update(piece);
            Ok(())
        })?;
        expect_length(self.kind, payload_len as u64, came)?;
        bytes[32..].copy_from_slice(hasher.finalize().as_bytes());
        Ok(bytes)
    }

    /// The header followed by `payload`.
    pub fn frame(&self, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(HEADER_LEN + payload.len());
        frame.resize(HEADER_LEN, 0);
        frame.extend_from_slice(payload);
        self.seal(&mut frame);
        frame
    }
}

fn digest(prefix: &[u8; 32], payload: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prefix).update(payload);
    hasher.finalize()
}

/// The kind that a frame says it holds, if it is one that is known. Nothing else of it is looked at.
pub fn kind_of(bytes: &[u8]) -> Option<Kind> {
    bytes.get(7).copied().and_then(Kind::from_byte)
}

/// Reads a frame that must hold `kind`: its header and its payload.
///
/// # Errors
/// Anything but a whole, undamaged frame of this kind and of a known version.
pub fn open(kind: Kind, bytes: &[u8]) -> Result<(Header, &[u8])> {
    let (_, header, payload) = open_version(kind, VERSION, bytes)?;
    Ok((header, payload))
}

/// As [`open`], of a kind whose format has versions up to `newest`: which one it is comes first.
///
/// # Errors
/// As [`open`].
pub fn open_version(kind: Kind, newest: u16, bytes: &[u8]) -> Result<(u16, Header, &[u8])> {
    let (version, header, length) = read_header(kind, newest, bytes)?;
    let payload = &bytes[HEADER_LEN..];
    expect_length(kind, length, payload.len())?;
    let mut prefix = [0; 32];
    prefix.copy_from_slice(&bytes[..32]);
    if digest(&prefix, payload).as_bytes() != &bytes[32..HEADER_LEN] {
        return Err(Error::Checksum { what: kind.as_str() });
    }
    Ok((version, header, payload))
}

/// Reads the start of a frame of `len` bytes that must hold `kind`: its header and what is there of
/// its payload. The checksum is not looked at: `bytes` have been checked by other means.
///
/// # Errors
/// As [`open`], but for damage to the payload.
pub fn open_start(kind: Kind, bytes: &[u8], len: usize) -> Result<(Header, &[u8])> {
    let (_, header, length) = read_header(kind, VERSION, bytes)?;
    expect_length(kind, length, len.saturating_sub(HEADER_LEN))?;
    Ok((header, &bytes[HEADER_LEN..]))
}

/// A frame that comes piece by piece: its payload is looked at before all of it is there, and counts
/// once [`Self::finish`] has compared the checksum.
pub struct Incoming {
    kind: Kind,
    version: u16,
    header: Header,
    length: u64,
    came: u64,
    /// What the checksum should be, and what it is so far; `None` where there is none.
    checked: Option<([u8; 32], Box<blake3::Hasher>)>,
}

impl Incoming {
    /// Reads the header of a frame that must hold `kind` in a version up to `newest`.
    ///
    /// # Errors
    /// Anything but such a header.
    pub fn new(kind: Kind, newest: u16, header: &[u8; HEADER_LEN]) -> Result<Self> {
        let (version, read, length) = read_header(kind, newest, header)?;
        let mut checksum = [0; 32];
        checksum.copy_from_slice(&header[32..]);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&header[..32]);
        let checked = Some((checksum, Box::new(hasher)));
        Ok(Incoming { kind, version, header: read, length, came: 0, checked })
    }

    /// As [`Self::new`], for a frame that was made in this process while it was read ([`Header::announce`]): what was
    /// never sent has no checksum.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn unchecked(kind: Kind, newest: u16, header: &[u8; HEADER_LEN]) -> Result<Self> {
        let (version, read, length) = read_header(kind, newest, header)?;
        Ok(Incoming { kind, version, header: read, length, came: 0, checked: None })
    }

    /// The version of its format.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of the payload that are still to come.
    pub fn left(&self) -> u64 {
        self.length - self.came
    }

    /// Takes in the next piece of the payload.
    ///
    /// # Errors
    /// More bytes than the header promises.
    pub fn update(&mut self, piece: &[u8]) -> Result<()> {
        let came = self.came + piece.len() as u64;
        if came > self.length {
            return Err(promised(self.kind, self.length, came));
        }
        self.came = came;
        if let Some((_, hasher)) = &mut self.checked {
            hasher.update(piece);
        }
        Ok(())
    }

    /// That the bytes end after `more` beyond those taken in.
    pub(crate) fn cut_short(&self, more: usize) -> Error {
        promised(self.kind, self.length, self.came + more as u64)
    }

    /// The end of the frame.
    ///
    /// # Errors
    /// Fewer bytes than the header promises, or damaged ones.
    pub fn finish(self) -> Result<()> {
        if self.came != self.length {
            return Err(promised(self.kind, self.length, self.came));
        }
        match self.checked {
            Some((checksum, hasher)) if hasher.finalize() != checksum => {
                Err(Error::Checksum { what: self.kind.as_str() })
            }
            _ => Ok(()),
        }
    }
}

/// Version, header and the payload length that it promises.
fn read_header(kind: Kind, newest: u16, bytes: &[u8]) -> Result<(u16, Header, u64)> {
    let what = kind.as_str();
    let Some(head) = bytes.get(..HEADER_LEN) else {
        return Err(Error::malformed(
            what,
            format!("{HEADER_LEN} header bytes expected, {} came", bytes.len()),
        ));
    };
    if head[..4] != MAGIC {
        return Err(Error::malformed(what, "the bytes do not start with CVEC"));
    }
    let version = u16::from_le_bytes([head[4], head[5]]);
    if version == 0 {
        return Err(Error::malformed(what, "format version 0 does not exist"));
    }
    if version > newest {
        return Err(Error::Version { what, supported: newest, actual: version });
    }
    let found = Kind::from_byte(head[7]);
    if found != Some(kind) {
        let actual =
            found.map_or_else(|| format!("unknown kind {}", head[7]), |k| k.as_str().to_owned());
        return Err(Error::Kind { expected: what, actual });
    }
    let Some(scheme) = Scheme::from_byte(head[6]) else {
        return Err(Error::malformed(what, format!("unknown scheme {}", head[6])));
    };
    let mut reader = Reader::new(what, &head[8..]);
    let header =
        Header { scheme, kind, params: ParamId(reader.array()?), key: KeyId(reader.array()?) };
    Ok((version, header, reader.u64()?))
}

fn expect_length(kind: Kind, length: u64, came: usize) -> Result<()> {
    if length == came as u64 { Ok(()) } else { Err(promised(kind, length, came as u64)) }
}

fn promised(kind: Kind, length: u64, came: u64) -> Error {
    let detail = format!("the header promises {length} payload bytes, {came} came");
    Error::malformed(kind.as_str(), detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let header = Header {
            scheme: Scheme::Ring,
            kind: Kind::Query,
            params: ParamId([7; 8]),
            key: KeyId([9; 8]),
        };
        header.frame(b"payload")
    }

    #[test]
    fn frames_round_trip() {
        let bytes = sample();
        let (header, payload) = open(Kind::Query, &bytes).unwrap();
        assert_eq!(
            (header.scheme, header.params, header.key),
            (Scheme::Ring, ParamId([7; 8]), KeyId([9; 8]))
        );
        assert_eq!(payload, b"payload");
    }

    #[test]
    fn every_scheme_and_kind_keeps_its_byte() {
        for (at, scheme) in Scheme::ALL.iter().copied().enumerate() {
            assert_eq!((scheme as usize, Scheme::from_byte(at as u8)), (at, Some(scheme)));
        }
        // 14 and 15 were never given out.
        for (byte, kind) in (1..=13).chain(16..=29).zip(Kind::ALL) {
            assert_eq!((kind as u8, Kind::from_byte(byte)), (byte, Some(kind)));
        }
        assert!(Scheme::from_byte(9).is_none());
        assert!([0, 14, 15, 30].into_iter().all(|byte| Kind::from_byte(byte).is_none()));
        assert_eq!(Kind::Parameters as u8, 11);
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_found() {
        let bytes = sample();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(open(Kind::Query, &damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(open(Kind::Query, &bytes[..length]).is_err());
        }
        assert!(matches!(open(Kind::Segment, &bytes), Err(Error::Kind { .. })));
    }

    #[test]
    fn a_frame_that_comes_in_pieces_is_checked_like_a_whole_one() {
        let whole = sample();
        let take = |bytes: &[u8], step: usize| -> Result<Vec<u8>> {
            let (head, payload) = bytes
                .split_at_checked(HEADER_LEN)
                .ok_or_else(|| Error::malformed("a query", "too short"))?;
            let mut header = [0; HEADER_LEN];
            header.copy_from_slice(head);
            let mut incoming = Incoming::new(Kind::Query, 2, &header)?;
            payload.chunks(step).try_for_each(|piece| incoming.update(piece))?;
            incoming.finish()?;
            Ok(payload.to_vec())
        };
        for step in 1..=8 {
            assert_eq!(take(&whole, step).unwrap(), b"payload");
            for bit in 0..whole.len() * 8 {
                let mut damaged = whole.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(take(&damaged, step).is_err(), "bit {bit}");
            }
            assert!((0..whole.len()).all(|length| take(&whole[..length], step).is_err()));
            assert!(take(&[&whole[..], &[0]].concat(), step).is_err());
        }
    }

    #[test]
    fn a_later_version_of_one_kind_is_read_by_who_knows_it_alone() {
        let mut bytes = sample();
        let header = Header {
            scheme: Scheme::Ring,
            kind: Kind::Query,
            params: ParamId([7; 8]),
            key: KeyId([9; 8]),
        };
        header.seal_version(2, &mut bytes);
        assert!(matches!(open(Kind::Query, &bytes), Err(Error::Version { actual: 2, .. })));
        assert_eq!(open_version(Kind::Query, 2, &bytes).unwrap().0, 2);
        assert_eq!(open_version(Kind::Query, 2, &sample()).unwrap().0, 1);
    }

    #[test]
    fn a_future_version_says_so() {
        let mut bytes = sample();
        bytes[4] = 2;
        assert!(matches!(
            open(Kind::Query, &bytes),
            Err(Error::Version { actual: 2, supported: 1, .. })
        ));
    }
}
