//! Encrypts and computes on tables of ciphertexts, for every public key of a factoring scheme.

use super::{Ciphertexts, Group};
use crate::additive::{Evaluate, Messages, Table, check_factors};
use crate::biguint;
use crate::error::{Error, Result};
use crate::wire::KeyId;
use ciphervec_arith::ArithError;
use ciphervec_arith::montgomery::Residues;
use zeroize::Zeroizing;

/// What can draw noise: a public key, or faster its secret one.
pub trait NoiseSource: Send + Sync {
    /// Where its ciphertexts live.
    fn group(&self) -> &Group;

    /// Fresh encryptions of zero.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Fault`] from a secret key whose result failed its check.
    fn noise(&self, rows: usize, columns: usize) -> Result<Residues>;
}

/// What a public key of this family brings of its own; the rest of [`Evaluate`] follows from it.
pub trait FactoringKey: NoiseSource {
    /// As [`Evaluate::message_bits`].
    fn message_bits(&self) -> u32;

    /// The generator to the power of each message: ciphertexts without noise.
    ///
    /// # Errors
    /// [`Error::Range`] for a wrong count or a message of [`Self::message_bits`] bits or more.
    fn encode(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Residues>;
}

impl<K: FactoringKey> Evaluate for K {
    type Table = Ciphertexts;

    fn key_id(&self) -> KeyId {
        self.group().key
    }

    fn message_bits(&self) -> u32 {
        FactoringKey::message_bits(self)
    }

    fn encrypt(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Ciphertexts> {
        let mut residues = self.encode(rows, columns, messages)?;
        residues.mul_assign(&self.noise(rows, columns)?);
        Ok(self.group().table(residues))
    }

    fn rerandomise(&self, table: &mut Ciphertexts) -> Result<()> {
        self.group().check(table)?;
        table.residues.mul_assign(&self.noise(table.rows(), table.columns())?);
        Ok(())
    }

    fn add(&self, left: &Ciphertexts, right: &Ciphertexts) -> Result<Ciphertexts> {
        self.group().check_pair(left, right)?;
        let mut sum = left.clone();
        sum.residues.mul_assign(&right.residues);
        Ok(sum)
    }

    fn negate(&self, table: &Ciphertexts) -> Result<Ciphertexts> {
        self.group().check(table)?;
        Ok(self.group().table(inverse(&table.residues)?))
    }

    fn add_plain(&self, table: &Ciphertexts, messages: &Messages) -> Result<Ciphertexts> {
        self.group().check(table)?;
        let mut residues = self.encode(table.rows(), table.columns(), messages)?;
        residues.mul_assign(&table.residues);
        Ok(self.group().table(residues))
    }

    fn multiply_plain(&self, table: &Ciphertexts, factors: &Messages) -> Result<Ciphertexts> {
        let group = self.group();
        group.check(table)?;
        let width = factors.width();
        Group::check_messages(table.rows(), table.columns(), factors, 64 * width as u32 + 1)?;
        // Both a ciphertext and its inverse are at hand for every factor, so that signs do not
        // show.
        let size = group.modulus.element_words();
        let mut bases = table.residues.to_digits();
        let inverses = inverse(&table.residues)?.to_digits();
        let mut exponents = Zeroizing::new(vec![0; factors.len() * width]);
        for (at, exponent) in exponents.chunks_exact_mut(width).enumerate() {
            let sign = magnitude(factors.row(at), exponent);
            let element = at * size..(at + 1) * size;
            for (base, inverse) in bases[element.clone()].iter_mut().zip(&inverses[element]) {
                *base ^= sign & (*base ^ inverse);
            }
        }
        let bases = Residues::from_digits(&group.modulus, table.rows(), table.columns(), &bases)?;
        Ok(group.table(bases.pow_each(&exponents)))
    }

    fn weighted_sum_vartime(&self, table: &Ciphertexts, weights: &[i64]) -> Result<Ciphertexts> {
        self.group().check(table)?;
        check_weights("rows", table.rows(), weights)?;
        let sum = table.residues.multi_exp_vartime(weights).map_err(not_invertible)?;
        Ok(self.group().table(sum))
    }

    fn weighted_sum_along_vartime(
        &self,
        table: &Ciphertexts,
        weights: &[i64],
    ) -> Result<Ciphertexts> {
        self.group().check(table)?;
        check_one_row(table)?;
        check_weights("columns", table.columns(), weights)?;
        let sum = table.residues.multi_exp_along_vartime(weights).map_err(not_invertible)?;
        Ok(self.group().table(sum))
    }

    fn weighted_sum_wide_vartime(
        &self,
        table: &Ciphertexts,
        factors: &Messages,
    ) -> Result<Ciphertexts> {
        self.group().check(table)?;
        check_factors("rows", table.rows(), factors)?;
        let (exponents, negative) = magnitudes(factors);
        let sum = table.residues.multi_pow_vartime(&exponents, &negative);
        Ok(self.group().table(sum.map_err(not_invertible)?))
    }

    fn weighted_sum_wide_along_vartime(
        &self,
        table: &Ciphertexts,
        factors: &Messages,
    ) -> Result<Ciphertexts> {
        self.group().check(table)?;
        check_one_row(table)?;
        check_factors("columns", table.columns(), factors)?;
        let (exponents, negative) = magnitudes(factors);
        let sum = table.residues.multi_pow_along_vartime(&exponents, &negative);
        Ok(self.group().table(sum.map_err(not_invertible)?))
    }

    fn table_to_bytes(&self, table: &Ciphertexts) -> Vec<u8> {
        self.group().write(table)
    }

    fn table_from_bytes(&self, bytes: &[u8]) -> Result<Ciphertexts> {
        self.group().read(bytes)
    }
}

fn check_one_row(table: &Ciphertexts) -> Result<()> {
    if table.rows() == 1 {
        return Ok(());
    }
    Err(Error::Range {
        what: "the number of rows",
        expected: "1".to_owned(),
        actual: table.rows().to_string(),
    })
}

fn check_weights(what: &str, expected: usize, weights: &[i64]) -> Result<()> {
    if weights.len() == expected {
        return Ok(());
    }
    Err(Error::Range {
        what: "the number of weights",
        expected: format!("{expected}, that of the {what}"),
        actual: weights.len().to_string(),
    })
}

fn inverse(residues: &Residues) -> Result<Residues> {
    residues.inverse_vartime().map_err(not_invertible)
}

fn not_invertible(error: ArithError) -> Error {
    match error {
        ArithError::NotInvertible { .. } => {
            Error::malformed("ciphertexts", "a ciphertext shares a factor with the modulus")
        }
        other => other.into(),
    }
}

/// The absolute values of the factors, [`Messages::width`] words each, and which of them are
/// negative.
fn magnitudes(factors: &Messages) -> (Vec<u64>, Vec<bool>) {
    let mut absolute = vec![0; factors.len() * factors.width()];
    let signs = absolute.chunks_exact_mut(factors.width()).enumerate();
    let negative = signs.map(|(at, out)| magnitude(factors.row(at), out) != 0).collect();
    (absolute, negative)
}

/// Writes `|value|` of a two's complement number, padded with zeros; all ones if it is negative,
/// zero if not.
pub(crate) fn magnitude(value: &[u64], out: &mut [u64]) -> u64 {
    let sign = 0u64.wrapping_sub(value.last().map_or(0, |top| top >> 63));
    let mut carry = sign & 1;
    out.fill(0);
    for (out, &word) in out.iter_mut().zip(value) {
        let (sum, more) = (word ^ sign).overflowing_add(carry);
        (*out, carry) = (sum, u64::from(more));
    }
    sign
}

/// The residue of a two's complement number modulo `modulus`, which exceeds its absolute value, in
/// as many words.
pub fn residue(value: &[u64], modulus: &[u64]) -> Zeroizing<Vec<u64>> {
    let mut absolute = Zeroizing::new(vec![0; modulus.len()]);
    let sign = magnitude(value, &mut absolute);
    let zero = vec![0; modulus.len()];
    let negative = Zeroizing::new(biguint::difference_words(&zero, &absolute, modulus));
    for (word, negative) in absolute.iter_mut().zip(negative.iter()) {
        *word ^= sign & (*word ^ negative);
    }
    absolute
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_of_signed_numbers() {
        let modulus = [101, 0, 1];
        for (value, expected) in [(0i64, [0, 0, 0]), (7, [7, 0, 0]), (-7, [94, 0, 1])] {
            assert_eq!(*residue(&[value as u64], &modulus), expected);
        }
        assert_eq!(*residue(&[-102i64 as u64], &modulus), [u64::MAX, u64::MAX, 0]);
        let wide = [5u64, 1, 0, 0];
        assert_eq!(*residue(&wide, &modulus), [5, 1, 0]);
        let mut out = [9; 2];
        assert_eq!(magnitude(&[i64::MIN as u64], &mut out), u64::MAX);
        assert_eq!(out, [1 << 63, 0]);
    }
}
