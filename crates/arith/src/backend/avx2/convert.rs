//! Residues enter in one representation and leave in another, four words at a time.

crate::backend::convert::widened_conversions!("avx2,fma");
