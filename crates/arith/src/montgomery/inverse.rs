//! Inverts many residues by one inversion and three multiplications each.

use std::sync::Arc;

use crypto_bigint::{BoxedUint, Odd};

use super::digits::sub_masked;
use super::group::{LANES, copy_lane};
use super::modulus::PowerModulus;
use super::residues::Residues;
use super::scratch::Scratch;
use crate::backend::operands::montgomery::Row;
use crate::error::ArithError;

impl Residues {
    /// The inverse of every element (Montgomery's trick). The time depends on the elements.
    ///
    /// # Errors
    /// [`ArithError::NotInvertible`] naming the first element, row after row, that shares a factor
    /// with `n`.
    pub fn inverse_vartime(&self) -> Result<Residues, ArithError> {
        let (modulus, columns) = (self.modulus(), self.columns());
        let groups = self.rows() * self.groups_a_row();
        if groups == 0 {
            return Ok(self.clone());
        }
        let place = |at: usize| (at / self.groups_a_row(), at % self.groups_a_row());
        // The lanes past the last column must not spoil the product.
        let group = |at: usize| {
            let (row, index) = place(at);
            let mut rows = self.group(row, index).to_vec();
            (self.lanes(index)..LANES)
                .for_each(|lane| copy_lane(modulus.format.width, &mut rows, lane, &modulus.one, 0));
            rows
        };
        let mut scratch = Scratch::new(modulus, LANES);
        // Products of all groups up to each, lane by lane.
        let mut upto: Vec<Vec<Row>> = Vec::with_capacity(groups);
        for at in 0..groups {
            let mut product = group(at);
            if let Some(before) = upto.last() {
                scratch.mul(&mut product, before);
            }
            upto.push(product);
        }
        let last = &upto[groups - 1];
        let Some(mut rest) = inverse_of_lanes(modulus, last)? else {
            return Err(ArithError::NotInvertible { index: self.first_not_invertible() });
        };
        let mut out = Residues::ones(modulus, self.rows(), columns);
        let data = out.groups_mut();
        for at in (0..groups).rev() {
            let size = modulus.rows();
            let place = &mut data[at * size..(at + 1) * size];
            place.copy_from_slice(&rest);
            if at > 0 {
                scratch.mul(place, &upto[at - 1]);
                scratch.mul(&mut rest, &group(at));
            }
        }
        Ok(out)
    }

    /// The first element that shares a factor with `n`; some element must.
    fn first_not_invertible(&self) -> usize {
        let words = self.to_digits();
        let size = self.modulus().element_words();
        let invertible = |element: &[u64]| {
            inverse_of_digit(&element[..self.modulus().words()], self.modulus()).is_some()
        };
        words.chunks(size).position(|element| !invertible(element)).unwrap_or(0)
    }
}

/// The inverses of the eight residues of a group, or nothing if one of them has none.
fn inverse_of_lanes(
    modulus: &Arc<PowerModulus>,
    group: &[Row],
) -> Result<Option<Vec<Row>>, ArithError> {
    let mut scratch = Scratch::new(modulus, 1);
    let single = |lane: usize| {
        let mut rows = modulus.one.clone();
        copy_lane(modulus.format.width, &mut rows, 0, group, lane);
        rows
    };
    let mut upto = vec![single(0)];
    for lane in 1..LANES {
        let mut product = single(lane);
        scratch.mul(&mut product, &upto[lane - 1]);
        upto.push(product);
    }
    let Some(mut rest) = inverse_of_one(modulus, &upto[LANES - 1])? else {
        return Ok(None);
    };
    let mut inverses = modulus.one.clone();
    for lane in (0..LANES).rev() {
        if lane == 0 {
            copy_lane(modulus.format.width, &mut inverses, 0, &rest, 0);
        } else {
            let mut inverse = rest.clone();
            scratch.mul(&mut inverse, &upto[lane - 1]);
            copy_lane(modulus.format.width, &mut inverses, lane, &inverse, 0);
            scratch.mul(&mut rest, &single(lane));
        }
    }
    Ok(Some(inverses))
}

/// The inverse of the residue in lane 0: modulo `n` by the extended Euclidean algorithm, then
/// doubling the digits that are right by Newton's `y (2 - x y)`.
fn inverse_of_one(
    modulus: &Arc<PowerModulus>,
    group: &[Row],
) -> Result<Option<Vec<Row>>, ArithError> {
    let x = Residues::from_groups(modulus, 1, 1, group.to_vec());
    let words = modulus.words();
    let Some(low) = inverse_of_digit(&x.to_digits()[..words], modulus) else {
        return Ok(None);
    };
    let mut digits = vec![0; modulus.element_words()];
    digits[..words].copy_from_slice(&low);
    let mut y = Residues::from_digits(modulus, 1, 1, &digits)?;
    let mut right = 1;
    while right < modulus.digits() {
        let mut product = x.clone();
        product.mul_assign(&y);
        let rest = two_minus(&product.to_digits(), modulus.modulus());
        y.mul_assign(&Residues::from_digits(modulus, 1, 1, &rest)?);
        right *= 2;
    }
    Ok(Some(y.group(0, 0).to_vec()))
}

/// `2 - x` in base-`n` digits.
fn two_minus(x: &[u64], n: &[u64]) -> Vec<u64> {
    let mut digits = vec![0; x.len()];
    digits[0] = 2;
    let mut borrow = 0;
    for (digit, x) in digits.chunks_mut(n.len()).zip(x.chunks(n.len())) {
        let below = sub_masked(digit, x, u64::MAX) | sub_masked(digit, &[borrow], u64::MAX);
        super::digits::add_assign(digit, if below == 1 { n } else { &[] }, 0);
        borrow = below;
    }
    digits
}

fn inverse_of_digit(digit: &[u64], modulus: &PowerModulus) -> Option<Vec<u64>> {
    let n = BoxedUint::from_words(modulus.modulus().iter().copied());
    let n = Odd::new(n).into_option()?;
    let x = BoxedUint::from_words(digit.iter().copied());
    let inverse = x.invert_odd_mod_vartime(&n).into_option()?;
    Some(inverse.to_words().to_vec())
}
