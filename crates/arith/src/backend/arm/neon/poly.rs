//! Pointwise arithmetic: residues in `[0, q)`, four at a time.

crate::backend::shared::poly::double_pointwise!("neon");
crate::backend::shared::poly::double_dots!("neon");
