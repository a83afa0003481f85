//! Transform: residues and roots enter, values in `[0, q)` leave, four doubles at a time.

crate::backend::shared::ntt::vector_transform!("avx2,fma", lanes);
