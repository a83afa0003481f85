//! Encrypts messages and computes on ciphertexts with the public key.

use curve25519_dalek::Scalar;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
use rayon::prelude::*;
use subtle::{Choice, ConditionallyNegatable, ConditionallySelectable};
use zeroize::Zeroizing;

use super::addition_chain::{AdditionChain, Points};
use super::base_point::{message_point, random_scalar};
use super::ciphertexts::range;
use super::{Ciphertexts, MESSAGE_BITS, PublicKey};
use crate::additive::{Evaluate, Messages, Table, check_factors};
use crate::error::Result;
use crate::wire::KeyId;

/// Factors up to this many bits are multiplied bit by bit, wider ones as full scalars.
const SHORT_FACTOR_BITS: u32 = 48;

impl PublicKey {
    /// A fresh encryption of zero, in constant time.
    fn noise(&self) -> Result<Points<2>> {
        let scalar = random_scalar()?;
        Ok([RistrettoPoint::mul_base(&scalar), self.multiples().times(&scalar)])
    }
}

/// `count` messages of [`MESSAGE_BITS`] as words.
pub fn short(messages: &Messages, count: Option<usize>) -> Result<Zeroizing<Vec<i64>>> {
    if count != Some(messages.len()) {
        let expected = count.map_or("fewer".to_owned(), |count| count.to_string());
        return Err(range("the number of messages", expected, messages.len()));
    }
    let all: Option<Vec<i64>> = (0..messages.len())
        .map(|index| messages.to_i64(index).filter(|_| messages.fits(index, MESSAGE_BITS)))
        .collect();
    all.map(Zeroizing::new).ok_or_else(|| {
        let expected = format!("below 2^{} in absolute value", MESSAGE_BITS - 1);
        range("a message for ElGamal", expected, "a larger one")
    })
}

/// Refuses tables of different shapes.
fn check_shape(left: &Ciphertexts, right: &Ciphertexts) -> Result<()> {
    if (left.rows(), left.columns()) == (right.rows(), right.columns()) {
        return Ok(());
    }
    let expected = format!("{} × {} as the other", left.rows(), left.columns());
    Err(range(
        "a table of ciphertexts",
        expected,
        format!("{} × {}", right.rows(), right.columns()),
    ))
}

/// A message of any width modulo the order of the group, in constant time.
fn full_scalar(words: &[u64]) -> Zeroizing<Scalar> {
    let radix = Scalar::from(u64::MAX) + Scalar::ONE;
    let (mut sum, mut power) = (Zeroizing::new(Scalar::ZERO), Scalar::ONE);
    for word in words {
        *sum += power * Scalar::from(*word);
        power *= radix;
    }
    // Two's complement: the top bit stands for −2^(64 words).
    let sign = words.last().map_or(0, |word| word >> 63);
    *sum -= power * Scalar::from(sign);
    sum
}

/// `factor` times a pair for `|factor| < 2^(bits - 1)`, in constant time.
fn times_short(pair: &Points<2>, factor: i64, bits: u32) -> Points<2> {
    let magnitude = factor.unsigned_abs();
    let negative = Choice::from((factor as u64 >> 63) as u8);
    pair.map(|point| {
        let mut sum = RistrettoPoint::identity();
        for bit in (0..bits.saturating_sub(1)).rev() {
            sum += sum;
            let set = Choice::from((magnitude >> bit & 1) as u8);
            sum += RistrettoPoint::conditional_select(&RistrettoPoint::identity(), &point, set);
        }
        sum.conditional_negate(negative);
        sum
    })
}

impl Evaluate for PublicKey {
    type Table = Ciphertexts;

    fn key_id(&self) -> KeyId {
        self.id
    }

    fn message_bits(&self) -> u32 {
        MESSAGE_BITS
    }

    fn encrypt(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Ciphertexts> {
        let messages = short(messages, rows.checked_mul(columns))?;
        let encrypt = |message: &i64| {
            let [one, two] = self.noise()?;
            Ok([one, two + message_point(*message)])
        };
        let points: Result<Vec<Points<2>>> = messages.par_iter().map(encrypt).collect();
        Ok(Ciphertexts::new(self.id, rows, columns, points?))
    }

    fn rerandomise(&self, table: &mut Ciphertexts) -> Result<()> {
        table.check_key(self.id)?;
        table.points_mut().par_iter_mut().try_for_each(|pair| {
            let noise = self.noise()?;
            pair.iter_mut().zip(noise).for_each(|(point, noise)| *point += noise);
            Ok(())
        })
    }

    fn add(&self, left: &Ciphertexts, right: &Ciphertexts) -> Result<Ciphertexts> {
        left.check_key(self.id)?;
        right.check_key(self.id)?;
        check_shape(left, right)?;
        let pairs = left.points().iter().zip(right.points());
        Ok(left.with_points(pairs.map(|(a, b)| [a[0] + b[0], a[1] + b[1]]).collect()))
    }

    fn negate(&self, table: &Ciphertexts) -> Result<Ciphertexts> {
        table.check_key(self.id)?;
        Ok(table.with_points(table.points().iter().map(|pair| pair.map(|point| -point)).collect()))
    }

    fn add_plain(&self, table: &Ciphertexts, messages: &Messages) -> Result<Ciphertexts> {
        table.check_key(self.id)?;
        let messages = short(messages, Some(table.points().len()))?;
        let pairs = table.points().par_iter().zip(messages.par_iter());
        let points = pairs.map(|([one, two], message)| [*one, two + message_point(*message)]);
        Ok(table.with_points(points.collect()))
    }

    fn multiply_plain(&self, table: &Ciphertexts, factors: &Messages) -> Result<Ciphertexts> {
        table.check_key(self.id)?;
        if factors.len() != table.points().len() {
            let expected = table.points().len().to_string();
            return Err(range("the number of factors", expected, factors.len()));
        }
        let widest = (1..=SHORT_FACTOR_BITS)
            .find(|bits| (0..factors.len()).all(|index| factors.fits(index, *bits)));
        let multiply = |(index, pair): (usize, &Points<2>)| match (widest, factors.to_i64(index)) {
            (Some(bits), Some(factor)) => times_short(pair, factor, bits),
            _ => {
                let factor = full_scalar(factors.row(index));
                pair.map(|point| point * *factor)
            }
        };
        Ok(table.with_points(table.points().par_iter().enumerate().map(multiply).collect()))
    }

    fn weighted_sum_vartime(&self, table: &Ciphertexts, weights: &[i64]) -> Result<Ciphertexts> {
        table.check_key(self.id)?;
        if weights.len() != table.rows() {
            return Err(range("the number of weights", table.rows().to_string(), weights.len()));
        }
        Ok(Ciphertexts::new(
            self.id,
            1,
            table.columns(),
            sums(table.points(), table.columns(), weights),
        ))
    }

    fn weighted_sum_along_vartime(
        &self,
        table: &Ciphertexts,
        weights: &[i64],
    ) -> Result<Ciphertexts> {
        table.check_key(self.id)?;
        if table.rows() != 1 || weights.len() != table.columns() {
            let expected = format!("1 × {}, a weight a column", weights.len());
            let actual = format!("{} × {}", table.rows(), table.columns());
            return Err(range("the table", expected, actual));
        }
        // One row of many columns lies in memory as one column of many rows does.
        Ok(Ciphertexts::new(self.id, 1, 1, sums(table.points(), 1, weights)))
    }

    fn weighted_sum_wide_vartime(
        &self,
        table: &Ciphertexts,
        factors: &Messages,
    ) -> Result<Ciphertexts> {
        table.check_key(self.id)?;
        check_factors("rows", table.rows(), factors)?;
        let sums = wide_sums(table.points(), table.columns(), factors);
        Ok(Ciphertexts::new(self.id, 1, table.columns(), sums))
    }

    fn weighted_sum_wide_along_vartime(
        &self,
        table: &Ciphertexts,
        factors: &Messages,
    ) -> Result<Ciphertexts> {
        table.check_key(self.id)?;
        if table.rows() != 1 {
            return Err(range("the number of rows", "1".to_owned(), table.rows()));
        }
        check_factors("columns", table.columns(), factors)?;
        Ok(Ciphertexts::new(self.id, 1, 1, wide_sums(table.points(), 1, factors)))
    }

    fn table_to_bytes(&self, table: &Ciphertexts) -> Vec<u8> {
        table.to_bytes()
    }

    fn table_from_bytes(&self, bytes: &[u8]) -> Result<Ciphertexts> {
        Ciphertexts::from_bytes(self.id, bytes)
    }
}

/// One weighted sum a column of a table of `columns`, on all threads of the pool.
pub fn sums<const N: usize>(
    table: &[Points<N>],
    columns: usize,
    weights: &[i64],
) -> Vec<Points<N>> {
    let program = AdditionChain::new(weights);
    let mut out = vec![[RistrettoPoint::identity(); N]; columns];
    let share = columns.div_ceil(4 * rayon::current_num_threads()).max(4);
    out.par_chunks_mut(share)
        .enumerate()
        .for_each(|(at, out)| program.run(table, columns, at * share, out));
    out
}

/// One sum a column of a table of `columns`, with a factor of any width a row.
fn wide_sums(table: &[Points<2>], columns: usize, factors: &Messages) -> Vec<Points<2>> {
    let scalars: Vec<Scalar> =
        (0..factors.len()).map(|index| *full_scalar(factors.row(index))).collect();
    let sum = |column: usize, part: usize| {
        let points = table.iter().skip(column).step_by(columns).map(|pair| pair[part]);
        RistrettoPoint::vartime_multiscalar_mul(&scalars, points)
    };
    (0..columns).into_par_iter().map(|column| [sum(column, 0), sum(column, 1)]).collect()
}
