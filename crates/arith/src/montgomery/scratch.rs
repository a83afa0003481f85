//! Montgomery kernels of one modulus with the memory they work in, on groups of eight residues.

use super::group::wipe;
use super::modulus::PowerModulus;
use crate::backend::dispatch;
use crate::backend::operands::montgomery::Row;

/// The kernels of one modulus, for the first `lanes` residues of each group.
pub(super) struct Scratch<'a> {
    modulus: &'a PowerModulus,
    pub(super) lanes: usize,
    product: Vec<Row>,
    digits: Vec<Row>,
}

impl<'a> Scratch<'a> {
    pub(super) fn new(modulus: &'a PowerModulus, lanes: usize) -> Self {
        Scratch {
            modulus,
            lanes,
            product: vec![Row::default(); modulus.rows()],
            digits: vec![Row::default(); modulus.reduction.limbs],
        }
    }

    /// Lanes whose limbs lie side by side.
    pub(super) fn width(&self) -> usize {
        self.modulus.format.width
    }

    /// `x = x y`.
    pub(super) fn mul(&mut self, x: &mut [Row], y: &[Row]) {
        let m = self.modulus;
        dispatch::montgomery::mul(
            m.backend,
            &m.reduction,
            self.lanes,
            &mut self.product,
            x,
            y,
            &mut self.digits,
        );
        x.copy_from_slice(&self.product);
    }

    /// `x = x^2`.
    pub(super) fn square(&mut self, x: &mut [Row]) {
        let m = self.modulus;
        dispatch::montgomery::square(
            m.backend,
            &m.reduction,
            self.lanes,
            &mut self.product,
            x,
            &mut self.digits,
        );
        x.copy_from_slice(&self.product);
    }

    /// `out = table[index]` in every lane, reading all of the table.
    pub(super) fn select(&self, out: &mut [Row], table: &[Row], index: &[u64; 8]) {
        dispatch::montgomery::select(self.modulus.backend, out, table, index);
    }

    /// The same for a table of single residues.
    pub(super) fn select_single(&self, out: &mut [Row], table: &[u64], index: &[u64; 8]) {
        dispatch::montgomery::select_single(self.modulus.backend, out, table, index);
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        wipe(&mut self.product);
        wipe(&mut self.digits);
    }
}
