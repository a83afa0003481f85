//! Traits of the additively homomorphic schemes: tables of encrypted signed integers, which anyone
//! who holds the public key sums.
//!
//! Paillier, Damgård–Jurik, Okamoto–Uchiyama and exponential ElGamal implement the traits here;
//! what a vector or a score is lives one level up. A table has rows and columns because that is how
//! the schemes compute: [`Evaluate::weighted_sum_vartime`] gives every row one weight and works on
//! all columns side by side.

mod messages;

pub use crate::params::SecurityStatement;
pub use messages::Messages;

use crate::error::{Error, Result};
use crate::wire::KeyId;

/// A table of ciphertexts in the form that a scheme computes on.
pub trait Table: Clone + Send + Sync {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Number of columns.
    fn columns(&self) -> usize;

    /// The table with rows and columns exchanged.
    fn transposed(&self) -> Self;

    /// Tables with the same number of rows and of one key, side by side.
    ///
    /// # Errors
    /// [`crate::Error::Range`] when the rows differ or nothing is given;
    /// [`crate::Error::WrongKey`].
    fn beside(tables: &[&Self]) -> Result<Self>;

    /// Columns `range` of the table.
    ///
    /// # Errors
    /// [`crate::Error::Range`] when there are fewer columns.
    fn columns_in(&self, range: core::ops::Range<usize>) -> Result<Self>;
}

/// What anyone who holds the public key can do.
pub trait Evaluate: Send + Sync {
    /// Ciphertexts of this scheme.
    type Table: Table;

    /// The public name of the key.
    fn key_id(&self) -> KeyId;

    /// Messages `m` with `|m| < 2^(message_bits - 1)` are encrypted and decrypted exactly.
    fn message_bits(&self) -> u32;

    /// Encrypts `rows * columns` messages, row after row, each with fresh noise.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a message out of range or a wrong count;
    /// [`crate::Error::Randomness`].
    fn encrypt(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Self::Table>;

    /// Multiplies every ciphertext by a fresh encryption of zero, so that it shows nothing of how
    /// it came about.
    ///
    /// # Errors
    /// [`crate::Error::Randomness`].
    fn rerandomise(&self, table: &mut Self::Table) -> Result<()>;

    /// The sums of the messages of two tables of one shape.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for different shapes, [`crate::Error::WrongKey`].
    fn add(&self, left: &Self::Table, right: &Self::Table) -> Result<Self::Table>;

    /// The negatives of the messages.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] for a ciphertext that is not invertible,
    /// [`crate::Error::WrongKey`].
    fn negate(&self, table: &Self::Table) -> Result<Self::Table>;

    /// Adds plain messages, one each, without fresh noise.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a message out of range or a wrong count,
    /// [`crate::Error::WrongKey`].
    fn add_plain(&self, table: &Self::Table, messages: &Messages) -> Result<Self::Table>;

    /// Multiplies every message by a plain factor of its own, without fresh noise. Timing depends
    /// on the widest factor only.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a wrong count, [`crate::Error::WrongKey`].
    fn multiply_plain(&self, table: &Self::Table, factors: &Messages) -> Result<Self::Table>;

    /// Row `i` times `weights[i]`, summed over the rows: one row of results, without fresh noise.
    /// Timing depends on the weights.
    ///
    /// # Errors
    /// [`crate::Error::Range`] unless there is one weight a row, [`crate::Error::WrongKey`].
    fn weighted_sum_vartime(&self, table: &Self::Table, weights: &[i64]) -> Result<Self::Table>;

    /// The same for a table of one row, summed over its columns: a single ciphertext.
    ///
    /// # Errors
    /// [`crate::Error::Range`] unless there is one row, and one weight a column;
    /// [`crate::Error::WrongKey`].
    fn weighted_sum_along_vartime(
        &self,
        table: &Self::Table,
        weights: &[i64],
    ) -> Result<Self::Table>;

    /// [`Self::weighted_sum_vartime`] with factors of any width: row `i` times factor `i`, summed
    /// over the rows.
    ///
    /// # Errors
    /// [`crate::Error::Range`] unless there is one factor a row; [`crate::Error::Malformed`] for a
    /// ciphertext that is not invertible, [`crate::Error::WrongKey`].
    fn weighted_sum_wide_vartime(
        &self,
        table: &Self::Table,
        factors: &Messages,
    ) -> Result<Self::Table> {
        check_factors("rows", table.rows(), factors)?;
        let columns = table.columns();
        let mut each = Messages::zeros(factors.width(), factors.len() * columns);
        for index in 0..each.len() {
            each.row_mut(index).copy_from_slice(factors.row(index / columns));
        }
        let products = self.multiply_plain(table, &each)?;
        self.weighted_sum_vartime(&products, &vec![1; factors.len()])
    }

    /// The same for a table of one row, summed over its columns: a single ciphertext.
    ///
    /// # Errors
    /// [`crate::Error::Range`] unless there is one row, and one factor a column;
    /// [`crate::Error::Malformed`] for a ciphertext that is not invertible,
    /// [`crate::Error::WrongKey`].
    fn weighted_sum_wide_along_vartime(
        &self,
        table: &Self::Table,
        factors: &Messages,
    ) -> Result<Self::Table> {
        check_factors("columns", table.columns(), factors)?;
        let products = self.multiply_plain(table, factors)?;
        self.weighted_sum_along_vartime(&products, &vec![1; factors.len()])
    }

    /// The ciphertexts, framed.
    fn table_to_bytes(&self, table: &Self::Table) -> Vec<u8>;

    /// Reads ciphertexts, refusing any that could not have come from this key.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] and the other errors of [`crate::wire::open`];
    /// [`crate::Error::WrongKey`].
    fn table_from_bytes(&self, bytes: &[u8]) -> Result<Self::Table>;
}

/// Refuses any other number of factors than one for each of the `expected` `what`.
pub(crate) fn check_factors(what: &str, expected: usize, factors: &Messages) -> Result<()> {
    if factors.len() == expected {
        return Ok(());
    }
    Err(Error::Range {
        what: "the number of factors",
        expected: format!("{expected}, that of the {what}"),
        actual: factors.len().to_string(),
    })
}
