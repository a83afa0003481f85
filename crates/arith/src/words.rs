//! Switches residues to words of a chosen number of bits, packed without gaps, and back.
//!
//! Every function is free of branches on its data and panics when its slices differ in length.

use crate::modulus::Modulus;

/// The widest word.
pub const MAX_WORD_BITS: u32 = 40;
/// Doubles from here to twice as much are the integers.
const INTEGERS: f64 = (1u64 << 52) as f64;

/// Bytes that so many words take, the last one filled up with zeros.
pub fn packed_len(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Modulus switching to `bits` bits: `round(x 2^bits / q) mod 2^bits` for residues `x` in `[0, q)`,
/// `q < 2^51`. Within `2^-11` of a tie either neighbour may come out, the same one on every machine.
pub fn switch_to_words(out: &mut [u64], poly: &[u64], m: &Modulus, bits: u32) {
    assert_eq!(out.len(), poly.len(), "residues");
    let (factor, mask) = (f64::from(1 << (bits / 2)), (1u64 << bits) - 1);
    let factor = factor * f64::from(1 << bits.div_ceil(2)) / exact(m, bits);
    for (out, &value) in out.iter_mut().zip(poly) {
        *out = (to_double(value) * factor + INTEGERS).to_bits() & mask;
    }
}

/// The way back: `x q / 2^bits` in `[0, q)`, to within one, for `x` below `2^bits`, `q < 2^51`.
pub fn switch_from_words(out: &mut [u64], words: &[u64], m: &Modulus, bits: u32) {
    assert_eq!(out.len(), words.len(), "words");
    let factor = exact(m, bits) / f64::from(1 << (bits / 2)) / f64::from(1 << bits.div_ceil(2));
    for (out, &word) in out.iter_mut().zip(words) {
        let value = to_double(word) * factor + INTEGERS;
        *out = value.to_bits() & ((1 << 52) - 1);
    }
}

/// Words below `2^bits` become [`packed_len`] bytes, lowest bits first.
pub fn pack_words(out: &mut [u8], words: &[u64], bits: u32) {
    assert_eq!(out.len(), packed_len(words.len(), bits), "bytes");
    let (mut held, mut filled, mut at) = (0u128, 0, 0);
    for &word in words {
        held |= u128::from(word) << filled;
        filled += bits;
        if filled >= 64 {
            out[at..at + 8].copy_from_slice(&(held as u64).to_le_bytes());
            (held, filled, at) = (held >> 64, filled - 64, at + 8);
        }
    }
    let rest = out.len() - at;
    out[at..].copy_from_slice(&held.to_le_bytes()[..rest]);
}

/// The inverse of [`pack_words`]; bits beyond the last word are passed over.
pub fn unpack_words(out: &mut [u64], bytes: &[u8], bits: u32) {
    assert_eq!(bytes.len(), packed_len(out.len(), bits), "bytes");
    let mask = (1u64 << bits) - 1;
    for (index, out) in out.iter_mut().enumerate() {
        let bit = index * bits as usize;
        let rest = &bytes[bit / 8..];
        // A word and up to seven bits before it fit eight bytes.
        let held = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut held = [0; 8];
            held[..rest.len()].copy_from_slice(rest);
            held
        });
        *out = u64::from_le_bytes(held) >> (bit % 8) & mask;
    }
}

fn exact(m: &Modulus, bits: u32) -> f64 {
    assert!(m.value() >> 51 == 0, "expected a modulus below 2^51");
    assert!((1..=MAX_WORD_BITS).contains(&bits), "expected words of 1 to {MAX_WORD_BITS} bits");
    to_double(m.value())
}

/// Integers below `2^52`, by their bits: unlike a conversion, a loop of this is one of vectors.
fn to_double(value: u64) -> f64 {
    f64::from_bits(value | INTEGERS.to_bits()) - INTEGERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntt_primes;

    fn numbers(count: u64, below: u64) -> Vec<u64> {
        let drawn = (0..count).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % below);
        drawn.chain([0, 1, below / 2, below - 1]).collect()
    }

    #[test]
    fn words_are_the_nearest_and_come_back_to_within_half_a_step() {
        for prime in ntt_primes(50, 4096, 2).unwrap() {
            let q = Modulus::new(prime).unwrap();
            let values = numbers(2000, prime);
            for bits in 1..=MAX_WORD_BITS {
                let mut words = vec![0; values.len()];
                switch_to_words(&mut words, &values, &q, bits);
                let mut back = words.clone();
                switch_from_words(&mut back, &words, &q, bits);
                for ((&value, &word), &back) in values.iter().zip(&words).zip(&back) {
                    assert!(word >> bits == 0 && back < prime);
                    let off =
                        (u128::from(value) << bits).abs_diff(u128::from(word) * u128::from(prime));
                    let whole = u128::from(prime) << bits;
                    let off = off.min(whole - off);
                    let half = u128::from(prime) / 2;
                    assert!(off <= half + (half >> 10), "{bits}: {value} {word}");
                    let exact = u128::from(word) * u128::from(prime);
                    assert!(
                        (u128::from(back) << bits).abs_diff(exact) <= 1 << bits,
                        "{bits}: {word} {back}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_width_and_count_packs_without_gaps() {
        for bits in 1..=MAX_WORD_BITS {
            for count in [0, 1, 2, 3, 7, 8, 9, 63, 64, 100] {
                let words: Vec<u64> =
                    numbers(count, 1 << bits).into_iter().take(count as usize).collect();
                let mut bytes = vec![0xff; packed_len(words.len(), bits)];
                pack_words(&mut bytes, &words, bits);
                for (at, word) in words.iter().enumerate() {
                    for bit in 0..bits as usize {
                        let place = at * bits as usize + bit;
                        assert_eq!(bytes[place / 8] >> (place % 8) & 1, (word >> bit & 1) as u8);
                    }
                }
                let mut back = vec![0; words.len()];
                unpack_words(&mut back, &bytes, bits);
                assert_eq!(back, words, "{bits}");
            }
        }
    }
}
