//! Encryption, histogram scheme: seals rows of counts under a fresh nonce as the words that a
//! server scans. Owner only.

use super::{DEGREE, Histogram, Masks};
use crate::error::Result;
use crate::keys::{MasterKey, Purpose, Secret};
use crate::lattice::{Plaintext, SegmentId, nonce};
use crate::random::random_bytes;
use ciphervec_arith::matmul::TILE;
use ciphervec_arith::parallel::*;
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{convert, poly};
use zeroize::{Zeroize, Zeroizing};

/// Seals every row of `plaintext`, integers below half of 2^W, under a nonce that is drawn here and
/// never again. The words stand in tile layout, as [`Histogram::scan`] reads them.
///
/// Every document has a secret of its own. The noise comes from the operating system's generator
/// and is independent of the nonce.
///
/// # Errors
/// If the operating system's generator fails.
pub fn seal(
    scheme: &Histogram,
    masks: &Masks,
    master: &MasterKey,
    binding: &[u8],
    plaintext: &impl Plaintext,
) -> Result<(SegmentId, Vec<u8>)> {
    let id = nonce::draw(master, binding, plaintext)?;
    let secrets = secrets(scheme, master, binding, id);
    let noise = Zeroizing::new(random_bytes::<32>()?);
    let dimension = plaintext.dimension();
    let mut words = vec![0; scheme.words_len(plaintext.rows(), dimension)];
    let tiles = words.par_chunks_mut(TILE * dimension * scheme.word_bytes());
    tiles.enumerate().for_each(|(tile, out)| {
        let height = out.len() / (dimension * scheme.word_bytes());
        let mut scratch = Scratch::new(dimension);
        for offset in 0..height {
            let row = tile * TILE + offset;
            scratch.seal(scheme, masks, &secrets, &noise, (row, plaintext));
            let values = scratch.words.iter();
            match scheme.word_bytes() {
                4 => store::<4>(values, out, (height, offset)),
                5 => store::<5>(values, out, (height, offset)),
                _ => store::<6>(values, out, (height, offset)),
            }
        }
    });
    Ok((id, words))
}

/// The seed of the secrets of all documents that were sealed under one nonce.
pub(super) fn secrets(
    scheme: &Histogram,
    master: &MasterKey,
    binding: &[u8],
    id: SegmentId,
) -> Secret {
    master.derive(Purpose::SegmentSecret, &[binding, b"counts", &scheme.param_id().0, &id.0])
}

/// The words of one document of a tile of `height`.
fn store<'a, const WIDTH: usize>(
    values: impl Iterator<Item = &'a u64>,
    out: &mut [u8],
    (height, offset): (usize, usize),
) {
    let out = out.as_chunks_mut::<WIDTH>().0;
    for (to, value) in out[offset..].iter_mut().step_by(height).zip(values) {
        to.copy_from_slice(&value.to_le_bytes()[..WIDTH]);
    }
}

/// Buffers of one thread, wiped on drop: all of them hold what a document hides.
struct Scratch {
    counts: Vec<i64>,
    words: Vec<u64>,
    ternary: Vec<i8>,
    secret: Vec<u64>,
    product: Vec<u64>,
    errors: Vec<i32>,
}

impl Scratch {
    fn new(dimension: usize) -> Self {
        Scratch {
            counts: vec![0; dimension],
            words: vec![0; dimension],
            ternary: vec![0; DEGREE],
            secret: vec![0; DEGREE],
            product: vec![0; DEGREE],
            errors: vec![0; dimension],
        }
    }

    /// Leaves the words of document `row` in `self.words`.
    fn seal(
        &mut self,
        scheme: &Histogram,
        masks: &Masks,
        secrets: &Secret,
        noise: &[u8; 32],
        (row, plaintext): (usize, &impl Plaintext),
    ) {
        let modulus = scheme.table().modulus();
        let switch = scheme.switch();
        Stream::new(secrets.expose(), row as u64).ternary(&mut self.ternary);
        convert::lift_ternary(&mut self.secret, &self.ternary, modulus);
        scheme.table().forward(&mut self.secret);
        Stream::new(noise, row as u64).gaussian(&mut self.errors);
        plaintext.fill(row, 0..self.counts.len(), &mut self.counts);
        let parts = self.words.chunks_mut(DEGREE).zip(self.errors.chunks(DEGREE));
        for ((mask, counts), (words, errors)) in
            masks.polys().iter().zip(self.counts.chunks(DEGREE)).zip(parts)
        {
            poly::mul(&mut self.product, mask, &self.secret, modulus);
            scheme.table().inverse(&mut self.product);
            let masked = self.product.iter().zip(errors).zip(counts);
            for (word, ((product, error), count)) in words.iter_mut().zip(masked) {
                // Between −29 and q + 28: a wrap-around of q is one of 2^W, up to 2^-4 of a step.
                let noisy = (*product as i64 + i64::from(*error)) as f64;
                let switched = (noisy * switch).round_ties_even() as i64;
                *word = switched.wrapping_add(*count) as u64;
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.counts.zeroize();
        self.words.zeroize();
        self.ternary.zeroize();
        self.secret.zeroize();
        self.product.zeroize();
        self.errors.zeroize();
    }
}
