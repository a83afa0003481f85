//! Answers of the ring form. U and V enter; 24-bit coefficients leave: V whole, U only where a score stands. Server only, and its inverse at the owner.

use super::{DEGREE, Layout, RESPONSE_BITS, Ring, Sums};
use rayon::prelude::*;

const WIDTH: usize = RESPONSE_BITS as usize / 8;

/// Bytes of the answer of one query over `rows` vectors: per block N coefficients of V, then one of U a vector.
pub fn answer_len(layout: &Layout, rows: usize) -> usize {
    (layout.blocks(rows) * DEGREE + rows) * WIDTH
}

/// Appends the answer of one query over one segment.
pub fn append_answer(ring: &Ring, layout: &Layout, rows: usize, sums: &Sums, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + answer_len(layout, rows), 0);
    let switch = ModulusSwitch::new(ring.modulus().value());
    let per_block = (DEGREE + layout.vectors_per_block()) * WIDTH;
    out[start..].par_chunks_mut(per_block).enumerate().for_each(|(block, out)| {
        let (linear, constant) = out.split_at_mut(DEGREE * WIDTH);
        let polys = block * DEGREE..(block + 1) * DEGREE;
        for (out, value) in
            linear.as_chunks_mut::<WIDTH>().0.iter_mut().zip(&sums.linear[polys.clone()])
        {
            *out = switch.down(*value);
        }
        let poly = &sums.constant[polys];
        for (vector, out) in constant.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
            *out = switch.down(poly[layout.position(vector)]);
        }
    });
}

/// round(x · 2^24 / q) mod 2^24 and back.
#[derive(Clone, Copy)]
pub(super) struct ModulusSwitch {
    #[cfg(feature = "client")]
    modulus: u64,
    /// round(2^88 / q): one multiplication and its high half replace the division; relative error below 2⁻³⁸.
    reciprocal: u64,
}

impl ModulusSwitch {
    pub(super) fn new(modulus: u64) -> Self {
        let reciprocal =
            ((1u128 << (64 + RESPONSE_BITS)) + u128::from(modulus) / 2) / u128::from(modulus);
        ModulusSwitch {
            #[cfg(feature = "client")]
            modulus,
            reciprocal: reciprocal as u64,
        }
    }

    #[inline(always)]
    fn down(self, residue: u64) -> [u8; WIDTH] {
        let scaled = (u128::from(residue) * u128::from(self.reciprocal) + (1 << 63)) >> 64;
        let bytes = (scaled as u32).to_le_bytes();
        [bytes[0], bytes[1], bytes[2]]
    }

    #[cfg(feature = "client")]
    #[inline(always)]
    pub(super) fn up(self, bytes: [u8; WIDTH]) -> u64 {
        let value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        ((u128::from(value) * u128::from(self.modulus) + (1 << (RESPONSE_BITS - 1)))
            >> RESPONSE_BITS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switching_down_rounds_to_nearest() {
        let q = Ring::new().unwrap().modulus().value();
        let switch = ModulusSwitch::new(q);
        for index in 0..100_000u64 {
            let residue = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % q;
            let bytes = switch.down(residue);
            let got = u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
            let exact = (u128::from(residue) << RESPONSE_BITS) as f64 / q as f64;
            let distance = (got as f64 - exact).rem_euclid(f64::from(1 << 24));
            assert!(distance.min(f64::from(1 << 24) - distance) < 0.5001, "{residue}");
        }
    }

    #[cfg(feature = "client")]
    #[test]
    fn up_undoes_down_within_one_step() {
        let q = Ring::new().unwrap().modulus().value();
        let switch = ModulusSwitch::new(q);
        for residue in [0, 1, q / 3, q / 2, q - 1] {
            let back = switch.up(switch.down(residue)) % q;
            let distance = back.abs_diff(residue).min(q - back.abs_diff(residue));
            assert!(distance <= (q >> RESPONSE_BITS), "{residue} {back}");
        }
    }
}
