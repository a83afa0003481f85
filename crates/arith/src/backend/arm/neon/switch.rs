//! Key switch, four residues at a time. There is no gather: permutations are the portable ones.

pub(crate) use crate::backend::portable::switch::permute;

crate::backend::shared::switch::double_pairs!("neon");
