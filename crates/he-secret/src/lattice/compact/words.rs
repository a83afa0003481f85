//! Words that sums are computed in, of 32 or 64 bits, read from little-endian bytes of the stored
//! width. Owner only.

use super::{Width, serialize};
use ciphervec_arith::wrapping::{self, Unmasking};
use zeroize::Zeroize;

/// Words of one width: 24 bits are computed in 32 and cut.
pub enum Words {
    /// Of 24 or 32 bits.
    Narrow(Vec<u32>),
    /// Of 64 bits.
    Wide(Vec<u64>),
}

impl core::fmt::Debug for Words {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Words(redacted)")
    }
}

impl Zeroize for Words {
    fn zeroize(&mut self) {
        match self {
            Words::Narrow(words) => words.zeroize(),
            Words::Wide(words) => words.zeroize(),
        }
    }
}

impl Words {
    /// So many zeros.
    pub fn zeroed(width: Width, len: usize) -> Self {
        match width {
            Width::Wide => Words::Wide(vec![0; len]),
            Width::Standard | Width::Small => Words::Narrow(vec![0; len]),
        }
    }

    /// Integers, cut.
    pub(super) fn of(width: Width, words: impl Iterator<Item = u64>) -> Self {
        match width {
            Width::Wide => Words::Wide(words.collect()),
            Width::Standard | Width::Small => {
                Words::Narrow(words.map(|word| word as u32).collect())
            }
        }
    }

    /// Takes in little-endian words instead of those that are here.
    pub fn read(&mut self, width: Width, bytes: &[u8]) {
        match self {
            Words::Narrow(words) => {
                words.clear();
                match width {
                    Width::Small => {
                        let count = bytes.len() / width.word_bytes();
                        words.extend((0..count).map(|i| serialize::load::<3>(bytes, i) as u32));
                    }
                    _ => {
                        let each = bytes.as_chunks().0.iter();
                        words.extend(each.map(|word| u32::from_le_bytes(*word)));
                    }
                }
            }
            Words::Wide(words) => {
                words.clear();
                words.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
            }
        }
    }

    /// A sum for each row of `weights`, cut to the width's words.
    pub(super) fn dots(&self, width: Width, weights: &Words) -> Vec<u64> {
        let mask = u64::MAX >> (64 - width.word_bits());
        match (self, weights) {
            (Words::Narrow(x), Words::Narrow(weights)) => {
                let mut sums = vec![0; weights.len() / x.len().max(1)];
                wrapping::dots_u32(x, weights, &mut sums);
                sums.iter().map(|sum| u64::from(*sum) & mask).collect()
            }
            (Words::Wide(x), Words::Wide(weights)) => {
                let mut sums = vec![0; weights.len() / x.len().max(1)];
                wrapping::dots_u64(x, weights, &mut sums);
                sums
            }
            // One segment has words of one width.
            _ => Vec::new(),
        }
    }

    /// Words less the masks over them, modulo 2^Q and centred, and the same in units of `unit`; the
    /// least and the greatest.
    pub(super) fn differences(
        &self,
        width: Width,
        masks: &[u64],
        unit: f64,
        sums: &mut [i64],
        scaled: &mut [f64],
    ) -> (i64, i64) {
        let bits = width.ciphertext_modulus_bits();
        let by = Unmasking { dropped: width.dropped_bits(), bits, unit };
        match self {
            Words::Narrow(words) => wrapping::differences_u32(words, masks, by, sums, scaled),
            Words::Wide(words) => wrapping::differences_u64(words, masks, by, sums, scaled),
        }
    }

    /// One of them.
    pub(super) fn get(&self, index: usize) -> u64 {
        match self {
            Words::Narrow(words) => u64::from(words[index]),
            Words::Wide(words) => words[index],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Words::Narrow(words) => words.len() * 4,
            Words::Wide(words) => words.len() * 8,
        }
    }
}
