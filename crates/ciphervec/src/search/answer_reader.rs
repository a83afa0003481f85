//! Answer reader: the bytes of an answer enter, all at once or as they come; the parts that are asked for leave. Owner only.
//!
//! Parts are looked at before the whole is there, and so before its checksum is. What is made of them counts once
//! [`AnswerReader::finish`] has compared it, and an answer that is damaged is called that, whatever its parts looked like.

use crate::error::Result;
use ciphervec_he::wire::{HEADER_LEN, Header, Incoming, Kind, Reader};
use std::io::{ErrorKind, Read};

/// Bytes that are read at once, of answers that come piece by piece, and of what is passed over.
const PIECE: usize = 1 << 20;
const WHAT: &str = "a response";

/// Where the bytes come from.
pub enum Input<'a> {
    /// All of them are there.
    Whole(&'a [u8]),
    /// They are read as they are needed.
    Stream(&'a mut (dyn Read + Send)),
    /// As [`Self::Stream`], from a server in this process that answers meanwhile: there is no checksum.
    Local(&'a mut (dyn Read + Send)),
}

/// Reads one answer from its start to its end.
pub struct AnswerReader<'a> {
    frame: Incoming,
    input: Input<'a>,
    buffer: Vec<u8>,
}

impl<'a> AnswerReader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// Anything but that of an answer of a version up to `newest`.
    pub fn new(mut input: Input<'a>, newest: u16) -> Result<Self> {
        let mut header = [0; HEADER_LEN];
        let mut came = 0;
        match &mut input {
            Input::Whole(rest) => {
                came = rest.len().min(HEADER_LEN);
                header[..came].copy_from_slice(&rest[..came]);
                *rest = &rest[came..];
            }
            Input::Stream(reader) | Input::Local(reader) => {
                let mut start = Vec::with_capacity(HEADER_LEN);
                fill(*reader, HEADER_LEN, &mut start)?;
                header[..start.len()].copy_from_slice(&start);
                came += start.len();
            }
        }
        if came < HEADER_LEN {
            let detail = format!("{HEADER_LEN} header bytes expected, {came} came");
            return Err(Reader::new(WHAT, &[]).error(detail).into());
        }
        let read = match input {
            Input::Whole(_) | Input::Stream(_) => Incoming::new,
            Input::Local(_) => Incoming::unchecked,
        };
        let frame = read(Kind::Response, newest, &header)?;
        Ok(AnswerReader { frame, input, buffer: Vec::new() })
    }

    /// The version of its format.
    pub fn version(&self) -> u16 {
        self.frame.version()
    }

    /// What its header says.
    pub fn header(&self) -> &Header {
        self.frame.header()
    }

    /// Bytes to ask for at once, at most or little more: what is there needs no room of its own.
    pub fn piece(&self) -> usize {
        match self.input {
            Input::Whole(_) => usize::MAX,
            Input::Stream(_) | Input::Local(_) => PIECE,
        }
    }

    /// The next so many bytes.
    ///
    /// # Errors
    /// Fewer that are left.
    pub fn take(&mut self, count: usize) -> Result<&[u8]> {
        let left = self.frame.left();
        if count as u64 > left {
            let detail = format!("{count} bytes expected, {left} left");
            return Err(Reader::new(WHAT, &[]).error(detail).into());
        }
        let bytes: &[u8] = match &mut self.input {
            Input::Whole(rest) => {
                let (bytes, after) = rest.split_at(count.min(rest.len()));
                *rest = after;
                bytes
            }
            Input::Stream(reader) | Input::Local(reader) => {
                fill(*reader, count, &mut self.buffer)?;
                &self.buffer
            }
        };
        self.frame.update(bytes)?;
        if bytes.len() < count {
            let detail = format!("{count} bytes expected, {} came before its end", bytes.len());
            return Err(Reader::new(WHAT, &[]).error(detail).into());
        }
        Ok(bytes)
    }

    /// The next bytes as an array.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn array<const L: usize>(&mut self) -> Result<[u8; L]> {
        let mut out = [0; L];
        out.copy_from_slice(self.take(L)?);
        Ok(out)
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// The next 32-bit number.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Passes over the next bytes.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn skip(&mut self, mut count: usize) -> Result<()> {
        while count > 0 {
            let piece = count.min(PIECE);
            self.take(piece)?;
            count -= piece;
        }
        Ok(())
    }

    /// Refuses bytes beyond what was read.
    ///
    /// # Errors
    /// If there are any.
    pub fn expect_end(&self) -> Result<()> {
        match self.frame.left() {
            0 => Ok(()),
            left => Err(Reader::new(WHAT, &[]).error(format!("{left} bytes too many")).into()),
        }
    }

    /// The end: whatever is left is read too, and the checksum compared, where there is one.
    ///
    /// # Errors
    /// Another number of bytes than the header promises, or damaged ones.
    pub fn finish(mut self) -> Result<()> {
        match self.input {
            Input::Whole(rest) => self.frame.update(rest)?,
            Input::Stream(reader) | Input::Local(reader) => loop {
                fill(reader, PIECE, &mut self.buffer)?;
                if self.buffer.is_empty() {
                    break;
                }
                self.frame.update(&self.buffer)?;
            },
        }
        Ok(self.frame.finish()?)
    }
}

/// Reads so many bytes, fewer at the end; no more room is taken than bytes come.
fn fill(reader: &mut dyn Read, count: usize, into: &mut Vec<u8>) -> Result<()> {
    into.clear();
    let read = reader.take(count as u64).read_to_end(into);
    if let Err(error) = read
        && error.kind() != ErrorKind::UnexpectedEof
    {
        return Err(Reader::new(WHAT, &[]).error(format!("it could not be read: {error}")).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphervec_he::params::ParamId;
    use ciphervec_he::wire::{KeyId, Scheme};

    fn sample() -> Vec<u8> {
        let header = Header {
            scheme: Scheme::Ring,
            kind: Kind::Response,
            params: ParamId([7; 8]),
            key: KeyId([9; 8]),
        };
        header.frame(b"0123456789")
    }

    fn both(bytes: &[u8], check: impl Fn(AnswerReader<'_>) -> Result<()>) -> [Result<()>; 2] {
        let mut stream = bytes;
        [
            AnswerReader::new(Input::Whole(bytes), 2).and_then(&check),
            AnswerReader::new(Input::Stream(&mut stream), 2).and_then(&check),
        ]
    }

    #[test]
    fn parts_come_in_order_and_the_end_is_checked() {
        let read = |mut reader: AnswerReader<'_>| {
            assert_eq!(reader.array::<3>()?, *b"012");
            assert_eq!(reader.take(2)?, b"34");
            reader.skip(3)?;
            assert!(reader.expect_end().is_err() && reader.take(3).is_err());
            assert_eq!(reader.u8()?, b'8');
            assert_eq!(reader.take(1)?, b"9");
            reader.expect_end()?;
            reader.finish()
        };
        assert!(both(&sample(), read).iter().all(Result::is_ok));
    }

    #[test]
    fn damage_and_other_lengths_are_found_wherever_reading_stopped() {
        let bytes = sample();
        for stop in [0, 1, 10] {
            let read = |mut reader: AnswerReader<'_>| {
                let taken = reader.skip(stop);
                reader.finish()?;
                taken
            };
            assert!(both(&bytes, read).iter().all(Result::is_ok));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(both(&damaged, read).iter().all(Result::is_err), "bit {bit}");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert!(both(&longer, read).iter().all(Result::is_err));
            for length in 0..bytes.len() {
                assert!(both(&bytes[..length], read).iter().all(Result::is_err), "{length}");
            }
        }
    }
}
