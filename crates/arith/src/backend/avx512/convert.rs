//! Residues enter in one representation and leave in another, eight words at a time.

crate::backend::convert::widened_conversions!("avx512f,avx512dq,avx512bw,avx512vl");
