//! Signed integers side by side in two's complement words.
//!
//! Slots of B bits hold s_0, s_1, … as Σ s_k 2^(Bk). A negative slot borrows from the one above it;
//! what was borrowed is the sign of all that lies below, and that is one bit: bit Bk − 1 of the
//! sum, as long as every |s_k| < 2^(B−1).

/// Adds `value · 2^shift` to two's complement `words`, modulo their width. The time does not depend
/// on the value.
///
/// # Panics
/// If `shift` is beyond the words.
pub(crate) fn add(words: &mut [u64], value: i64, shift: usize) {
    let (first, offset) = (shift / 64, shift % 64);
    let wide = i128::from(value) << offset;
    let sign = (value >> 63) as u64;
    let mut carry = false;
    for (at, word) in words[first..].iter_mut().enumerate() {
        let part = match at {
            0 => wide as u64,
            1 => (wide >> 64) as u64,
            _ => sign,
        };
        let (sum, over) = word.overflowing_add(part);
        let (sum, again) = sum.overflowing_add(u64::from(carry));
        (*word, carry) = (sum, over | again);
    }
}

/// The signed slot of `bits` bits (at most 128) that starts at bit `shift`, with what it lent to
/// the slots below. Bits beyond the words are copies of the sign.
pub fn read(words: &[u64], shift: usize, bits: u32) -> i128 {
    let sign = ((words[words.len() - 1] as i64) >> 63) as u64;
    let word = |at: usize| u128::from(words.get(at).copied().unwrap_or(sign));
    let (first, offset) = (shift / 64, shift % 64);
    let mut value = (word(first) | word(first + 1) << 64) >> offset;
    if offset > 0 {
        value |= word(first + 2) << (128 - offset);
    }
    let lent = match shift {
        0 => 0,
        _ => word((shift - 1) / 64) >> ((shift - 1) % 64) & 1,
    };
    let spare = 128 - bits;
    (value.wrapping_add(lent) << spare) as i128 >> spare
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slots_go_there_and_back(
            bits in 2u32..=64,
            seeds in proptest::collection::vec(any::<i64>(), 1..40),
            spare in 0usize..3,
        ) {
            // Every value below 2^(bits - 1) in absolute value.
            let values: Vec<i64> = seeds
                .iter()
                .map(|&seed| { let value = seed >> (64 - bits); value.max(-(i64::MAX >> (64 - bits))) })
                .collect();
            let mut words = vec![0; (values.len() * bits as usize).div_ceil(64) + spare];
            for (slot, &value) in values.iter().enumerate() {
                add(&mut words, value, slot * bits as usize);
            }
            for (slot, &value) in values.iter().enumerate() {
                prop_assert_eq!(read(&words, slot * bits as usize, bits), i128::from(value));
            }
        }

        #[test]
        fn sums_of_packed_values_are_packed_sums(
            left in proptest::collection::vec(-(1i64 << 28)..(1 << 28), 17),
            right in proptest::collection::vec(-(1i64 << 28)..(1 << 28), 17),
            weight in -3i64..4,
        ) {
            let mut words = vec![0; 9];
            for slot in 0..17 {
                add(&mut words, left[slot], slot * 32);
                add(&mut words, weight * right[slot], slot * 32);
            }
            for slot in 0..17 {
                prop_assert_eq!(read(&words, slot * 32, 32), i128::from(left[slot] + weight * right[slot]));
            }
        }
    }

    #[test]
    fn wide_slots_and_their_edges() {
        let mut words = [0u64; 4];
        let values = [i64::MIN, -1, i64::MAX];
        for (slot, &value) in values.iter().enumerate() {
            add(&mut words, value, slot * 85);
        }
        for (slot, &value) in values.iter().enumerate() {
            assert_eq!(read(&words, slot * 85, 85), i128::from(value));
        }
        assert_eq!(read(&[u64::MAX], 0, 128), -1);
        assert_eq!(read(&[u64::MAX - 4], 0, 95), -5);
        assert_eq!(read(&[5, u64::MAX], 0, 64), 5);
        assert_eq!(read(&[5, u64::MAX], 64, 64), -1);
    }
}
