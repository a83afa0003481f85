//! Residues and a tree of roots enter, the transform in `[0, q)` leaves; eight words at a time.

crate::backend::transform::vector_transform!(
    "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma",
    harvey,
    radix52_roots
);
