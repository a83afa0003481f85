//! Samplers of the key owner's noise and of public masks (both sides), from a 32-byte seed and a
//! stream number: the same samples on every machine.
//!
//! A stream is the ChaCha20 keystream (RFC 8439, counter from 0) under the seed, with the stream
//! number in little-endian order, padded with four zero bytes, as nonce. Each sampler reads the
//! bytes it documents and no more, in order, so samples are a function of (seed, stream, sequence
//! of calls).

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use zeroize::{Zeroize, Zeroizing};

use crate::backend::dispatch;
use crate::backend::operands::sample::WIDE;
use crate::modulus::Modulus;

pub use crate::backend::operands::sample::{GAUSSIAN_BOUND, GAUSSIAN_SIGMA};

/// Words of keystream drawn at a time: 8 KiB, a quarter of a first-level cache.
const CHUNK: usize = 1024;
/// Samples for which clearing room for a whole chunk would take longer than drawing them.
const FEW: usize = 64;

/// A keystream and the samplers that read it. Not cloneable: two readers of one stream would repeat
/// noise.
pub struct Stream {
    cipher: ChaCha20,
    key: Zeroizing<[u8; 32]>,
    nonce: [u8; 12],
}

/// Bytes of a keystream block.
const BLOCK: u64 = 64;

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream(..)")
    }
}

impl Stream {
    /// The stream with this number under this seed. The cipher's state is wiped on drop.
    pub fn new(seed: &[u8; 32], stream: u64) -> Self {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&stream.to_le_bytes());
        let cipher = ChaCha20::new(seed.into(), &nonce.into());
        Stream { cipher, key: Zeroizing::new(*seed), nonce }
    }

    /// The next bytes of the keystream.
    ///
    /// # Panics
    /// After 256 GiB, where the block counter ends.
    pub fn fill(&mut self, out: &mut [u8]) {
        let done = self.fill_wide(out);
        out[done..].fill(0);
        self.cipher.apply_keystream(&mut out[done..]);
    }

    /// Fills the front of `out` with the back-end's own kernel, where it has one and `out` is long;
    /// returns how far.
    fn fill_wide(&mut self, out: &mut [u8]) -> usize {
        let position: u64 = self.cipher.current_pos();
        let head = (position.wrapping_neg() % BLOCK) as usize;
        let length = out.len().saturating_sub(head) / WIDE * WIDE;
        let end = position + (head + length) as u64;
        // The counter of the last block must fit 32 bits with room for one more.
        if length == 0 || end / BLOCK >= u64::from(u32::MAX) {
            return 0;
        }
        let counter = (position.div_ceil(BLOCK)) as u32;
        let wide = out[head..head + length].as_chunks_mut::<WIDE>().0;
        if !dispatch::sample::keystream(&self.key, &self.nonce, counter, wide) {
            return 0;
        }
        out[..head].fill(0);
        self.cipher.apply_keystream(&mut out[..head]);
        self.cipher.seek(end);
        head + length
    }

    /// Goes to this byte of the keystream.
    ///
    /// # Panics
    /// Beyond 256 GiB, where the block counter ends.
    pub fn seek(&mut self, position: u64) {
        self.cipher.seek(position);
    }

    /// The next words of the keystream, little-endian.
    fn words(&mut self, out: &mut [u64]) {
        self.fill(bytemuck::cast_slice_mut(out));
        for word in out {
            *word = u64::from_le(*word);
        }
    }

    /// Uniform residues in `[0, q)`. Each try reads 8 bytes as a little-endian word and keeps its
    /// low `ceil(log2 q)` bits if they are below `q`. Time depends on how many tries fail, which
    /// says nothing about the residues kept.
    pub fn uniform(&mut self, m: &Modulus, out: &mut [u64]) {
        let q = m.value();
        let mask = u64::MAX >> (q - 1).leading_zeros();
        for part in out.chunks_mut(CHUNK) {
            let mut done = 0;
            while done < part.len() {
                let (kept, room) = part.split_at_mut(done);
                self.words(room);
                done = kept.len() + dispatch::sample::accept(room, mask, q);
            }
        }
    }

    /// Uniform integers below `2^bits`: the low bits of one little-endian word of 8 bytes each.
    ///
    /// # Panics
    /// Unless `bits <= 64`.
    pub fn uniform_bits(&mut self, bits: u32, out: &mut [u64]) {
        assert!(bits <= 64, "expected at most 64 bits, got {bits}");
        let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
        for part in out.chunks_mut(CHUNK) {
            self.words(part);
            part.iter_mut().for_each(|x| *x &= mask);
        }
    }

    /// Uniform ternary values. A byte below 243 gives five, its base-3 digits minus one from the
    /// least significant on; other bytes are skipped, and so are the digits left of the last byte
    /// of a call.
    pub fn ternary(&mut self, out: &mut [i8]) {
        let mut bytes = [0u8; CHUNK];
        let mut done = 0;
        while done < out.len() {
            let need = (out.len() - done).div_ceil(5).min(CHUNK);
            self.fill(&mut bytes[..need]);
            for &byte in bytes[..need].iter().filter(|&&byte| byte < 243) {
                let take = (out.len() - done).min(5);
                digits(byte, &mut out[done..done + take]);
                done += take;
            }
        }
        bytes.zeroize();
    }

    /// Discrete Gaussian samples with sigma 3.2, `|e| <=` [`GAUSSIAN_BOUND`], in constant time.
    /// Each reads 8 bytes as a little-endian word: the top bit is the sign, the magnitude is the
    /// number of `k` with the other 63 bits below `2^63 P(|X| >= k)`.
    pub fn gaussian(&mut self, out: &mut [i32]) {
        if out.len() <= FEW { self.gaussian_by::<FEW>(out) } else { self.gaussian_by::<CHUNK>(out) }
    }

    fn gaussian_by<const ROOM: usize>(&mut self, out: &mut [i32]) {
        let mut words = [0u64; ROOM];
        for part in out.chunks_mut(ROOM) {
            let words = &mut words[..part.len()];
            self.words(words);
            dispatch::sample::gaussian(words, part);
        }
        words[..out.len().min(ROOM)].zeroize();
    }
}

/// The low base-3 digits of `byte`, minus one. Dividing by 3 as `(171 x) >> 9` is exact below 512
/// and takes constant time.
#[inline(always)]
fn digits(byte: u8, out: &mut [i8]) {
    let mut rest = u32::from(byte);
    for digit in out {
        let third = (rest * 171) >> 9;
        *digit = (rest - 3 * third) as i8 - 1;
        rest = third;
    }
}
