//! Residues and a tree of roots enter, the transform in `[0, q)` leaves; four doubles at a time.

crate::backend::transform::vector_transform!("avx2,fma", lanes, double_roots);
