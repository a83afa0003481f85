//! Encrypting quantised queries, 25.6 KB a piece.

use super::{Ciphertext, DEGREE, Layout, QueryKey, Ring};
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{convert, poly};
use zeroize::Zeroize;

impl QueryKey {
    /// Encrypts the pieces of `query` (length `layout.dimension()`): piece j masks with stream
    /// `first_stream + j` of `seed`, which must never serve twice, and draws its noise from the
    /// same streams of `noise_seed`.
    pub fn encrypt(
        &self,
        ring: &Ring,
        layout: &Layout,
        query: &[i64],
        seed: &[u8; 32],
        noise_seed: &[u8; 32],
        first_stream: u64,
    ) -> Vec<Ciphertext> {
        let q = ring.modulus();
        query
            .chunks(layout.chunk_len())
            .enumerate()
            .map(|(piece, values)| {
                let stream = first_stream + piece as u64;
                let mut errors = vec![0i32; DEGREE];
                Stream::new(noise_seed, stream).gaussian(&mut errors);
                let mut message = vec![0i64; DEGREE];
                for (index, value) in values.iter().enumerate() {
                    // X^(−i) = −X^(N − i) for i > 0.
                    let (place, signed) =
                        if index == 0 { (0, *value) } else { (DEGREE - index, -value) };
                    message[place] = signed;
                }
                let mut constant = vec![0; DEGREE];
                convert::lift_noisy(&mut constant, &message, &errors, q);
                errors.zeroize();
                message.zeroize();
                ring.tables()[0].forward(&mut constant);
                let linear = Ciphertext::mask(ring, seed, stream);
                let mut masked = vec![0; DEGREE];
                poly::mul(&mut masked, &linear, &self.residues, q);
                poly::sub_assign(&mut constant, &masked, q);
                masked.zeroize();
                Ciphertext::from_parts(constant, linear)
            })
            .collect()
    }
}
