//! A table of records as a server keeps it: polynomials of 14 bits a coefficient in NTT form, 3.57 times the
//! bytes of the records. Server only.

use super::{PAYLOAD_BITS, PAYLOAD_BYTES, Shape};
use crate::lattice::ring::{DEGREE, Grid, POLY_BYTES, Ring, deal_strips};
use ciphervec_arith::buffer::AlignedBytes;
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::{GROUP, pack50};
use ciphervec_arith::words::unpack_words;

/// The polynomials of a table.
pub struct Table {
    shape: Shape,
    data: AlignedBytes,
}

impl Table {
    /// The table of the records that `fill` writes: it is given a record's number and zeros in its length.
    pub fn new(ring: &Ring, shape: Shape, fill: impl Fn(usize, &mut [u8]) + Sync) -> Self {
        let (columns, nodes) = (shape.columns(), shape.nodes());
        let mut data = AlignedBytes::zeroed(shape.layers() * columns * nodes * POLY_BYTES);
        // Whole groups of columns, some for every thread.
        let batch = current_num_threads().next_multiple_of(GROUP);
        for (layer, out) in data.chunks_exact_mut(columns * nodes * POLY_BYTES).enumerate() {
            for first in (0..columns).step_by(batch) {
                let built: Vec<Vec<u8>> = (first..columns.min(first + batch))
                    .into_par_iter()
                    .map(|column| packed_column(ring, &shape, (layer, column), &fill))
                    .collect();
                deal_strips(out, (columns, nodes), first, &built);
            }
        }
        Table { shape, data }
    }

    /// What it holds.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    /// The polynomials of a layer, a block a column.
    pub(super) fn layer(&self, layer: usize) -> Grid<'_> {
        let (blocks, nodes) = (self.shape.columns(), self.shape.nodes());
        let length = blocks * nodes * POLY_BYTES;
        Grid { data: &self.data[layer * length..][..length], blocks, nodes }
    }
}

/// `[node][packed polynomial]` of one column; where there are no records, zeros.
fn packed_column(
    ring: &Ring,
    shape: &Shape,
    (layer, column): (usize, usize),
    fill: &impl Fn(usize, &mut [u8]),
) -> Vec<u8> {
    let mut packed = vec![0; shape.nodes() * POLY_BYTES];
    let mut record = vec![0; shape.record_len()];
    let (mut bytes, mut words) = ([0; PAYLOAD_BYTES], vec![0; DEGREE]);
    for (node, out) in packed.chunks_exact_mut(POLY_BYTES).enumerate() {
        let polynomial = column * shape.nodes() + node;
        if polynomial >= shape.polynomials() {
            break;
        }
        bytes.fill(0);
        let first = polynomial * shape.per_polynomial();
        let last = shape.records().min(first + shape.per_polynomial());
        for (index, number) in (first..last).enumerate() {
            record.fill(0);
            fill(number, &mut record);
            let part = record.chunks(PAYLOAD_BYTES).nth(layer).unwrap_or_default();
            bytes[index * shape.record_len()..][..part.len()].copy_from_slice(part);
        }
        whiten(shape, layer, polynomial, &mut bytes);
        unpack_words(&mut words, &bytes, PAYLOAD_BITS);
        let q = ring.modulus();
        for word in &mut words {
            let negative = *word >> (PAYLOAD_BITS - 1);
            *word += negative * (q.value() - (1 << PAYLOAD_BITS));
        }
        ring.tables()[0].forward(&mut words);
        pack50(&words, out);
    }
    packed
}

/// Adds public bits that depend on the place alone, or takes them off: coefficients are then uniform whatever the records
/// are, as the bound of the noise takes them to be.
pub fn whiten(shape: &Shape, layer: usize, polynomial: usize, bytes: &mut [u8; PAYLOAD_BYTES]) {
    let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 record-whitening");
    hasher.update(shape.name());
    hasher.update(&(layer as u64).to_le_bytes()).update(&(polynomial as u64).to_le_bytes());
    let mut pad = [0; PAYLOAD_BYTES];
    hasher.finalize_xof().fill(&mut pad);
    bytes.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
}
