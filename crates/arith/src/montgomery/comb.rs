//! Table of powers of a fixed base, which raises it to any exponent without a squaring.

use std::hint::black_box;
use std::sync::Arc;

use super::digits::window;
use super::group::{LANES, copy_lane, lane, set_lane, wipe};
use super::modulus::PowerModulus;
use super::residues::Residues;
use super::scratch::Scratch;
use crate::backend::operands::montgomery::Row;
use zeroize::{Zeroize, Zeroizing};

/// Powers of one base: entry `v` of window `j` is `base^(v 2^(w j))`. Wiped on drop.
pub struct Comb {
    modulus: Arc<PowerModulus>,
    window: u32,
    exponent_bits: u32,
    /// `2^w` residues a window, limbs as the kernels store them.
    table: Vec<u64>,
}

impl core::fmt::Debug for Comb {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Comb({} bits, windows of {}, redacted)", self.exponent_bits, self.window)
    }
}

impl Drop for Comb {
    fn drop(&mut self) {
        self.table.zeroize();
    }
}

impl Comb {
    /// Windows of five bits: four or six came out dearer on every back-end. Reading all 32 entries
    /// of a window makes a power a tenth (512 bits) to two fifths (plain code) slower than reading
    /// the one that is needed.
    pub const WINDOW: u32 = 5;

    /// The table for exponents below `2^exponent_bits`, with windows that suit [`Comb::pow`].
    ///
    /// # Panics
    /// Unless `base` is a single element.
    pub fn new(base: &Residues, exponent_bits: u32) -> Comb {
        Comb::with_window(base, exponent_bits, Comb::WINDOW)
    }

    /// The same with windows of `window` bits; wide ones suit [`Comb::pow_vartime`]. The table has
    /// `2^window / window` entries for every bit of the exponent.
    ///
    /// # Panics
    /// Unless `base` is a single element and `window` is 1 to 16.
    pub fn with_window(base: &Residues, exponent_bits: u32, window: u32) -> Comb {
        assert!(base.rows() == 1 && base.columns() == 1, "the base is a single element");
        assert!((1..=16).contains(&window), "windows of 1 to 16 bits");
        assert!(exponent_bits > 0, "exponents of one bit or more");
        let modulus = base.modulus();
        let windows = exponent_bits.div_ceil(window) as usize;
        let (size, width) = (modulus.rows(), modulus.format.width);
        let mut table = vec![0; (windows * size) << window];
        let mut scratch = Scratch::new(modulus, 1);
        let mut full = Scratch::new(modulus, LANES);
        let mut base = base.group(0, 0).to_vec();
        // Eight windows at a time, one a lane.
        for (at, windows) in table.chunks_mut((LANES * size) << window).enumerate() {
            let count = windows.len() / (size << window);
            let mut step = modulus.one.clone();
            for lane in 0..count {
                if at + lane > 0 {
                    (0..window).for_each(|_| scratch.square(&mut base));
                }
                copy_lane(width, &mut step, lane, &base, 0);
            }
            let mut power = modulus.one.clone();
            for entry in 0..1 << window {
                if entry > 0 {
                    full.mul(&mut power, &step);
                }
                for (at, window) in windows.chunks_mut(size << window).enumerate() {
                    let place = &mut window[entry * size..(entry + 1) * size];
                    place
                        .iter_mut()
                        .zip(lane(width, &power, at))
                        .for_each(|(word, limb)| *word = limb);
                }
            }
            wipe(&mut step);
            wipe(&mut power);
        }
        wipe(&mut base);
        Comb { modulus: Arc::clone(modulus), window, exponent_bits, table }
    }

    /// 64-bit words of an exponent.
    pub fn exponent_words(&self) -> usize {
        self.exponent_bits.div_ceil(64) as usize
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> usize {
        8 * self.table.len()
    }

    /// The base to the power of `rows * columns` exponents, row after row, each
    /// [`Comb::exponent_words`] words. Every read touches all entries of its window, so the time
    /// does not depend on the exponents.
    ///
    /// # Panics
    /// For another number of words.
    pub fn pow(&self, rows: usize, columns: usize, exponents: &[u64]) -> Residues {
        self.powers(rows, columns, exponents, Reads::All)
    }

    /// The same, reading only the entries it needs: another process on the same processor can learn
    /// the exponents from the cache lines that were touched.
    ///
    /// # Panics
    /// For another number of words.
    pub fn pow_vartime(&self, rows: usize, columns: usize, exponents: &[u64]) -> Residues {
        self.powers(rows, columns, exponents, Reads::Needed)
    }

    fn powers(&self, rows: usize, columns: usize, exponents: &[u64], reads: Reads) -> Residues {
        let words = self.exponent_words();
        let count = rows * columns;
        assert_eq!(exponents.len(), count * words, "words for {rows} x {columns} exponents");
        if (1..=LANES / 2).contains(&count) {
            return self.few_powers(count, exponents, reads).reshaped(rows, columns);
        }
        if Residues::wastes_lanes(rows, columns) {
            return self.powers(1, count, exponents, reads).reshaped(rows, columns);
        }
        let mut powers = Residues::ones(&self.modulus, rows, columns);
        let entries = self.modulus.rows() << self.window;
        powers.for_each_group(|scratch, row, index, group| {
            let first = row * columns + index * LANES;
            let exponents =
                &exponents[first * words..(first + (columns - index * LANES).min(LANES)) * words];
            let mut factor = vec![Row::default(); group.len()];
            for (step, table) in self.table.chunks(entries).enumerate() {
                let mut at = [0; LANES];
                for (at, exponent) in at.iter_mut().zip(exponents.chunks(words)) {
                    *at = window(exponent, step * self.window as usize, self.window);
                }
                if step == 0 {
                    reads.group(scratch, group, table, &at);
                } else {
                    reads.group(scratch, &mut factor, table, &at);
                    scratch.mul(group, &factor);
                }
            }
            wipe(&mut factor);
        });
        powers
    }

    /// Up to four powers as one row: the lanes share the windows of each, and what they gathered is
    /// multiplied last.
    fn few_powers(&self, count: usize, exponents: &[u64], reads: Reads) -> Residues {
        let (size, width) = (self.modulus.rows(), self.modulus.format.width);
        let words = self.exponent_words();
        let entries = size << self.window;
        // 8, 4, 2 and 2 for one to four.
        let shares = 1 << (LANES / count).ilog2();
        let steps = (self.table.len() / entries).div_ceil(shares);
        let mut scratch = Scratch::new(&self.modulus, LANES);
        let (mut powers, mut factor) = (self.modulus.one.clone(), self.modulus.one.clone());
        let mut limbs = Zeroizing::new(vec![0; size]);
        for step in 0..steps {
            for (at, exponent) in exponents.chunks(words).enumerate() {
                for share in 0..shares {
                    let position = share * steps + step;
                    let Some(table) = self.table.chunks(entries).nth(position) else {
                        // Windows past the last one are zero: their factor is the first entry of
                        // any window.
                        set_lane(
                            width,
                            &mut factor,
                            share * count + at,
                            self.table[..size].iter().copied(),
                        );
                        continue;
                    };
                    let index = window(exponent, position * self.window as usize, self.window);
                    reads.single(&mut limbs, table, index);
                    set_lane(width, &mut factor, share * count + at, limbs.iter().copied());
                }
            }
            scratch.mul(&mut powers, &factor);
        }
        let mut half = shares / 2;
        while half > 0 {
            factor.copy_from_slice(&powers);
            for lane in 0..half * count {
                copy_lane(width, &mut factor, lane, &powers, lane + half * count);
            }
            scratch.mul(&mut powers, &factor);
            half /= 2;
        }
        wipe(&mut factor);
        Residues::from_groups(&self.modulus, 1, count, powers)
    }
}

/// Which entries of a window are read.
#[derive(Clone, Copy)]
enum Reads {
    /// All of them, whatever the exponent.
    All,
    /// The one that is needed.
    Needed,
}

impl Reads {
    /// `out = table[index]` lane by lane, from a table of single residues.
    fn group(self, scratch: &Scratch<'_>, out: &mut [Row], table: &[u64], index: &[u64; LANES]) {
        match self {
            Reads::All => scratch.select_single(out, table, index),
            Reads::Needed => {
                let width = scratch.width();
                for (lane, &index) in index.iter().enumerate() {
                    let entry = &table[index as usize * out.len()..][..out.len()];
                    set_lane(width, out, lane, entry.iter().copied());
                }
            }
        }
    }

    /// `out = table[index]` for one residue.
    fn single(self, out: &mut [u64], table: &[u64], index: u64) {
        match self {
            Reads::All => {
                out.fill(0);
                for (entry, limbs) in (0..).zip(table.chunks(out.len())) {
                    // Hidden from the optimiser, which could turn the mask into a branch.
                    let mask = black_box(is_zero(index ^ entry));
                    out.iter_mut().zip(limbs).for_each(|(out, limb)| *out |= mask & limb);
                }
            }
            Reads::Needed => {
                let size = out.len();
                out.copy_from_slice(&table[index as usize * size..][..size]);
            }
        }
    }
}

/// All ones for zero, zero for anything below 2^63, without a branch.
fn is_zero(x: u64) -> u64 {
    0u64.wrapping_sub(x.wrapping_sub(1) >> 63)
}
