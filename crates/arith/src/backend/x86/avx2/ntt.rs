//! Number-theoretic transform, four doubles at a time; values are in `[0, q)`.

crate::backend::shared::ntt::vector_transform!("avx2,fma", lanes);
