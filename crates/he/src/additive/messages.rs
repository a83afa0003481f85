//! Signed integers of one width, as two's-complement words. Wiped on drop.

use core::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Signed integers of `width` 64-bit words each, two's complement, little-endian, one after
/// another. Wiped on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Messages {
    width: usize,
    words: Vec<u64>,
}

impl Messages {
    /// `count` zeros of `width` words.
    ///
    /// # Panics
    /// If `width` is zero.
    pub fn zeros(width: usize, count: usize) -> Self {
        assert!(width > 0, "a message has at least one word");
        Messages { width, words: vec![0; width * count] }
    }

    /// One-word messages.
    pub fn from_i64(values: &[i64]) -> Self {
        Messages { width: 1, words: values.iter().map(|&value| value as u64).collect() }
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.words.len() / self.width
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Words a message.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The words of message `index`.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn row(&self, index: usize) -> &[u64] {
        &self.words[index * self.width..(index + 1) * self.width]
    }

    /// The words of message `index`, to be written.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn row_mut(&mut self, index: usize) -> &mut [u64] {
        &mut self.words[index * self.width..(index + 1) * self.width]
    }

    /// Whether message `index` is negative.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn is_negative(&self, index: usize) -> bool {
        self.row(index)[self.width - 1] >> 63 == 1
    }

    /// Whether message `index` is below `2^(bits - 1)` in absolute value, for `bits >= 1`.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn fits(&self, index: usize, bits: u32) -> bool {
        let row = self.row(index);
        let sign = 0u64.wrapping_sub(row[self.width - 1] >> 63);
        let mut excess = 0;
        let mut low = 0;
        for (at, &word) in row.iter().enumerate() {
            let first = 64 * at as u64;
            let kept = u64::from(bits - 1).saturating_sub(first).min(64);
            let mask = if kept == 64 { u64::MAX } else { (1 << kept) - 1 };
            excess |= (word ^ sign) & !mask;
            low |= word & mask;
        }
        // -2^(bits - 1) itself has no excess bit and nothing below it.
        excess == 0 && !(sign != 0 && low == 0)
    }

    /// Message `index`, if it fits one word.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn to_i64(&self, index: usize) -> Option<i64> {
        let row = self.row(index);
        let sign = 0u64.wrapping_sub(row[0] >> 63);
        row[1..].iter().all(|&word| word == sign).then_some(row[0] as i64)
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({} of {} words, redacted)", self.len(), self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_agrees_with_i128() {
        let edges = [0i64, 1, -1, 7, -7, 8, -8, 9, -9, i64::MAX, i64::MIN, i64::MIN + 1];
        for &value in &edges {
            for bits in 1..=64u32 {
                let expected = i128::from(value).abs() < 1i128 << (bits - 1);
                assert_eq!(Messages::from_i64(&[value]).fits(0, bits), expected, "{value} {bits}");
                let mut wide = Messages::zeros(3, 1);
                let sign = if value < 0 { u64::MAX } else { 0 };
                wide.row_mut(0).copy_from_slice(&[value as u64, sign, sign]);
                assert_eq!(wide.fits(0, bits), expected, "{value} {bits}, three words");
                assert_eq!(wide.to_i64(0), Some(value));
            }
        }
        let mut wide = Messages::zeros(2, 1);
        wide.row_mut(0).copy_from_slice(&[5, 1]);
        assert!(wide.fits(0, 66) && !wide.fits(0, 65) && wide.to_i64(0).is_none());
        assert_eq!(format!("{wide:?}"), "Messages(1 of 2 words, redacted)");
    }
}
