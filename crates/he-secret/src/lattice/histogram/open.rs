//! Decryption, histogram scheme: the documents' secrets and a hint take the masks off the server's
//! sums of counts. Owner only.

use super::seal::secrets;
use super::{DEGREE, HINT_BITS, Hint, Histogram};
use crate::keys::{MasterKey, Secret};
use crate::lattice::SegmentId;
use ciphervec_arith::parallel::*;
use ciphervec_arith::sample::Stream;
use zeroize::Zeroize;

/// The secrets of the documents of one nonce, ready to remove their masks.
pub struct Opener<'a> {
    scheme: &'a Histogram,
    secrets: Secret,
}

impl<'a> Opener<'a> {
    /// Derives the secrets of what was sealed under `id`.
    pub fn derive(
        scheme: &'a Histogram,
        master: &MasterKey,
        binding: &[u8],
        id: SegmentId,
    ) -> Self {
        Opener { scheme, secrets: secrets(scheme, master, binding, id) }
    }

    /// Removes the masks from sums as [`Histogram::scan`] gives them: `Σ_i w_i x_i` for every
    /// document and output, document-major, the noise still in it.
    ///
    /// These are exact decryptions: they must be rounded before anyone but the key owner sees them.
    ///
    /// # Panics
    /// When there are not as many sums as documents times outputs of the hint.
    pub fn open(&self, hint: &Hint, sums: &[u64]) -> Vec<i64> {
        let outputs = hint.outputs();
        let rows = sums.len() / outputs.max(1);
        assert_eq!(rows * outputs, sums.len(), "a sum for every output of every document");
        let mut out = vec![0i64; sums.len()];
        let lift = self.scheme.word_bits() - HINT_BITS;
        let shift = 64 - self.scheme.word_bits();
        out.par_chunks_mut(outputs.max(1)).enumerate().for_each(|(row, out)| {
            let mut ternary = vec![0i8; DEGREE];
            Stream::new(self.secrets.expose(), row as u64).ternary(&mut ternary);
            for (output, out) in out.iter_mut().enumerate() {
                let values = &hint.values()[output * DEGREE..][..DEGREE];
                let mask = values.iter().zip(&ternary).fold(0u32, |sum, (value, &digit)| {
                    sum.wrapping_add(value.wrapping_mul(i32::from(digit) as u32))
                });
                let difference = sums[output * rows + row].wrapping_sub(u64::from(mask) << lift);
                // Modulo 2^W, centred.
                *out = (difference << shift) as i64 >> shift;
            }
            ternary.zeroize();
        });
        out
    }
}

impl core::fmt::Debug for Opener<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Opener(redacted)")
    }
}
