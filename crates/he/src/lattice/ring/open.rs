//! Decryption, ring form: an answer and the secrets enter, inner products leave. Owner only.

use super::{
    AnswerWords, DEGREE, Layout, MaskSums, Masks, POLY_BYTES, QueryKey, Ring, SegmentKey,
    unpack_poly,
};
use crate::error::Result;
use ciphervec_arith::modulus::Modulus;
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::{self, STRIP_BYTES};
use ciphervec_arith::words::{switch_from_words, unpack_words};
use ciphervec_arith::{convert, poly};
use zeroize::{Zeroize, Zeroizing};

/// What one thread needs to open a block; wiped on drop, as it holds exact decryptions.
struct Scratch {
    words: Vec<u64>,
    short: Vec<u32>,
    poly: Vec<u64>,
    scores: Vec<u64>,
}

impl Scratch {
    fn new() -> Self {
        let [words, poly, scores] = [(); 3].map(|()| vec![0; DEGREE]);
        Scratch { words, short: vec![0; DEGREE], poly, scores }
    }

    /// The block's answer as residues: V, and U of `count` rows.
    fn read(&mut self, words: AnswerWords, answer: &[u8], count: usize, q: &Modulus) {
        let (linear, constant) = answer.split_at(words.linear_len());
        let outs = [
            (linear, words.linear(), &mut self.poly[..]),
            (constant, words.constant(), &mut self.scores[..count]),
        ];
        for (bytes, bits, out) in outs {
            if words == AnswerWords::FIRST {
                let short = &mut self.short[..out.len()];
                convert::unpack24(short, bytes);
                convert::switch_up(out, short, q);
            } else {
                let wide = &mut self.words[..out.len()];
                unpack_words(wide, bytes, bits);
                switch_from_words(out, wide, q, bits);
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.poly.zeroize();
        self.scores.zeroize();
    }
}

/// What one query's answers at one level are opened with: t and, for sealed vectors, Σ a_r c0_r + t
/// Σ a_r c1_r.
pub struct QueryOpener<'a> {
    ring: &'a Ring,
    key: &'a QueryKey,
    masked: Option<Zeroizing<Vec<u64>>>,
}

impl<'a> QueryOpener<'a> {
    /// An opener for plain vectors (`sums` absent) or sealed ones.
    pub fn new(ring: &'a Ring, key: &'a QueryKey, sums: Option<&MaskSums>) -> Self {
        let masked = sums.map(|sums| {
            let mut masked = Zeroizing::new(sums.constant.clone());
            poly::mul_add_assign(&mut masked, &sums.linear, &key.residues, ring.modulus());
            masked
        });
        QueryOpener { ring, key, masked }
    }

    /// U + t V + s (Σ a_r c0_r + t Σ a_r c1_r) at the score positions: inner products times 2^k,
    /// noise included.
    ///
    /// `answer` has that of blocks from the `first` one on, whole but perhaps for the last, in these `words`, and
    /// `out` as many places as they have rows; `segment` has their secrets. These are exact decryptions: they must
    /// be rounded before anyone but the key owner sees them (`docs/sealed.md`, section 4).
    pub fn open(
        &self,
        layout: &Layout,
        segment: Option<&SegmentKey>,
        words: AnswerWords,
        first: usize,
        answer: &[u8],
        out: &mut [f64],
    ) {
        let q = self.ring.modulus();
        let vectors = layout.vectors_per_block();
        let blocks = out.par_chunks_mut(vectors).zip(answer.par_chunks(words.block_len(vectors)));
        blocks.enumerate().for_each_init(Scratch::new, |scratch, (block, (out, answer))| {
            scratch.read(words, answer, out.len(), q);
            let Scratch { poly, scores, .. } = scratch;
            self.ring.ciphertext.forward(poly);
            poly::mul_assign(poly, &self.key.residues, q);
            if let (Some(masked), Some(segment)) = (&self.masked, segment) {
                poly::mul_add_assign(poly, masked, segment.block(first + block), q);
            }
            self.ring.ciphertext.inverse(poly);
            let scores = &mut scores[..out.len()];
            for (vector, score) in scores.iter_mut().enumerate() {
                *score = q.add(*score, poly[layout.position(vector)]);
            }
            convert::centre(scores, q);
            out.iter_mut().zip(scores).for_each(|(out, score)| *out = *score as i64 as f64);
        });
    }
}

/// Decrypts the rows themselves, with their noise, row-major: `masks` and `key` for a sealed
/// segment, neither for a plain one.
///
/// # Errors
/// If `data` holds a residue at or above q.
pub fn unseal(
    ring: &Ring,
    layout: &Layout,
    secrets: Option<(&Masks, &SegmentKey)>,
    data: &[u8],
    rows: usize,
) -> Result<Vec<f64>> {
    let (nodes, blocks, dimension) = (layout.nodes(), layout.blocks(rows), layout.dimension());
    let q = ring.modulus();
    let mut plain = vec![0.0; rows * dimension];
    plain.par_chunks_mut(layout.vectors_per_block() * dimension).enumerate().try_for_each(
        |(block, plain)| {
            let mut packed = vec![0u8; POLY_BYTES];
            for (node, (chunk, residue)) in layout.node_list().enumerate() {
                let place = ring::strip_offset(blocks, nodes, block, node);
                for (strip, out) in packed.chunks_exact_mut(STRIP_BYTES).enumerate() {
                    let start = strip * blocks * nodes * STRIP_BYTES + place;
                    out.copy_from_slice(&data[start..][..STRIP_BYTES]);
                }
                let mut poly = unpack_poly("a segment", &packed, q)?;
                if let Some((masks, key)) = secrets {
                    poly::mul_add_assign(&mut poly, masks.node(ring, node), key.block(block), q);
                }
                ring.ciphertext.inverse(&mut poly);
                let dims: Vec<(usize, usize)> = layout.node_dims(chunk, residue).collect();
                for (vector, row) in plain.chunks_exact_mut(dimension).enumerate() {
                    let position = layout.position(vector);
                    for &(dim, exponent) in &dims {
                        row[dim] = q.to_centered(poly[position + exponent]) as f64;
                    }
                }
                poly.zeroize();
            }
            Result::<()>::Ok(())
        },
    )?;
    Ok(plain)
}
