//! Powers of residues for the key owner, in a time that depends on lengths alone.

use super::digits::window;
use super::group::{LANES, wipe};
use super::residues::Residues;
use super::scratch::Scratch;
use crate::backend::operands::montgomery::Row;

/// Bits that one multiplication takes of an exponent, balancing the table against the
/// multiplications saved.
fn window_bits(exponent_bits: usize) -> u32 {
    match exponent_bits {
        0..=64 => 3,
        65..=512 => 4,
        _ => 5,
    }
}

impl Residues {
    /// Every element to the power of one exponent, given in words, least significant first. The
    /// time depends on the number of words, not on their value.
    pub fn pow(&self, exponent: &[u64]) -> Residues {
        let (rows, columns) = (self.rows(), self.columns());
        if Residues::wastes_lanes(rows, columns) {
            return self.reshaped(1, rows * columns).pow(exponent).reshaped(rows, columns);
        }
        self.powers(64 * exponent.len(), |_, _, start, bits| window(exponent, start, bits))
    }

    /// Every element to the power of an exponent of its own: `exponents` holds equally many words
    /// for each, row after row. The time depends on the number of words, not on their value.
    ///
    /// # Panics
    /// If the words cannot be shared out equally.
    pub fn pow_each(&self, exponents: &[u64]) -> Residues {
        let count = self.rows() * self.columns();
        let words = exponents.len().checked_div(count).unwrap_or(0);
        assert_eq!(exponents.len(), words * count, "equally many words an exponent");
        if Residues::wastes_lanes(self.rows(), self.columns()) {
            let flat = self.reshaped(1, count).pow_each(exponents);
            return flat.reshaped(self.rows(), self.columns());
        }
        self.powers(64 * words, |row, column, start, bits| {
            let at = (row * self.columns() + column) * words;
            window(&exponents[at..at + words], start, bits)
        })
    }

    /// Fixed windows from the top, table reads that touch every entry.
    fn powers(
        &self,
        exponent_bits: usize,
        digit: impl Fn(usize, usize, usize, u32) -> u64 + Sync,
    ) -> Residues {
        let mut powers = self.clone();
        let one = &self.modulus().one;
        let bits = window_bits(exponent_bits);
        powers.for_each_group(|scratch, row, index, group| {
            let lanes = self.lanes(index);
            let mut table = table_of_powers(scratch, one, group, bits);
            let mut factor = vec![Row::default(); group.len()];
            group.copy_from_slice(one);
            for step in (0..exponent_bits.div_ceil(bits as usize)).rev() {
                if (step + 1) * (bits as usize) < exponent_bits {
                    (0..bits).for_each(|_| scratch.square(group));
                }
                let mut entry = [0; LANES];
                for (lane, entry) in entry.iter_mut().enumerate().take(lanes) {
                    *entry = digit(row, index * LANES + lane, step * bits as usize, bits);
                }
                scratch.select(&mut factor, &table, &entry);
                scratch.mul(group, &factor);
            }
            wipe(&mut table);
            wipe(&mut factor);
        });
        powers
    }
}

/// `x^0` to `x^(2^bits - 1)`, one group after the other.
fn table_of_powers(scratch: &mut Scratch<'_>, one: &[Row], x: &[Row], bits: u32) -> Vec<Row> {
    let mut table = Vec::with_capacity(x.len() << bits);
    table.extend_from_slice(one);
    let mut power = one.to_vec();
    for _ in 1..1 << bits {
        scratch.mul(&mut power, x);
        table.extend_from_slice(&power);
    }
    wipe(&mut power);
    table
}
