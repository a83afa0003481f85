//! Residues in `[0, q)` enter, residues in `[0, q)` leave, eight at a time.

use core::arch::x86_64::*;

use super::late::Late;

crate::backend::pointwise::double_pointwise!("avx2,fma,avx512f,avx512dq,avx512bw,avx512vl");

/// Terms after which a sum of 52-bit halves could pass 64 bits.
const TERMS: usize = 4096;

#[inline]
#[target_feature(enable = "avx512f")]
fn words(p: &[u64], at: usize) -> __m512i {
    let p = &p[at..at + 8];
    // SAFETY: the slice is eight readable words.
    unsafe { _mm512_loadu_si512(p.as_ptr().cast()) }
}

/// `out = sum_j a_j b_j` with one reduction in 4096 terms.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    if m.value() >> MAX_MODULUS_BITS != 0 {
        return portable::poly::dot(out, a, b, m);
    }
    let late = Late::new(m);
    let whole = out.len() / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        let target = &mut out[at..at + LANES];
        target.fill(0);
        for (a, b) in a.chunks(TERMS - 1).zip(b.chunks(TERMS - 1)) {
            // What earlier terms left is a residue: it enters as one more low half.
            let (mut low, mut high) = (words(target, 0), _mm512_setzero_si512());
            for (a, b) in a.iter().zip(b) {
                let (x, y) = (words(a, at), words(b, at));
                low = _mm512_madd52lo_epu64(low, x, y);
                high = _mm512_madd52hi_epu64(high, x, y);
            }
            late.store(low, high, target);
        }
    }
    portable::poly::dot_from(whole, out, a, b, m);
}
