//! Reads and writes the limbs of one residue in a group of eight.

use crate::backend::operands::montgomery::Row;
use zeroize::Zeroize;

/// Residues that the kernels work on side by side.
pub const LANES: usize = 8;

/// Overwrites rows with zeros that the compiler may not leave out.
pub(super) fn wipe(rows: &mut [Row]) {
    rows.iter_mut().for_each(|row| row.0.zeroize());
}

/// Where the limbs of one residue lie in a group of `rows` rows whose limbs come `width` side by
/// side.
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
