//! Reads the parts of an answer from its bytes, which are all there or still come. Owner only.
//!
//! Of an answer that is there, the checksum is compared before anything is opened. Parts of one that comes in pieces are looked at
//! before the whole is there: what is made of them counts once [`AnswerReader::finish`] has compared it.

use super::pieces::Pieces;
use crate::error::Result;
use ciphervec_he_secret::wire::{HEADER_LEN, Header, Incoming, Kind, Reader};
use std::future::poll_fn;
use std::io::{ErrorKind, Read};
use std::task::Poll;

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
    /// They are handed over as they come, and waited for.
    Pieces(&'a Pieces),
}

/// Reads one answer from its start to its end. Nothing but pieces is ever waited for.
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
    pub async fn new(mut input: Input<'a>, newest: u16) -> Result<Self> {
        let mut header = [0; HEADER_LEN];
        let mut came = 0;
        match &mut input {
            Input::Whole(rest) => {
                came = rest.len().min(HEADER_LEN);
                header[..came].copy_from_slice(&rest[..came]);
                *rest = &rest[came..];
            }
            input => {
                let mut start = Vec::with_capacity(HEADER_LEN);
                fill(input, HEADER_LEN, &mut start).await?;
                header[..start.len()].copy_from_slice(&start);
                came += start.len();
            }
        }
        if came < HEADER_LEN {
            let detail = format!("{HEADER_LEN} header bytes expected, {came} came");
            return Err(Reader::new(WHAT, &[]).error(detail).into());
        }
        let checked = || Incoming::new(Kind::Response, newest, &header);
        let frame = match &input {
            Input::Stream(_) | Input::Pieces(_) => checked()?,
            Input::Local(_) => Incoming::unchecked(Kind::Response, newest, &header)?,
            Input::Whole(rest) => {
                let mut whole = checked()?;
                whole.update(rest)?;
                whole.finish()?;
                Incoming::unchecked(Kind::Response, newest, &header)?
            }
        };
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
            Input::Stream(_) | Input::Local(_) | Input::Pieces(_) => PIECE,
        }
    }

    /// The next so many bytes.
    ///
    /// # Errors
    /// Fewer that are left.
    pub async fn take(&mut self, count: usize) -> Result<&[u8]> {
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
            input => {
                fill(input, count, &mut self.buffer).await?;
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
    pub async fn array<const L: usize>(&mut self) -> Result<[u8; L]> {
        let mut out = [0; L];
        out.copy_from_slice(self.take(L).await?);
        Ok(out)
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub async fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>().await?[0])
    }

    /// The next 32-bit number.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub async fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array().await?))
    }

    /// Passes over the next bytes.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub async fn skip(&mut self, mut count: usize) -> Result<()> {
        while count > 0 {
            let piece = count.min(PIECE);
            self.take(piece).await?;
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
    pub async fn finish(mut self) -> Result<()> {
        match self.input {
            Input::Whole(rest) => self.frame.update(rest)?,
            mut input => loop {
                fill(&mut input, PIECE, &mut self.buffer).await?;
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
async fn fill(input: &mut Input<'_>, count: usize, into: &mut Vec<u8>) -> Result<()> {
    into.clear();
    let read = match input {
        Input::Whole(rest) => {
            let (bytes, after) = rest.split_at(count.min(rest.len()));
            into.extend_from_slice(bytes);
            *rest = after;
            return Ok(());
        }
        Input::Stream(reader) | Input::Local(reader) => reader.take(count as u64).read_to_end(into),
        Input::Pieces(pieces) => {
            poll_fn(|_| match pieces.take(count, into) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            return Ok(());
        }
    };
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
    use crate::search::pieces::at_once;
    use ciphervec_he_secret::params::ParamId;
    use ciphervec_he_secret::wire::{KeyId, Scheme};

    fn sample() -> Vec<u8> {
        let header = Header {
            scheme: Scheme::Ring,
            kind: Kind::Response,
            params: ParamId([7; 8]),
            key: KeyId([9; 8]),
        };
        header.frame(b"0123456789")
    }

    fn all(bytes: &[u8], check: impl AsyncFn(AnswerReader<'_>) -> Result<()>) -> [Result<()>; 3] {
        let (mut stream, pieces) = (bytes, Pieces::default());
        pieces.push(bytes);
        pieces.end();
        let inputs = [Input::Whole(bytes), Input::Stream(&mut stream), Input::Pieces(&pieces)];
        inputs.map(|input| {
            at_once(async { check(AnswerReader::new(input, 2).await?).await })
                .expect("nothing to wait for")
        })
    }

    #[test]
    fn parts_come_in_order_and_the_end_is_checked() {
        let read = async |mut reader: AnswerReader<'_>| {
            assert_eq!(reader.array::<3>().await?, *b"012");
            assert_eq!(reader.take(2).await?, b"34");
            reader.skip(3).await?;
            assert!(reader.expect_end().is_err() && reader.take(3).await.is_err());
            assert_eq!(reader.u8().await?, b'8');
            assert_eq!(reader.take(1).await?, b"9");
            reader.expect_end()?;
            reader.finish().await
        };
        assert!(all(&sample(), read).iter().all(Result::is_ok));
    }

    #[test]
    fn damage_and_other_lengths_are_found_wherever_reading_stopped() {
        let bytes = sample();
        for stop in [0, 1, 10] {
            let read = async |mut reader: AnswerReader<'_>| {
                let taken = reader.skip(stop).await;
                reader.finish().await?;
                taken
            };
            assert!(all(&bytes, read).iter().all(Result::is_ok));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(all(&damaged, read).iter().all(Result::is_err), "bit {bit}");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert!(all(&longer, read).iter().all(Result::is_err));
            for length in 0..bytes.len() {
                assert!(all(&bytes[..length], read).iter().all(Result::is_err), "{length}");
            }
        }
    }
}
