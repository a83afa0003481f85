//! Reads a frame piece by piece as its bytes come.
//!
//! For frames that are too large to lie in memory beside what is read from them. A piece counts once
//! the end of the frame has confirmed its checksum, so whoever reads keeps nothing before
//! [`FrameReader::finish`].

use super::{HEADER_LEN, Header, Incoming, Kind, Reader, VERSION};
use crate::error::{Error, Result};
use std::io::{ErrorKind, Read};

/// Where a payload comes from.
pub(crate) trait Source {
    /// The next `count` bytes, which are the format's own number and no stranger's: they are held in
    /// memory until the next ones are asked for.
    fn piece(&mut self, count: usize) -> Result<Reader<'_>>;

    /// Bytes that are still to come.
    fn left(&self) -> u64;
}

impl Source for Reader<'_> {
    fn piece(&mut self, count: usize) -> Result<Reader<'_>> {
        let piece = self.take(count)?;
        Ok(self.like(piece))
    }

    fn left(&self) -> u64 {
        self.remaining() as u64
    }
}

/// A frame that is read from a file or a connection.
pub(crate) struct FrameReader<'a> {
    from: &'a mut dyn Read,
    incoming: Incoming,
    piece: Vec<u8>,
}

impl<'a> FrameReader<'a> {
    /// Reads the header of a frame that must hold `kind`.
    pub fn new(kind: Kind, from: &'a mut dyn Read) -> Result<Self> {
        let mut header = [0; HEADER_LEN];
        let came = fill(from, &mut header)?;
        if came < HEADER_LEN {
            let detail = format!("{HEADER_LEN} header bytes expected, {came} came");
            return Err(Error::malformed(kind.as_str(), detail));
        }
        let incoming = Incoming::new(kind, VERSION, &header)?;
        Ok(FrameReader { from, incoming, piece: Vec::new() })
    }

    /// What it says.
    pub fn header(&self) -> &Header {
        self.incoming.header()
    }

    /// The end of the frame: what was read counts.
    pub fn finish(self) -> Result<()> {
        self.incoming.finish()
    }
}

impl Source for FrameReader<'_> {
    fn piece(&mut self, count: usize) -> Result<Reader<'_>> {
        let what = self.incoming.header().kind.as_str();
        expect(what, count, self.left())?;
        self.piece.resize(count, 0);
        let came = fill(self.from, &mut self.piece)?;
        if came < count {
            return Err(self.incoming.cut_short(came));
        }
        self.incoming.update(&self.piece)?;
        Ok(Reader::new(what, &self.piece))
    }

    fn left(&self) -> u64 {
        self.incoming.left()
    }
}

/// A frame within the payload of another.
pub(crate) struct InnerFrame<'a> {
    outer: &'a mut dyn Source,
    incoming: Incoming,
}

impl<'a> InnerFrame<'a> {
    /// Reads the header of a frame that must hold `kind`.
    pub fn new(kind: Kind, outer: &'a mut dyn Source) -> Result<Self> {
        let header = outer.piece(HEADER_LEN)?.array()?;
        let incoming = Incoming::new(kind, VERSION, &header)?;
        expect(kind.as_str(), incoming.left(), outer.left())?;
        Ok(InnerFrame { outer, incoming })
    }

    /// What it says.
    pub fn header(&self) -> &Header {
        self.incoming.header()
    }

    /// The end of the frame.
    pub fn finish(self) -> Result<()> {
        self.incoming.finish()
    }
}

impl Source for InnerFrame<'_> {
    fn piece(&mut self, count: usize) -> Result<Reader<'_>> {
        expect(self.header().kind.as_str(), count, self.left())?;
        let piece = self.outer.piece(count)?;
        self.incoming.update(piece.rest())?;
        Ok(piece)
    }

    fn left(&self) -> u64 {
        self.incoming.left()
    }
}

fn expect(what: &'static str, count: impl TryInto<u64>, left: u64) -> Result<()> {
    let count = count.try_into().unwrap_or(u64::MAX);
    if count <= left {
        return Ok(());
    }
    Err(Error::malformed(what, format!("{count} bytes expected, {left} left")))
}

/// How many bytes came before the end.
fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> Result<usize> {
    let mut came = 0;
    while came < buffer.len() {
        match from.read(&mut buffer[came..]) {
            Ok(0) => break,
            Ok(count) => came += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Error::Stream { doing: "reading", detail: error.to_string() });
            }
        }
    }
    Ok(came)
}
