//! Pointwise arithmetic: residues in `[0, q)`, four at a time.

crate::backend::shared::poly::double_pointwise!("avx2,fma");
crate::backend::shared::poly::double_dots!("avx2,fma");
