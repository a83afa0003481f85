//! Number-theoretic transform, eight words at a time; values are in `[0, q)`.

crate::backend::shared::ntt::vector_transform!(
    "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma",
    ifma_butterflies
);
