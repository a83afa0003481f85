//! Pointwise arithmetic: residues in `[0, q)` enter and leave, four at a time.

crate::backend::shared::poly::double_pointwise!("avx2,fma");

/// Products below `7/8 q` that add up to less than `8q` together with a reduced sum.
pub(crate) const TERMS: usize = 8;

/// `out = sum_j a_j b_j`, the products as doubles, the sum reduced once in eight terms.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    if m.value() >> KERNEL_BITS != 0 {
        return portable::poly::dot(out, a, b, m);
    }
    let c = constants(m);
    let (chunks, _) = out.as_chunks_mut::<LANES>();
    let whole = chunks.len() * LANES;
    for (i, target) in chunks.iter_mut().enumerate() {
        let mut sum = load_residues(&[0; LANES]);
        for (a, b) in a.chunks(TERMS).zip(b.chunks(TERMS)) {
            for (a, b) in a.iter().zip(b) {
                let (x, y) = (&a.as_chunks::<LANES>().0[i], &b.as_chunks::<LANES>().0[i]);
                sum = add(sum, multiply(&c, load_residues(x), load_residues(y)));
            }
            sum = reduce(&c, sum);
        }
        store_residues(&c, target, sum);
    }
    portable::poly::dot_from(whole, out, a, b, m);
}

/// The same with each word of a `b_j` as often as `out` is longer.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn dot_repeated(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    let gap = out.len() / b[0].len();
    if m.value() >> KERNEL_BITS != 0 || !gap.is_multiple_of(LANES) {
        return portable::poly::dot_repeated(out, a, b, m);
    }
    let c = constants(m);
    for (i, target) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let place = i * LANES / gap;
        let mut sum = load_residues(&[0; LANES]);
        for (a, b) in a.chunks(TERMS).zip(b.chunks(TERMS)) {
            for (a, b) in a.iter().zip(b) {
                let x = load_residues(&a.as_chunks::<LANES>().0[i]);
                sum = add(sum, multiply(&c, x, load_residues(&[b[place]; LANES])));
            }
            sum = reduce(&c, sum);
        }
        store_residues(&c, target, sum);
    }
}
