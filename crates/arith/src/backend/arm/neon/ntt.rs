//! Transform, four doubles at a time.

crate::backend::shared::ntt::vector_transform!("neon", lanes);
