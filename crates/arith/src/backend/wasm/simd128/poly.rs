//! Pointwise arithmetic: residues in `[0, q)`. Sums are vectors of signed words, as there is no minimum
//! of unsigned ones; products have quotients of doubles.

use core::arch::wasm32::*;

use super::residue::{Prime, Root, read, write};
use crate::backend::portable::poly;
use crate::modulus::{KERNEL_BITS, Modulus, Shoup};

pub(crate) use crate::backend::portable::poly::dot_repeated;

/// `(-q, q)` to `[0, q)`, in both lanes.
#[inline(always)]
fn canonical(x: v128, q: v128) -> v128 {
    i64x2_add(x, v128_and(i64x2_lt(x, i64x2_splat(0)), q))
}

#[inline(always)]
fn load(from: &[u64; 2]) -> v128 {
    // SAFETY: the reference covers 16 readable bytes; the load has no alignment.
    unsafe { v128_load(from.as_ptr().cast()) }
}

#[inline(always)]
fn store(to: &mut [u64; 2], x: v128) {
    // SAFETY: the reference covers 16 writable bytes; the store has no alignment.
    unsafe { v128_store(to.as_mut_ptr().cast(), x) }
}

pub(crate) fn add_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    let q = u64x2_splat(m.value());
    let ((x, x_rest), (y, y_rest)) = (a.as_chunks_mut(), b.as_chunks());
    for (x, y) in x.iter_mut().zip(y) {
        store(x, canonical(i64x2_sub(i64x2_add(load(x), load(y)), q), q));
    }
    poly::add_assign(x_rest, y_rest, m);
}

pub(crate) fn sub_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    let q = u64x2_splat(m.value());
    let ((x, x_rest), (y, y_rest)) = (a.as_chunks_mut(), b.as_chunks());
    for (x, y) in x.iter_mut().zip(y) {
        store(x, canonical(i64x2_sub(load(x), load(y)), q));
    }
    poly::sub_assign(x_rest, y_rest, m);
}

pub(crate) fn neg_assign(a: &mut [u64], m: &Modulus) {
    let q = u64x2_splat(m.value());
    let (x, rest) = a.as_chunks_mut();
    for x in x {
        store(x, canonical(i64x2_neg(load(x)), q));
    }
    poly::neg_assign(rest, m);
}

/// What the kernels compute with, if the modulus is not too long for them.
pub(super) fn prime(m: &Modulus) -> Option<Prime> {
    (m.value() >> KERNEL_BITS == 0).then(|| Prime::new(m))
}

pub(crate) fn mul(out: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    let Some(p) = prime(m) else { return poly::mul(out, a, b, m) };
    for ((z, x), y) in out.iter_mut().zip(a).zip(b) {
        write(z, p.multiply(read(x), read(y)));
    }
}

pub(crate) fn mul_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    let Some(p) = prime(m) else { return poly::mul_assign(a, b, m) };
    for (x, y) in a.iter_mut().zip(b) {
        write(x, p.multiply(read(x), read(y)));
    }
}

pub(crate) fn mul_add_assign(acc: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    let Some(p) = prime(m) else { return poly::mul_add_assign(acc, a, b, m) };
    for ((z, x), y) in acc.iter_mut().zip(a).zip(b) {
        write(z, p.add(read(z), p.multiply(read(x), read(y))));
    }
}

pub(crate) fn scalar_mul_assign(a: &mut [u64], s: &Shoup, m: &Modulus) {
    let Some(p) = prime(m) else { return poly::scalar_mul_assign(a, s, m) };
    let w = Root::new(m, s.value);
    for x in a {
        write(x, p.canonical(p.times(read(x) as i64, w)));
    }
}

pub(crate) fn sub_scale_assign(a: &mut [u64], b: &[u64], s: &Shoup, m: &Modulus) {
    let Some(p) = prime(m) else { return poly::sub_scale_assign(a, b, s, m) };
    let w = Root::new(m, s.value);
    for (x, y) in a.iter_mut().zip(b) {
        write(x, p.canonical(p.times(read(x) as i64 - read(y) as i64, w)));
    }
}

crate::backend::shared::split::split_by_passes!();

/// Differences are below `3/2 2^50`, so that the quotient is off by less than 1/5 before it is rounded.
pub(crate) fn sub_centred_scale_assign(
    a: &mut [u64],
    b: &[u64],
    from: &Modulus,
    s: &Shoup,
    m: &Modulus,
) {
    let Some(p) = prime(m) else {
        return poly::sub_centred_scale_assign(a, b, from, s, m);
    };
    let (source, w) = (Prime::new(from), Root::new(m, s.value));
    for (x, y) in a.iter_mut().zip(b) {
        let difference = read(x) as i64 - source.centred(read(y));
        write(x, p.canonical(p.times(difference, w)));
    }
}

pub(crate) fn recentre_to(out: &mut [u64], x: &[u64], from: &Modulus, to: &Modulus) {
    let Some(p) = prime(to) else { return poly::recentre_to(out, x, from, to) };
    let source = Prime::new(from);
    for (z, x) in out.iter_mut().zip(x) {
        write(z, p.canonical(p.reduce(source.centred(read(x)))));
    }
}

/// Coefficients whose sums are kept while the terms are read one after the other.
pub(super) const TILE: usize = 128;
/// Terms below `q` whose sums fit 63 bits.
pub(super) const TERMS: usize = 1 << 12;

/// `out = sum_j a_j b_j`.
pub(crate) fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    let Some(p) = prime(m).filter(|_| a.len() <= TERMS) else { return poly::dot(out, a, b, m) };
    for (tile, out) in out.chunks_mut(TILE).enumerate() {
        let here = tile * TILE..tile * TILE + out.len();
        let mut sums = [0; TILE];
        for (a, b) in a.iter().zip(b) {
            for ((x, y), sum) in a[here.clone()].iter().zip(&b[here.clone()]).zip(&mut sums) {
                write(sum, read(sum) + p.product(read(x), read(y)));
            }
        }
        for (z, sum) in out.iter_mut().zip(&sums) {
            write(z, p.canonical(p.reduce(read(sum))));
        }
    }
}
