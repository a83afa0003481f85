//! Public masks a_r: a seed enters, polynomials and products with a query leave. Both sides.

use super::expand::Expanded;
use super::scan::products;
use super::{
    AnswerWords, DEGREE, Half, Layout, MAX_LEVEL, POLY_BYTES, PRIME_BITS, Ring, unpack_poly,
};
use crate::error::Result;
use crate::wire::Reader;
use ciphervec_arith::AlignedBytes;
use ciphervec_arith::ring::{self, STRIP, STRIP_BYTES};
use ciphervec_arith::sample::Stream;
use ciphervec_arith::words::{
    pack_words, packed_len, switch_from_words, switch_to_words, unpack_words,
};
use std::sync::OnceLock;

/// Masks, expanded from their seed when first needed.
pub struct Masks {
    seed: [u8; 32],
    /// For sealing: a_r as polynomials.
    nodes: Vec<OnceLock<Vec<u64>>>,
    /// For answering: the masks of one level as if they were one block of a segment.
    levels: Vec<OnceLock<AlignedBytes>>,
}

impl Masks {
    /// The masks of a collection of `dimension` dimensions.
    pub fn new(seed: [u8; 32], dimension: usize) -> Self {
        // No level has more nodes than there are dimensions.
        let nodes = (0..dimension).map(|_| OnceLock::new()).collect();
        Masks { seed, nodes, levels: (0..=MAX_LEVEL).map(|_| OnceLock::new()).collect() }
    }

    /// The seed: public.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    fn expand(&self, ring: &Ring, node: usize) -> Vec<u64> {
        let mut mask = vec![0; DEGREE];
        Stream::new(&self.seed, node as u64).uniform(ring.modulus(), &mut mask);
        mask
    }

    /// a_r of node `node`, NTT form.
    #[cfg(feature = "client")]
    pub(super) fn node(&self, ring: &Ring, node: usize) -> &[u64] {
        self.nodes[node].get_or_init(|| self.expand(ring, node))
    }

    fn packed(&self, ring: &Ring, layout: &Layout) -> &AlignedBytes {
        self.levels[usize::from(layout.level())].get_or_init(|| {
            let nodes = layout.nodes();
            let mut data = AlignedBytes::zeroed(nodes * POLY_BYTES);
            for node in 0..nodes {
                for (strip, residues) in
                    self.expand(ring, node).as_chunks::<STRIP>().0.iter().enumerate()
                {
                    let place = (strip * nodes + node) * STRIP_BYTES;
                    ring::pack50(residues, &mut data.as_mut_slice()[place..][..STRIP_BYTES]);
                }
            }
            data
        })
    }

    /// Bytes expanded so far.
    pub fn bytes(&self) -> usize {
        let polynomials =
            self.nodes.iter().filter(|node| node.get().is_some()).count() * DEGREE * 8;
        polynomials
            + self.levels.iter().filter_map(OnceLock::get).map(AlignedBytes::len).sum::<usize>()
    }
}

/// (Σ a_r c0_r, Σ a_r c1_r) of one query at one level, NTT form: what the owner multiplies by a
/// block's secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MaskSums {
    pub(super) constant: Vec<u64>,
    pub(super) linear: Vec<u64>,
}

impl MaskSums {
    /// The server's sums for expanded queries of one level: the masks are scanned like one block of
    /// a segment.
    pub fn compute(
        ring: &Ring,
        masks: &Masks,
        layout: &Layout,
        queries: &[&Expanded],
    ) -> Vec<Self> {
        let one_block = layout.vectors_per_block();
        let sums = products(ring, layout, masks.packed(ring, layout), one_block, 0..1, queries);
        sums.iter()
            .map(|sums| MaskSums {
                constant: sums.constant(0).to_vec(),
                linear: sums.linear(0).to_vec(),
            })
            .collect()
    }

    /// Writes both sums to [`AnswerWords::sums_len`] bytes: residues in NTT form as they are, or
    /// coefficients of fewer bits.
    ///
    /// # Panics
    /// If `out` has another length.
    pub fn write(&self, ring: &Ring, words: AnswerWords, out: &mut [u8]) {
        let (constant, linear) = out.split_at_mut(words.sum_len(Half::Constant));
        write_sum(ring, words, Half::Constant, &self.constant, constant);
        write_sum(ring, words, Half::Linear, &self.linear, linear);
    }

    /// Writes the same half of the sums of the first query, and of the second where there is one, as
    /// [`super::expand_halves`] put them together. Each of `outs` has [`AnswerWords::sum_len`] bytes.
    pub fn write_halves(
        &self,
        ring: &Ring,
        words: AnswerWords,
        half: Half,
        outs: &mut [&mut [u8]],
    ) {
        for (sum, out) in [&self.constant, &self.linear].into_iter().zip(outs) {
            write_sum(ring, words, half, sum, out);
        }
    }

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// Too few bytes or a residue at or above q.
    pub fn read(ring: &Ring, words: AnswerWords, reader: &mut Reader<'_>) -> Result<Self> {
        let Some([low, high]) = words.sums() else {
            let constant = unpack_poly("a response", reader.take(POLY_BYTES)?, ring.modulus())?;
            let linear = unpack_poly("a response", reader.take(POLY_BYTES)?, ring.modulus())?;
            return Ok(MaskSums { constant, linear });
        };
        let mut read = |bits| -> Result<Vec<u64>> {
            let bytes = reader.take(packed_len(DEGREE, bits))?;
            let mut switched = [0; DEGREE];
            unpack_words(&mut switched, bytes, bits);
            let mut poly = vec![0; DEGREE];
            switch_from_words(&mut poly, &switched, ring.modulus(), bits);
            ring.ciphertext.forward(&mut poly);
            Ok(poly)
        };
        Ok(MaskSums { constant: read(low)?, linear: read(high)? })
    }
}

fn write_sum(ring: &Ring, words: AnswerWords, half: Half, sum: &[u64], out: &mut [u8]) {
    let Some(bits) = words.sum_bits(half) else { return ring::pack50(sum, out) };
    let mut coefficients = sum.to_vec();
    ring.ciphertext.inverse(&mut coefficients);
    let mut switched = [0; DEGREE];
    switch_to_words(&mut switched, &coefficients, ring.modulus(), bits);
    pack_words(out, &switched, bits);
}

impl AnswerWords {
    /// Bits of a coefficient of one of the mask sums, where they are rounded.
    fn sum_bits(&self, half: Half) -> Option<u32> {
        let [constant, linear] = self.sums()?;
        Some(match half {
            Half::Constant => constant,
            Half::Linear => linear,
        })
    }

    /// Bytes of one of the mask sums of one query at one level.
    pub fn sum_len(&self, half: Half) -> usize {
        packed_len(DEGREE, self.sum_bits(half).unwrap_or(PRIME_BITS))
    }
}
