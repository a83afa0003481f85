//! Transform: residues and roots enter, values in `[0, q)` leave, eight words at a time.

crate::backend::shared::ntt::vector_transform!(
    "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma",
    ifma_butterflies
);
