//! Polynomials as slices of residues in `[0, q)` enter, pointwise or coefficientwise results in `[0, q)` leave. Both sides.
//!
//! Every function panics when its slices differ in length, and takes residues below the modulus only.

use crate::backend::dispatch;
use crate::modulus::Modulus;

fn same(expected: usize, actual: usize) {
    assert_eq!(expected, actual, "polynomials differ in length");
}

/// `a += b`.
pub fn add_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    same(a.len(), b.len());
    dispatch::add_assign(a, b, m);
}

/// `a -= b`.
pub fn sub_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    same(a.len(), b.len());
    dispatch::sub_assign(a, b, m);
}

/// `a = -a`.
pub fn neg_assign(a: &mut [u64], m: &Modulus) {
    dispatch::neg_assign(a, m);
}

/// `out = a b`, pointwise.
pub fn mul(out: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    same(out.len(), a.len());
    same(out.len(), b.len());
    dispatch::mul(out, a, b, m);
}

/// `a = a b`, pointwise.
pub fn mul_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    same(a.len(), b.len());
    dispatch::mul_assign(a, b, m);
}

/// `acc += a b`, pointwise.
pub fn mul_add_assign(acc: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    same(acc.len(), a.len());
    same(acc.len(), b.len());
    dispatch::mul_add_assign(acc, a, b, m);
}

/// `a = s a`; `s` is any word.
pub fn scalar_mul_assign(a: &mut [u64], s: u64, m: &Modulus) {
    dispatch::scalar_mul_assign(a, &m.shoup(s), m);
}

/// `out[i] = a[perm[i]]`, as [`crate::NttTable::automorphism_permutation`] describes an automorphism on values.
///
/// # Panics
/// Also when an index is out of range.
pub fn permute(out: &mut [u64], a: &[u64], perm: &[u32]) {
    same(out.len(), perm.len());
    same(out.len(), a.len());
    for (z, &i) in out.iter_mut().zip(perm) {
        *z = a[i as usize];
    }
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
    dispatch::dot(out, a, b, m);
}
