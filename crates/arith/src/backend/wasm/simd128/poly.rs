//! Pointwise arithmetic: residues in `[0, q)` enter and leave. Sums are the portable loops, of which
//! the compiler makes vectors here; products have quotients of doubles.

use super::residue::{Prime, Root, read, write};
use crate::backend::portable::poly;
use crate::modulus::{KERNEL_BITS, Modulus, Shoup};

pub(crate) use crate::backend::portable::poly::{
    add_assign, dot, dot_repeated, neg_assign, recentre_to, sub_assign, sub_centred_scale_assign,
};

/// What the kernels compute with, if the modulus is not too long for them.
fn prime(m: &Modulus) -> Option<Prime> {
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
