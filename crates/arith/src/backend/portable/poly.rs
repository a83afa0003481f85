//! Pointwise arithmetic, one word at a time. Residues stay in `[0, q)`.
//!
//! The three without products are inlined into the vector back-ends, where the compiler widens them
//! by itself.

use crate::modulus::{Modulus, Shoup};

#[inline(always)]
pub(crate) fn add_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    for (x, &y) in a.iter_mut().zip(b) {
        *x = m.add(*x, y);
    }
}

#[inline(always)]
pub(crate) fn sub_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    for (x, &y) in a.iter_mut().zip(b) {
        *x = m.sub(*x, y);
    }
}

#[inline(always)]
pub(crate) fn neg_assign(a: &mut [u64], m: &Modulus) {
    for x in a {
        *x = m.neg(*x);
    }
}

pub(crate) fn mul(out: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    for ((z, &x), &y) in out.iter_mut().zip(a).zip(b) {
        *z = m.mul(x, y);
    }
}

pub(crate) fn mul_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    for (x, &y) in a.iter_mut().zip(b) {
        *x = m.mul(*x, y);
    }
}

pub(crate) fn mul_add_assign(acc: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    for ((z, &x), &y) in acc.iter_mut().zip(a).zip(b) {
        *z = m.add(*z, m.mul(x, y));
    }
}

pub(crate) fn scalar_mul_assign(a: &mut [u64], s: &Shoup, m: &Modulus) {
    for x in a {
        *x = m.mul_shoup(*x, s);
    }
}

#[inline(always)]
pub(crate) fn sub_scale_assign(a: &mut [u64], b: &[u64], s: &Shoup, m: &Modulus) {
    for (x, &y) in a.iter_mut().zip(b) {
        *x = m.mul_shoup(m.sub(*x, y), s);
    }
}

crate::backend::shared::split::split_by_passes!();

pub(crate) fn sub_centred_scale_assign(
    a: &mut [u64],
    b: &[u64],
    from: &Modulus,
    s: &Shoup,
    m: &Modulus,
) {
    for (x, &y) in a.iter_mut().zip(b) {
        *x = m.mul_shoup(m.sub(*x, m.from_i64(from.to_centered(y))), s);
    }
}

pub(crate) fn recentre_to(out: &mut [u64], poly: &[u64], from: &Modulus, to: &Modulus) {
    for (z, &x) in out.iter_mut().zip(poly) {
        *z = to.from_i64(from.to_centered(x));
    }
}

/// `out = sum_j a_j b_j`; fifteen products below `2^124` add up to less than `2^128`, then one
/// reduction.
pub(crate) fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    dot_from(0, out, a, b, m);
}

/// [`dot`] from coefficient `start` on.
pub(crate) fn dot_from(start: usize, out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    for (i, z) in out.iter_mut().enumerate().skip(start) {
        *z = a.chunks(15).zip(b.chunks(15)).fold(0, |total, (a, b)| {
            let sum: u128 = a.iter().zip(b).map(|(a, b)| u128::from(a[i]) * u128::from(b[i])).sum();
            m.add(total, m.reduce_u128(sum))
        });
    }
}

/// [`dot`] with each word of a `b_j` as often as `out` is longer.
pub(crate) fn dot_repeated(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    let gap = out.len() / b[0].len();
    for (place, out) in out.chunks_exact_mut(gap).enumerate() {
        for (z, i) in out.iter_mut().zip(place * gap..) {
            *z = a.chunks(15).zip(b.chunks(15)).fold(0, |total, (a, b)| {
                let factors = a.iter().zip(b).map(|(a, b)| (a[i], b[place]));
                let sum: u128 = factors.map(|(a, b)| u128::from(a) * u128::from(b)).sum();
                m.add(total, m.reduce_u128(sum))
            });
        }
    }
}
