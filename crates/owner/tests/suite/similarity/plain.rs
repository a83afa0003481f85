//! A scheme that hides nothing: residues modulo 2^(64w) − c, wrapped to a signed range as in the real ones, and a
//! number that tells whether noise was added. It makes every integer of a pipeline visible, overflow included.

use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages, Table};
use ciphervec_he_secret::params::ParamId;
use ciphervec_he_secret::wire::{self, Header, KeyId, Kind, Reader, Scheme};
use ciphervec_he_secret::{Error, Result};
use core::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// 2^(64w) − 189 is odd for every w.
const C: u64 = 189;
static NOISE: AtomicU64 = AtomicU64::new(1);

#[derive(Clone, Debug, PartialEq)]
pub struct Cipher {
    /// The message modulo n, canonical.
    pub value: Vec<u64>,
    /// Zero for a ciphertext that nobody has re-randomised.
    pub noise: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlainTable {
    pub rows: usize,
    pub columns: usize,
    pub ciphers: Vec<Cipher>,
    pub key: KeyId,
}

pub struct Plain {
    words: usize,
    message_bits: u32,
    key: KeyId,
}

impl Plain {
    pub fn new(message_bits: u32) -> Self {
        Plain {
            words: (message_bits as usize + 1).div_ceil(64),
            message_bits,
            key: KeyId(*b"plainkey"),
        }
    }

    pub fn with_key(message_bits: u32, key: [u8; 8]) -> Self {
        Plain { key: KeyId(key), ..Plain::new(message_bits) }
    }

    /// The words of `row`, modulo n.
    fn residue(&self, row: &[u64]) -> Vec<u64> {
        let negative = row[row.len() - 1] >> 63 == 1;
        let mut magnitude = row.to_vec();
        if negative {
            let mut carry = true;
            for word in &mut magnitude {
                (*word, carry) = (!*word).overflowing_add(u64::from(carry));
            }
        }
        let value = self.reduce(&magnitude);
        if negative { self.negative(&value) } else { value }
    }

    fn reduce(&self, words: &[u64]) -> Vec<u64> {
        let mut value = words.to_vec();
        while value.len() > self.words {
            // 2^(64w) = c.
            let high = value.split_off(self.words);
            let mut carry = 0u128;
            for at in 0.. {
                if at >= value.len() && at >= high.len() && carry == 0 {
                    break;
                }
                if at == value.len() {
                    value.push(0);
                }
                let sum = u128::from(value[at])
                    + u128::from(high.get(at).copied().unwrap_or(0)) * u128::from(C)
                    + carry;
                value[at] = sum as u64;
                carry = sum >> 64;
            }
            while value.len() > self.words && value.last() == Some(&0) {
                value.pop();
            }
        }
        value.resize(self.words, 0);
        // n itself is all ones but for the lowest word.
        let lowest = 0u64.wrapping_sub(C);
        if value[1..].iter().all(|&word| word == u64::MAX) && value[0] >= lowest {
            value[1..].fill(0);
            value[0] -= lowest;
        }
        value
    }

    fn negative(&self, value: &[u64]) -> Vec<u64> {
        if value.iter().all(|&word| word == 0) {
            return value.to_vec();
        }
        let mut borrow = false;
        let words = value.iter().enumerate().map(|(at, &word)| {
            let of = if at == 0 { 0u64.wrapping_sub(C) } else { u64::MAX };
            let (difference, under) = of.overflowing_sub(word);
            let (difference, again) = difference.overflowing_sub(u64::from(borrow));
            borrow = under | again;
            difference
        });
        words.collect()
    }

    fn sum(&self, left: &[u64], right: &[u64]) -> Vec<u64> {
        let mut carry = 0u128;
        let mut words: Vec<u64> = left
            .iter()
            .zip(right)
            .map(|(&a, &b)| {
                let sum = u128::from(a) + u128::from(b) + carry;
                carry = sum >> 64;
                sum as u64
            })
            .collect();
        words.push(carry as u64);
        self.reduce(&words)
    }

    fn product(&self, left: &[u64], right: &[u64]) -> Vec<u64> {
        let mut words = vec![0u64; left.len() + right.len()];
        for (i, &a) in left.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &b) in right.iter().enumerate() {
                let sum = u128::from(a) * u128::from(b) + u128::from(words[i + j]) + carry;
                words[i + j] = sum as u64;
                carry = sum >> 64;
            }
            words[i + right.len()] = carry as u64;
        }
        self.reduce(&words)
    }

    fn scaled(&self, cipher: &Cipher, factor: &[u64]) -> Cipher {
        Cipher {
            value: self.product(&cipher.value, &self.residue(factor)),
            noise: cipher.noise.wrapping_mul(factor[0]),
        }
    }

    fn expect(&self, table: &PlainTable) -> Result<()> {
        if table.key == self.key {
            return Ok(());
        }
        Err(Error::WrongKey { what: "ciphertexts", expected: self.key, actual: table.key })
    }
}

fn range(what: &'static str, expected: usize, actual: usize) -> Error {
    Error::Range { what, expected: expected.to_string(), actual: actual.to_string() }
}

fn fresh() -> u64 {
    // Odd, and spread over all bits, so that sums of a few do not vanish.
    NOISE.fetch_add(2, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Table for PlainTable {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn transposed(&self) -> Self {
        let ciphers = (0..self.columns)
            .flat_map(|column| (0..self.rows).map(move |row| row * self.columns + column))
            .map(|at| self.ciphers[at].clone())
            .collect();
        PlainTable { rows: self.columns, columns: self.rows, ciphers, key: self.key }
    }

    fn beside(tables: &[&Self]) -> Result<Self> {
        let first = tables.first().ok_or_else(|| range("tables", 1, 0))?;
        if let Some(other) = tables.iter().find(|table| table.rows != first.rows) {
            return Err(range("rows", first.rows, other.rows));
        }
        let ciphers = (0..first.rows)
            .flat_map(|row| {
                tables.iter().flat_map(move |table| {
                    table.ciphers[row * table.columns..(row + 1) * table.columns].iter().cloned()
                })
            })
            .collect();
        let columns = tables.iter().map(|table| table.columns).sum();
        Ok(PlainTable { rows: first.rows, columns, ciphers, key: first.key })
    }

    fn columns_in(&self, columns: Range<usize>) -> Result<Self> {
        if columns.end > self.columns {
            return Err(range("columns", self.columns, columns.end));
        }
        let ciphers = (0..self.rows)
            .flat_map(|row| columns.clone().map(move |column| row * self.columns + column))
            .map(|at| self.ciphers[at].clone())
            .collect();
        Ok(PlainTable { rows: self.rows, columns: columns.len(), ciphers, key: self.key })
    }
}

impl Evaluate for Plain {
    type Table = PlainTable;

    fn key_id(&self) -> KeyId {
        self.key
    }

    fn message_bits(&self) -> u32 {
        self.message_bits
    }

    fn encrypt(&self, rows: usize, columns: usize, messages: &Messages) -> Result<PlainTable> {
        if messages.len() != rows * columns {
            return Err(range("messages", rows * columns, messages.len()));
        }
        let mut ciphers = Vec::with_capacity(messages.len());
        for index in 0..messages.len() {
            if !messages.fits(index, self.message_bits) {
                return Err(range("message bits", self.message_bits as usize, 0));
            }
            let value = self.residue(messages.row(index));
            ciphers.push(Cipher { value, noise: fresh() });
        }
        Ok(PlainTable { rows, columns, ciphers, key: self.key })
    }

    fn rerandomise(&self, table: &mut PlainTable) -> Result<()> {
        self.expect(table)?;
        for cipher in &mut table.ciphers {
            cipher.noise = cipher.noise.wrapping_add(fresh());
        }
        Ok(())
    }

    fn add(&self, left: &PlainTable, right: &PlainTable) -> Result<PlainTable> {
        self.expect(left)?;
        self.expect(right)?;
        let ciphers = left
            .ciphers
            .iter()
            .zip(&right.ciphers)
            .map(|(a, b)| Cipher {
                value: self.sum(&a.value, &b.value),
                noise: a.noise.wrapping_add(b.noise),
            })
            .collect();
        Ok(PlainTable { ciphers, ..left.clone() })
    }

    fn negate(&self, table: &PlainTable) -> Result<PlainTable> {
        self.expect(table)?;
        let ciphers = table
            .ciphers
            .iter()
            .map(|a| Cipher { value: self.negative(&a.value), noise: a.noise.wrapping_neg() })
            .collect();
        Ok(PlainTable { ciphers, ..table.clone() })
    }

    fn add_plain(&self, table: &PlainTable, messages: &Messages) -> Result<PlainTable> {
        self.expect(table)?;
        if messages.len() != table.ciphers.len() {
            return Err(range("messages", table.ciphers.len(), messages.len()));
        }
        let mut sum = table.clone();
        for (index, cipher) in sum.ciphers.iter_mut().enumerate() {
            if !messages.fits(index, self.message_bits) {
                return Err(range("message bits", self.message_bits as usize, 0));
            }
            cipher.value = self.sum(&cipher.value, &self.residue(messages.row(index)));
        }
        Ok(sum)
    }

    fn multiply_plain(&self, table: &PlainTable, factors: &Messages) -> Result<PlainTable> {
        self.expect(table)?;
        if factors.len() != table.ciphers.len() {
            return Err(range("factors", table.ciphers.len(), factors.len()));
        }
        let mut product = table.clone();
        for (index, cipher) in product.ciphers.iter_mut().enumerate() {
            *cipher = self.scaled(cipher, factors.row(index));
        }
        Ok(product)
    }

    fn weighted_sum_vartime(&self, table: &PlainTable, weights: &[i64]) -> Result<PlainTable> {
        self.expect(table)?;
        if weights.len() != table.rows {
            return Err(range("weights", table.rows, weights.len()));
        }
        let mut sums = vec![Cipher { value: vec![0; self.words], noise: 0 }; table.columns];
        for (row, &weight) in weights.iter().enumerate() {
            for (column, sum) in sums.iter_mut().enumerate() {
                let part =
                    self.scaled(&table.ciphers[row * table.columns + column], &[weight as u64]);
                sum.value = self.sum(&sum.value, &part.value);
                sum.noise = sum.noise.wrapping_add(part.noise);
            }
        }
        Ok(PlainTable { rows: 1, columns: table.columns, ciphers: sums, key: self.key })
    }

    fn weighted_sum_along_vartime(
        &self,
        table: &PlainTable,
        weights: &[i64],
    ) -> Result<PlainTable> {
        if table.rows != 1 {
            return Err(range("rows", 1, table.rows));
        }
        self.weighted_sum_vartime(&table.transposed(), weights)
    }

    fn table_to_bytes(&self, table: &PlainTable) -> Vec<u8> {
        let mut payload = Vec::new();
        payload.extend((table.rows as u32).to_le_bytes());
        payload.extend((table.columns as u32).to_le_bytes());
        for cipher in &table.ciphers {
            cipher.value.iter().for_each(|word| payload.extend(word.to_le_bytes()));
            payload.extend(cipher.noise.to_le_bytes());
        }
        let header = Header {
            scheme: Scheme::Plain,
            kind: Kind::Ciphertexts,
            params: ParamId::of("a scheme that hides nothing"),
            key: self.key,
        };
        header.frame(&payload)
    }

    fn table_from_bytes(&self, bytes: &[u8]) -> Result<PlainTable> {
        let (header, payload) = wire::open(Kind::Ciphertexts, bytes)?;
        let mut reader = Reader::new("ciphertexts", payload);
        if header.key != self.key {
            return Err(Error::WrongKey {
                what: "ciphertexts",
                expected: self.key,
                actual: header.key,
            });
        }
        let (rows, columns) = (reader.u32()? as usize, reader.u32()? as usize);
        let expected =
            rows.checked_mul(columns).and_then(|count| count.checked_mul(8 * (self.words + 1)));
        if rows == 0 || columns == 0 || expected != Some(reader.remaining()) {
            return Err(reader.error("the table has another size"));
        }
        let mut ciphers = Vec::with_capacity(rows * columns);
        for _ in 0..rows * columns {
            let value = (0..self.words).map(|_| reader.u64()).collect::<Result<Vec<_>>>()?;
            if self.reduce(&value) != value {
                return Err(reader.error("a residue is not canonical"));
            }
            ciphers.push(Cipher { value, noise: reader.u64()? });
        }
        Ok(PlainTable { rows, columns, ciphers, key: self.key })
    }
}

impl Decrypt for Plain {
    type Public = Plain;

    fn public(&self) -> &Plain {
        self
    }

    fn encrypt(&self, rows: usize, columns: usize, messages: &Messages) -> Result<PlainTable> {
        Evaluate::encrypt(self, rows, columns, messages)
    }

    fn decrypt(&self, table: &PlainTable, bits: u32) -> Result<Messages> {
        self.expect(table)?;
        let mut messages = Messages::zeros(self.words + 1, table.ciphers.len());
        for (index, cipher) in table.ciphers.iter().enumerate() {
            let row = messages.row_mut(index);
            // The upper half of the residues is negative.
            if cipher.value[self.words - 1] >> 63 == 1 {
                let magnitude = self.negative(&cipher.value);
                let mut carry = true;
                for (at, word) in row.iter_mut().enumerate() {
                    let of = !magnitude.get(at).copied().unwrap_or(0);
                    (*word, carry) = of.overflowing_add(u64::from(carry));
                }
            } else {
                row[..self.words].copy_from_slice(&cipher.value);
            }
            if !messages.fits(index, bits) {
                return Err(Error::Bound);
            }
        }
        Ok(messages)
    }
}
