//! Plaintext matrix, by exact multiply-adds of doubles.

crate::backend::shared::pcmm::double_pieces!("neon");
