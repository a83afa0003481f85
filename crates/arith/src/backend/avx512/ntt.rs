//! Residues and a tree of roots enter, the transform in `[0, q)` leaves; eight doubles at a time.

crate::backend::transform::double_transform!("avx2,fma,avx512f,avx512dq,avx512bw,avx512vl");
