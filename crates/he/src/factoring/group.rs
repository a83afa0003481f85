//! Ciphertext group of a key: checks the tables and bytes that claim to belong to it.

use super::Ciphertexts;
use crate::additive::{Messages, Table};
use crate::biguint;
use crate::error::{Error, Result};
use crate::params::ParamId;
use crate::wire::{self, Header, KeyId, Kind, Reader, Scheme};
use ciphervec_arith::ArithError;
use ciphervec_arith::montgomery::{PowerModulus, Residues};
use crypto_bigint::BoxedUint;
use std::sync::Arc;

const WHAT: &str = "ciphertexts";

/// The group of units modulo `n^k`, and the names that its ciphertexts carry.
pub struct Group {
    pub(crate) scheme: Scheme,
    pub(crate) params: ParamId,
    pub(crate) key: KeyId,
    pub(crate) n: BoxedUint,
    pub(crate) modulus: Arc<PowerModulus>,
    /// The same `n` to the power 1, where invertibility is decided.
    single: Arc<PowerModulus>,
}

impl Group {
    /// The group modulo `n^digits` for a key whose public half reads `payload`.
    pub(crate) fn new(
        scheme: Scheme,
        description: &str,
        n: &BoxedUint,
        digits: usize,
        payload: &[u8],
    ) -> Result<Self> {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 additive-key-id");
        hasher.update(&[scheme as u8]).update(payload);
        let n = biguint::trimmed(n);
        Ok(Group {
            scheme,
            params: ParamId::of(description),
            key: KeyId::of_hash(hasher.finalize().as_bytes()),
            modulus: PowerModulus::new(n.as_words(), digits)?,
            single: PowerModulus::new(n.as_words(), 1)?,
            n,
        })
    }

    /// n.
    #[doc(hidden)]
    pub fn n(&self) -> &BoxedUint {
        &self.n
    }

    /// The power of n that ciphertexts are numbers modulo.
    #[doc(hidden)]
    pub fn modulus(&self) -> &Arc<PowerModulus> {
        &self.modulus
    }

    /// Bits of `n`.
    pub(crate) fn bits(&self) -> u32 {
        self.modulus.bits()
    }

    /// The header of an object of this key.
    #[doc(hidden)]
    pub fn header(&self, kind: Kind) -> Header {
        Header { scheme: self.scheme, kind, params: self.params, key: self.key }
    }

    /// Refuses a frame of another scheme, parameter set or key.
    #[doc(hidden)]
    pub fn check_header(&self, what: &'static str, header: &Header) -> Result<()> {
        if header.scheme != self.scheme {
            return Err(Error::malformed(
                what,
                format!("{} expected, {} came", self.scheme.as_str(), header.scheme.as_str()),
            ));
        }
        if header.key != self.key {
            return Err(Error::WrongKey { what, expected: self.key, actual: header.key });
        }
        if header.params != self.params {
            return Err(Error::Parameters {
                what,
                expected: self.params.to_string(),
                actual: header.params.to_string(),
            });
        }
        Ok(())
    }

    /// Residues of this group as ciphertexts of its key.
    #[doc(hidden)]
    pub fn table(&self, residues: Residues) -> Ciphertexts {
        Ciphertexts { key: self.key, residues }
    }

    /// Refuses ciphertexts of another key.
    #[doc(hidden)]
    pub fn check(&self, table: &Ciphertexts) -> Result<()> {
        if table.key == self.key {
            return Ok(());
        }
        Err(Error::WrongKey { what: WHAT, expected: self.key, actual: table.key })
    }

    /// Refuses two tables of other keys or of different shapes.
    pub(crate) fn check_pair(&self, left: &Ciphertexts, right: &Ciphertexts) -> Result<()> {
        self.check(left)?;
        self.check(right)?;
        let shape = |table: &Ciphertexts| (table.rows(), table.columns());
        if shape(left) == shape(right) {
            return Ok(());
        }
        Err(Error::Range {
            what: "the shapes of two tables",
            expected: format!("{} x {} twice", left.rows(), left.columns()),
            actual: format!("{} x {}", right.rows(), right.columns()),
        })
    }

    /// Refuses a number of messages other than `rows * columns`, an empty table, and messages of
    /// more than `bits` bits.
    #[doc(hidden)]
    pub fn check_messages(
        rows: usize,
        columns: usize,
        messages: &Messages,
        bits: u32,
    ) -> Result<()> {
        if rows == 0 || columns == 0 || rows.checked_mul(columns) != Some(messages.len()) {
            return Err(Error::Range {
                what: "the number of messages",
                expected: format!("{rows} x {columns} and at least 1"),
                actual: messages.len().to_string(),
            });
        }
        // No early exit: which message is too wide is nobody's business.
        let fit = (0..messages.len()).fold(true, |fit, at| fit & messages.fits(at, bits));
        if fit {
            return Ok(());
        }
        Err(Error::Range {
            what: "a message",
            expected: format!("below 2^{} in absolute value", bits - 1),
            actual: "a wider one".to_owned(),
        })
    }

    /// One element of the group, from its digits.
    pub(crate) fn element(&self, digits: &[u64]) -> Result<Residues> {
        Ok(Residues::from_digits(&self.modulus, 1, 1, digits)?)
    }

    /// Bytes of one ciphertext: its digits, each as long as `n`.
    fn element_bytes(&self) -> usize {
        self.modulus.digits() * self.digit_bytes()
    }

    fn digit_bytes(&self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// The ciphertexts, framed: rows, columns, then each element's digits, least significant first.
    pub(crate) fn write(&self, table: &Ciphertexts) -> Vec<u8> {
        let count = table.rows() * table.columns();
        let mut frame = Vec::with_capacity(wire::HEADER_LEN + 8 + count * self.element_bytes());
        frame.resize(wire::HEADER_LEN, 0);
        frame.extend((table.rows() as u32).to_le_bytes());
        frame.extend((table.columns() as u32).to_le_bytes());
        for digit in table.residues.to_digits().chunks_exact(self.modulus.words()) {
            biguint::write_bytes(digit, self.digit_bytes(), &mut frame);
        }
        self.header(Kind::Ciphertexts).seal(&mut frame);
        frame
    }

    /// Reads what [`Self::write`] wrote, and nothing that this key could not have made.
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<Ciphertexts> {
        let (header, payload) = wire::open(Kind::Ciphertexts, bytes)?;
        self.check_header(WHAT, &header)?;
        let mut reader = Reader::new(WHAT, payload);
        let (rows, columns) = (reader.u32()? as usize, reader.u32()? as usize);
        let count = rows.checked_mul(columns).filter(|&count| count > 0);
        let length = count.and_then(|count| count.checked_mul(self.element_bytes()));
        if length != Some(reader.remaining()) {
            return Err(reader.error(format!(
                "{rows} x {columns} ciphertexts of {} bytes promised, {} bytes came",
                self.element_bytes(),
                reader.remaining()
            )));
        }
        let body = reader.take(reader.remaining())?;
        let words = self.modulus.words();
        let mut digits = vec![0; body.len() / self.digit_bytes() * words];
        for (digit, bytes) in
            digits.chunks_exact_mut(words).zip(body.chunks_exact(self.digit_bytes()))
        {
            biguint::read_bytes(bytes, digit);
        }
        self.accept(rows, columns, &digits)
    }

    /// Ciphertexts with these digits, refusing any that is not a unit.
    pub(crate) fn accept(
        &self,
        rows: usize,
        columns: usize,
        digits: &[u64],
    ) -> Result<Ciphertexts> {
        let residues =
            Residues::from_digits(&self.modulus, rows, columns, digits).map_err(|error| {
                let detail = match error {
                    ArithError::NotReduced { index } => {
                        format!("ciphertext {index} has a digit that is not below the modulus")
                    }
                    other => other.to_string(),
                };
                Error::malformed(WHAT, detail)
            })?;
        // An element is a unit when its lowest digit is one modulo n: one product, one greatest
        // common divisor.
        let words = self.modulus.words();
        let lowest: Vec<u64> = digits
            .chunks_exact(self.modulus.element_words())
            .flat_map(|element| &element[..words])
            .copied()
            .collect();
        let units = Residues::from_digits(&self.single, rows, columns, &lowest)?;
        let product = biguint::from_words(&product_of_all(units).to_digits());
        if !biguint::is_one(&biguint::gcd(&self.n, &product)) {
            return Err(Error::malformed(WHAT, "a ciphertext shares a factor with the modulus"));
        }
        Ok(self.table(residues))
    }

    /// A single ciphertext as the plain integer below `n^k`, big-endian, as other libraries write
    /// it.
    ///
    /// # Errors
    /// [`Error::WrongKey`]; [`Error::Range`] unless the table is 1 x 1.
    pub fn to_integer(&self, table: &Ciphertexts) -> Result<Vec<u8>> {
        self.check(table)?;
        if (table.rows(), table.columns()) != (1, 1) {
            return Err(Error::Range {
                what: "the number of ciphertexts",
                expected: "1".to_owned(),
                actual: format!("{} x {}", table.rows(), table.columns()),
            });
        }
        let value = biguint::joined(&table.residues.to_digits(), &self.n, self.modulus.words());
        let width = (self.bits() as usize * self.modulus.digits()).div_ceil(8);
        let mut bytes = biguint::to_bytes(&value, width);
        bytes.reverse();
        Ok(bytes)
    }

    /// Reads one ciphertext from the plain integer below `n^k`, big-endian.
    ///
    /// # Errors
    /// [`Error::Malformed`] for an integer of `n^k` or more, or one that shares a factor with `n`.
    pub fn from_integer(&self, bytes: &[u8]) -> Result<Ciphertexts> {
        let width = (self.bits() as usize * self.modulus.digits()).div_ceil(8);
        let start = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
        let mut bytes = bytes[start..].to_vec();
        bytes.reverse();
        let value = biguint::from_bytes(&bytes);
        let limit = biguint::raised(&self.n, self.modulus.digits() as u32);
        if bytes.len() > width || value >= limit {
            return Err(Error::malformed(WHAT, "the integer is not below the modulus"));
        }
        let (count, words) = (self.modulus.digits(), self.modulus.words());
        self.accept(1, 1, &biguint::digits(&value, &self.n, count, words))
    }
}

/// The product of all elements, as a single one.
pub fn product_of_all(residues: Residues) -> Residues {
    let mut row = residues.product();
    while row.columns() > 1 {
        let half = row.columns() / 2;
        let mut next = row.columns_in(0..half);
        next.mul_assign(&row.columns_in(half..2 * half));
        if row.columns() % 2 == 1 {
            let mut first = next.columns_in(0..1);
            first.mul_assign(&row.columns_in(2 * half..2 * half + 1));
            next = Residues::beside(&[&first, &next.columns_in(1..half)]);
        }
        row = next;
    }
    row
}
