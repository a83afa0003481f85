//! Reads numbers and arrays from bytes, never past their end.

use crate::error::{Error, Result};

/// A cursor that never reads past the end and knows what it reads.
pub struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, naming `what` in errors.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Reader { what, rest: bytes }
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] if fewer are left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(count) else {
            return Err(Error::malformed(
                self.what,
                format!("{count} bytes expected, {} left", self.rest.len()),
            ));
        };
        self.rest = rest;
        Ok(head)
    }

    /// The next `L` bytes as an array.
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

    /// The next little-endian 32-bit number.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next little-endian 64-bit number.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The next little-endian double; NaN and infinities are refused.
    ///
    /// # Errors
    /// As [`Self::take`], or a number that is not finite.
    pub fn f64(&mut self) -> Result<f64> {
        let value = f64::from_bits(self.u64()?);
        if value.is_finite() { Ok(value) } else { Err(self.error("a finite number expected")) }
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// What is being read.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// The bytes not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A reader of other bytes of the same object.
    pub(super) fn like<'b>(&self, bytes: &'b [u8]) -> Reader<'b> {
        Reader { what: self.what, rest: bytes }
    }

    /// An error about the object being read.
    pub fn error(&self, detail: impl Into<String>) -> Error {
        Error::malformed(self.what, detail)
    }

    /// Refuses trailing bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] if any byte is left.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.error(format!("{} bytes too many", self.rest.len())))
        }
    }
}
