//! A base and a length of exponents enter, a table leaves that raises the base to any of them without a squaring.

use std::sync::Arc;

use super::LANES;
use super::digits::window;
use super::modulus::PowerModulus;
use super::residues::Residues;
use super::worker::{self, Worker, copy_lane, set_lane, wipe};
use crate::backend::products::Row;
use zeroize::Zeroize;

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
    /// Windows of five bits: reading all 32 entries of a window costs a fifth to a third of the multiplication it is
    /// for, and four or six bits come out dearer.
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
        let mut worker = Worker::new(modulus, 1);
        let mut full = Worker::new(modulus, LANES);
        let mut base = base.group(0, 0).to_vec();
        // Eight windows at a time, one a lane.
        for (at, windows) in table.chunks_mut((LANES * size) << window).enumerate() {
            let count = windows.len() / (size << window);
            let mut step = modulus.one.clone();
            for lane in 0..count {
                if at + lane > 0 {
                    (0..window).for_each(|_| worker.square(&mut base));
                }
                copy_lane(width, &mut step, lane, &base, 0);
            }
            let mut power = modulus.one.clone();
            for entry in 0..1 << window {
                if entry > 0 {
                    full.mul(&mut power, &step);
                }
                for (lane, window) in windows.chunks_mut(size << window).enumerate() {
                    let place = &mut window[entry * size..(entry + 1) * size];
                    place
                        .iter_mut()
                        .zip(worker::lane(width, &power, lane))
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

    /// The base to the power of `rows * columns` exponents, row after row, each [`Comb::exponent_words`] words. Every
    /// read touches all entries of its window, so the time does not depend on the exponents.
    ///
    /// # Panics
    /// For another number of words.
    pub fn pow(&self, rows: usize, columns: usize, exponents: &[u64]) -> Residues {
        self.powers(rows, columns, exponents, |worker, factor, entries, index| {
            worker.select_single(factor, entries, index);
        })
    }

    /// The same, reading only the entries it needs: another process on the same processor can learn the exponents from
    /// the cache lines that were touched.
    ///
    /// # Panics
    /// For another number of words.
    pub fn pow_vartime(&self, rows: usize, columns: usize, exponents: &[u64]) -> Residues {
        let width = self.modulus.format.width;
        self.powers(rows, columns, exponents, |_, factor, entries, index| {
            for (lane, &index) in index.iter().enumerate() {
                let entry = &entries[index as usize * factor.len()..][..factor.len()];
                set_lane(width, factor, lane, entry.iter().copied());
            }
        })
    }

    fn powers(
        &self,
        rows: usize,
        columns: usize,
        exponents: &[u64],
        read: impl Fn(&Worker<'_>, &mut [Row], &[u64], &[u64; LANES]) + Sync,
    ) -> Residues {
        let words = self.exponent_words();
        assert_eq!(
            exponents.len(),
            rows * columns * words,
            "words for {rows} x {columns} exponents"
        );
        if Residues::wastes_lanes(rows, columns) {
            return self.powers(1, rows * columns, exponents, read).reshaped(rows, columns);
        }
        let mut powers = Residues::ones(&self.modulus, rows, columns);
        let entries = self.modulus.rows() << self.window;
        powers.for_each_group(|worker, row, index, group| {
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
                    read(worker, group, table, &at);
                } else {
                    read(worker, &mut factor, table, &at);
                    worker.mul(group, &factor);
                }
            }
            wipe(&mut factor);
        });
        powers
    }
}
