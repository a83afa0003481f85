//! Groups of eight residues enter, their products leave: the kernels with their scratch memory.

use super::LANES;
use super::modulus::PowerModulus;
use crate::backend::dispatch;
use crate::backend::products::Row;
use zeroize::Zeroize;

/// The kernels of one modulus, for the first `lanes` residues of each group.
pub(super) struct Worker<'a> {
    modulus: &'a PowerModulus,
    lanes: usize,
    product: Vec<Row>,
    digits: Vec<Row>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(modulus: &'a PowerModulus, lanes: usize) -> Self {
        Worker {
            modulus,
            lanes,
            product: vec![Row::default(); modulus.rows()],
            digits: vec![Row::default(); modulus.reduction.limbs],
        }
    }

    /// `x = x y`.
    pub(super) fn mul(&mut self, x: &mut [Row], y: &[Row]) {
        let m = self.modulus;
        dispatch::montgomery_mul(
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
        dispatch::montgomery_square(
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
        dispatch::montgomery_select(self.modulus.backend, out, table, index);
    }

    /// The same for a table of single residues.
    pub(super) fn select_single(&self, out: &mut [Row], table: &[u64], index: &[u64; 8]) {
        dispatch::montgomery_select_single(self.modulus.backend, out, table, index);
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        wipe(&mut self.product);
        wipe(&mut self.digits);
    }
}

/// Overwrites rows with zeros that the compiler may not leave out.
pub(super) fn wipe(rows: &mut [Row]) {
    rows.iter_mut().for_each(|row| row.0.zeroize());
}

/// Where the limbs of one residue lie in a group of `rows` rows whose limbs come `width` side by side.
fn places(width: usize, rows: usize, lane: usize) -> impl Iterator<Item = usize> {
    let first = lane / width * width * rows + lane % width;
    (0..rows).map(move |row| first + row * width)
}

/// The limbs of lane `lane` of a group.
pub(super) fn lane(width: usize, group: &[Row], lane: usize) -> impl Iterator<Item = u64> {
    let words: &[u64] = bytemuck::cast_slice(group);
    places(width, group.len(), lane).map(|at| words[at])
}

/// Overwrites the limbs of lane `lane` of a group.
pub(super) fn set_lane(
    width: usize,
    group: &mut [Row],
    lane: usize,
    limbs: impl IntoIterator<Item = u64>,
) {
    let places = places(width, group.len(), lane);
    let words: &mut [u64] = bytemuck::cast_slice_mut(group);
    places.zip(limbs).for_each(|(at, limb)| words[at] = limb);
}

/// Copies lane `from` of one group to lane `to` of another.
pub(super) fn copy_lane(width: usize, out: &mut [Row], to: usize, group: &[Row], from: usize) {
    set_lane(width, out, to, lane(width, group, from));
}

/// A group that holds one residue eight times.
pub(super) fn spread(width: usize, limbs: &[u64]) -> Vec<Row> {
    let mut group = vec![Row::default(); limbs.len()];
    (0..LANES).for_each(|lane| set_lane(width, &mut group, lane, limbs.iter().copied()));
    group
}
