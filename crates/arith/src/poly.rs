//! Pointwise and coefficientwise arithmetic on slices of residues in `[0, q)`.
//!
//! Every function panics when its slices differ in length, and takes residues below the modulus
//! only.

use crate::backend::dispatch;
use crate::modulus::{Modulus, Shoup};

fn same(expected: usize, actual: usize) {
    assert_eq!(expected, actual, "polynomials differ in length");
}

/// `a += b`.
pub fn add_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    same(a.len(), b.len());
    dispatch::poly::add_assign(a, b, m);
}

/// `a -= b`.
pub fn sub_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    same(a.len(), b.len());
    dispatch::poly::sub_assign(a, b, m);
}

/// `a = -a`.
pub fn neg_assign(a: &mut [u64], m: &Modulus) {
    dispatch::poly::neg_assign(a, m);
}

/// `out = a b`, pointwise.
pub fn mul(out: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    same(out.len(), a.len());
    same(out.len(), b.len());
    dispatch::poly::mul(out, a, b, m);
}

/// `a = a b`, pointwise.
pub fn mul_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    same(a.len(), b.len());
    dispatch::poly::mul_assign(a, b, m);
}

/// `acc += a b`, pointwise.
pub fn mul_add_assign(acc: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    same(acc.len(), a.len());
    same(acc.len(), b.len());
    dispatch::poly::mul_add_assign(acc, a, b, m);
}

/// `a = s a`; `s` is any word.
pub fn scalar_mul_assign(a: &mut [u64], s: u64, m: &Modulus) {
    dispatch::poly::scalar_mul_assign(a, &m.shoup(s), m);
}

/// `a = s (a - b)`, as after a division that leaves `b`: both modulo `m`, the factor prepared by
/// [`Modulus::shoup`].
pub fn sub_scale_assign(a: &mut [u64], b: &[u64], s: &Shoup, m: &Modulus) {
    same(a.len(), b.len());
    dispatch::poly::sub_scale_assign(a, b, s, m);
}

/// The step of a tree under a key switch: `(even, odd) = (even + s, (even - s) w)` for `s = inverse (low - high)`, plus
/// `rotated` where there is one. `low` is used up.
pub fn split(
    [even, odd]: [&mut [u64]; 2],
    low: &mut [u64],
    high: &[u64],
    inverse: &Shoup,
    rotated: Option<&[u64]>,
    w: &[u64],
    m: &Modulus,
) {
    for other in [&*odd, low, high, w].into_iter().chain(rotated) {
        same(even.len(), other.len());
    }
    dispatch::poly::split([even, odd], low, high, inverse, rotated, w, m);
}

/// `a = s (a - b)` in coefficient form, where `b` holds residues modulo another prime `from`, read
/// as integers in `(-from/2, from/2)`: with `s` the inverse of `from`, the division by one prime of
/// a basis, rounded.
///
/// # Panics
/// Also when `from` is even, or not below `2^50`.
pub fn sub_centred_scale_assign(a: &mut [u64], b: &[u64], from: &Modulus, s: &Shoup, m: &Modulus) {
    same(a.len(), b.len());
    from.assert_centred();
    dispatch::poly::sub_centred_scale_assign(a, b, from, s, m);
}

/// `out[i] = a[perm[i]]`, as [`crate::NttTable::automorphism_permutation`] describes an
/// automorphism on values.
///
/// # Panics
/// Also when an index is out of range.
pub fn permute(out: &mut [u64], a: &[u64], perm: &[u32]) {
    same(out.len(), perm.len());
    same(out.len(), a.len());
    dispatch::switch::permute(out, a, perm);
}

/// `out = a(X^galois)` in coefficient form modulo `X^N + 1`, for odd `galois` and N a power of two.
///
/// # Panics
/// Also when `galois` is even or the length is no power of two.
pub fn automorphism(out: &mut [u64], a: &[u64], galois: u64, m: &Modulus) {
    same(out.len(), a.len());
    assert!(a.len().is_power_of_two(), "expected a power of two of coefficients, got {}", a.len());
    assert!(galois % 2 == 1, "expected an odd Galois element, got {galois}");
    let (mask, step) = (2 * a.len() - 1, galois as usize);
    let mut target = 0usize;
    for &x in a {
        // X^N = -1: exponents in [N, 2N) come back with a minus.
        let negative = target >= a.len();
        out[target & (a.len() - 1)] = if negative { m.neg(x) } else { x };
        target = target.wrapping_add(step) & mask;
    }
}

/// `out = a X^exponent` in coefficient form modulo `X^N + 1`; the exponent may be negative.
///
/// # Panics
/// Also when there are no coefficients.
pub fn mul_monomial(out: &mut [u64], a: &[u64], exponent: i64, m: &Modulus) {
    same(out.len(), a.len());
    assert!(!a.is_empty(), "expected at least one coefficient");
    let n = a.len();
    let shift = exponent.rem_euclid(2 * n as i64) as usize;
    let (turn, shift) = (shift >= n, shift % n);
    let (kept, wrapped) = a.split_at(n - shift);
    let (low, high) = out.split_at_mut(shift);
    // What passes X^N changes sign once; a further half turn changes all signs.
    copy_signed(low, wrapped, !turn, m);
    copy_signed(high, kept, turn, m);
}

fn copy_signed(out: &mut [u64], a: &[u64], negate: bool, m: &Modulus) {
    out.copy_from_slice(a);
    if negate {
        neg_assign(out, m);
    }
}

/// `out = sum_j a_j b_j`, pointwise, reduced late.
///
/// # Panics
/// Also when `a` and `b` hold different numbers of polynomials.
pub fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    assert_eq!(a.len(), b.len(), "the two lists differ in length");
    a.iter().chain(b).for_each(|p| same(out.len(), p.len()));
    dispatch::poly::dot(out, a, b, m);
}

/// `out = sum_j a_j b_j`, pointwise, where each word of a `b_j` stands for as many in a row as `out` has
/// times its words: the values of a polynomial in a power of X.
///
/// # Panics
/// Also when `a` and `b` hold different numbers of polynomials, or those in `b` have a number of words
/// that `out` has no multiple of.
pub fn dot_repeated(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    assert_eq!(a.len(), b.len(), "the two lists differ in length");
    a.iter().for_each(|p| same(out.len(), p.len()));
    let words = b.first().map_or(out.len(), |p| p.len());
    b.iter().for_each(|p| same(words, p.len()));
    if words == out.len() {
        return dispatch::poly::dot(out, a, b, m);
    }
    assert!(
        words != 0 && out.len().is_multiple_of(words),
        "{} is no multiple of {words}",
        out.len()
    );
    dispatch::poly::dot_repeated(out, a, b, m);
}

/// `out0 = sum_j digits_j keys0_j` and `out1 = sum_j digits_j keys1_j`, pointwise: both halves of a
/// key switch in one pass over the digits, reduced late.
///
/// # Panics
/// Also when the three lists hold different numbers of polynomials.
pub fn dot_pair(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    m: &Modulus,
) {
    check_pair(out0, out1, digits, keys0, keys1);
    dispatch::switch::dot_pair(out0, out1, digits, keys0, keys1, m);
}

/// [`dot_pair`] of the digits permuted as [`permute`] would: a rotation of digits that were
/// decomposed once.
///
/// # Panics
/// Also when an index is out of range.
pub fn dot_pair_permuted(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    perm: &[u32],
    m: &Modulus,
) {
    check_pair(out0, out1, digits, keys0, keys1);
    same(out0.len(), perm.len());
    dispatch::switch::dot_pair_permuted(out0, out1, digits, keys0, keys1, perm, m);
}

fn check_pair(out0: &[u64], out1: &[u64], digits: &[&[u64]], keys0: &[&[u64]], keys1: &[&[u64]]) {
    assert_eq!(digits.len(), keys0.len(), "digits and first keys differ in number");
    assert_eq!(digits.len(), keys1.len(), "digits and second keys differ in number");
    same(out0.len(), out1.len());
    digits.iter().chain(keys0).chain(keys1).for_each(|p| same(out0.len(), p.len()));
}
