//! Reader of untrusted bytes, and the error with an offset that it returns.
//!
//! Every parser of this crate reads through [`Reader`]: a length is compared with the bytes that
//! are really there before anything is allocated for it, and [`Reader::finish`] rejects bytes left
//! over.

/// Why bytes could not be read. Each case says what was being read and at which byte offset.
#[non_exhaustive]
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end too early.
    #[error("{what}: {expected} bytes expected at offset {offset}, {actual} are left (truncated?)")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Byte offset of the field.
        offset: u64,
        /// Bytes the field needs.
        expected: u64,
        /// Bytes that are left.
        actual: u64,
    },
    /// Bytes follow the end of the object.
    #[error("{what}: ends at offset {offset}, but {extra} more bytes follow")]
    Trailing {
        /// What was being read.
        what: &'static str,
        /// Where the object ends.
        offset: u64,
        /// Bytes beyond the end.
        extra: u64,
    },
    /// The first bytes are those of another kind of object.
    #[error(
        "{what}: starts with {actual}, expected {expected}; this is another kind of file or message"
    )]
    Magic {
        /// What was being read.
        what: &'static str,
        /// The magic bytes of this kind of object.
        expected: String,
        /// The bytes found.
        actual: String,
    },
    /// Written by a later release.
    #[error(
        "{what}: format version {actual}, this release reads up to {newest}; upgrade ciphervec"
    )]
    Version {
        /// What was being read.
        what: &'static str,
        /// Newest version this release reads.
        newest: u32,
        /// The version found.
        actual: u32,
    },
    /// A field holds a value that it must not hold.
    #[error("{what}: {field} at offset {offset} is {actual}, expected {expected}")]
    Field {
        /// What was being read.
        what: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Byte offset of the field.
        offset: u64,
        /// What the field may hold.
        expected: String,
        /// What it holds.
        actual: String,
    },
}

impl DecodeError {
    /// Byte offset at which reading failed; 0 for the magic, 8 for the version.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Truncated { offset, .. }
            | Self::Trailing { offset, .. }
            | Self::Field { offset, .. } => *offset,
            Self::Magic { .. } => 0,
            Self::Version { .. } => 8,
        }
    }
}

/// A cursor over untrusted bytes; integers are little-endian.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    what: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, naming the object `what` in errors.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, bytes, at: 0 }
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.at as u64
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when fewer are left.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        self.need(length as u64)?;
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    /// Checks that `count` items of at least `size` bytes are there, before anything is allocated
    /// for them.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when they are not.
    pub fn need_items(&self, count: usize, size: usize) -> Result<(), DecodeError> {
        self.need((count as u64).saturating_mul(size as u64))
    }

    fn need(&self, length: u64) -> Result<(), DecodeError> {
        if length > self.remaining() as u64 {
            return Err(DecodeError::Truncated {
                what: self.what,
                offset: self.offset(),
                expected: length,
                actual: self.remaining() as u64,
            });
        }
        Ok(())
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] at the end.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, little-endian.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when fewer are left.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when fewer are left.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes, little-endian.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when fewer are left.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The header every object starts with: 8 bytes of magic, then the format version (u32), which
    /// must be between 1 and `newest`.
    ///
    /// # Errors
    /// [`DecodeError::Magic`], [`DecodeError::Version`], [`DecodeError::Truncated`].
    pub fn header(&mut self, magic: &[u8; 8], newest: u32) -> Result<u32, DecodeError> {
        let found = self.array::<8>()?;
        if &found != magic {
            return Err(DecodeError::Magic {
                what: self.what,
                expected: magic.escape_ascii().to_string(),
                actual: found.escape_ascii().to_string(),
            });
        }
        let version = self.u32()?;
        if version > newest {
            return Err(DecodeError::Version { what: self.what, newest, actual: version });
        }
        if version == 0 {
            return Err(self.field("format version", 8, format!("1..={newest}"), 0));
        }
        Ok(version)
    }

    /// An error about the field that starts at `offset`.
    pub fn field(
        &self,
        field: &'static str,
        offset: u64,
        expected: impl ToString,
        actual: impl ToString,
    ) -> DecodeError {
        DecodeError::Field {
            what: self.what,
            field,
            offset,
            expected: expected.to_string(),
            actual: actual.to_string(),
        }
    }

    /// Ends reading.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`] when bytes are left.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.remaining() != 0 {
            return Err(DecodeError::Trailing {
                what: self.what,
                offset: self.offset(),
                extra: self.remaining() as u64,
            });
        }
        Ok(())
    }
}

/// Lower-case hexadecimal, for names and messages.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_declared_counts_are_refused_without_allocating() {
        let reader = Reader::new("test", &[0; 16]);
        let error = reader.need_items(usize::MAX, 1 << 40);
        assert_eq!(
            error,
            Err(DecodeError::Truncated { what: "test", offset: 0, expected: u64::MAX, actual: 16 })
        );
    }

    #[test]
    fn header_tells_another_kind_from_a_later_version() {
        let mut bytes = b"CVTESTXX".to_vec();
        bytes.extend(2u32.to_le_bytes());
        let mut reader = Reader::new("test", &bytes);
        assert!(matches!(
            reader.header(b"CVTESTXX", 1),
            Err(DecodeError::Version { newest: 1, actual: 2, .. })
        ));
        let mut reader = Reader::new("test", &bytes);
        assert!(matches!(reader.header(b"CVOTHERX", 1), Err(DecodeError::Magic { .. })));
        let mut reader = Reader::new("test", &bytes);
        assert_eq!(reader.header(b"CVTESTXX", 2), Ok(2));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn hex_is_lower_case_and_two_digits_a_byte() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa5, 0xff]), "000fa5ff");
    }
}
