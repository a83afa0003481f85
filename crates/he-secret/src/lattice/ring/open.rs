//! Decryption, ring form: inner products from a server's answer. Owner only.

use super::inner::unpack_poly;
use super::{
    AnswerCheck, AnswerWords, AskedLevel, DEGREE, Layout, Masks, POLY_BYTES, QueryKey, Ring,
    RowSigns, ScoreNoise, SegmentKey,
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

/// What one query's answers at one level are opened with.
pub struct QueryOpener<'a> {
    ring: &'a Ring,
    key: &'a QueryKey,
    asked: &'a AskedLevel,
    /// Σ a_r c0_r + t Σ a_r c1_r, for sealed vectors.
    masked: Option<Zeroizing<Vec<u64>>>,
    words: AnswerWords,
}

/// One segment whose answers are opened.
#[derive(Clone, Copy)]
pub struct OpenedRows<'a> {
    /// How it is packed.
    pub layout: &'a Layout,
    /// The secrets of its blocks, where they are sealed.
    pub key: Option<&'a SegmentKey>,
    /// Of its rows.
    pub signs: &'a RowSigns,
    /// What its answers are held against, where that was sealed with it.
    pub check: Option<&'a AnswerCheck>,
}

impl<'a> QueryOpener<'a> {
    /// An opener of answers in these `words`.
    pub fn new(
        ring: &'a Ring,
        key: &'a QueryKey,
        asked: &'a AskedLevel,
        words: AnswerWords,
    ) -> Self {
        let masked = asked.sums.as_ref().map(|sums| {
            let [constant, linear] = sums.sums();
            let mut masked = Zeroizing::new(constant.to_vec());
            poly::mul_add_assign(&mut masked, linear, &key.residues, ring.modulus());
            masked
        });
        QueryOpener { ring, key, asked, masked, words }
    }

    /// U + t V + s (Σ a_r c0_r + t Σ a_r c1_r) at the score positions: inner products times 2^k,
    /// noise included. Whether they can be what an honest server's answer opens to, as far as there
    /// is a check.
    ///
    /// `answer` has that of blocks from the `first` one on, whole but perhaps for the last, and
    /// `out` as many places as they have rows; `query` are the integers that were encrypted. These
    /// are exact decryptions: they must be rounded before anyone but the key owner sees them
    /// (`docs/sealed.md`, section 4).
    pub fn open(
        &self,
        rows: &OpenedRows<'_>,
        noise: &ScoreNoise,
        query: &[i64],
        (first, answer): (usize, &[u8]),
        out: &mut [f64],
    ) -> bool {
        let (q, layout) = (self.ring.modulus(), rows.layout);
        let vectors = layout.vectors_per_block();
        let blocks =
            out.par_chunks_mut(vectors).zip(answer.par_chunks(self.words.block_len(vectors)));
        let sound = blocks.enumerate().map_init(Scratch::new, |scratch, (index, (out, answer))| {
            let block = first + index;
            scratch.read(self.words, answer, out.len(), q);
            let Scratch { poly, scores, .. } = scratch;
            self.ring.tables()[0].forward(poly);
            poly::mul_assign(poly, &self.key.residues, q);
            if let (Some(masked), Some(key)) = (&self.masked, rows.key) {
                poly::mul_add_assign(poly, masked, key.block(block), q);
            }
            self.ring.tables()[0].inverse(poly);
            let scores = &mut scores[..out.len()];
            for (vector, score) in scores.iter_mut().enumerate() {
                *score = q.add(*score, poly[layout.position(vector)]);
            }
            convert::centre(scores, q);
            out.iter_mut().zip(scores).for_each(|(out, score)| *out = *score as i64 as f64);
            let sound = rows
                .check
                .is_none_or(|check| check.verify(layout, noise, query, self.asked, block, out));
            for (row, score) in (block * vectors..).zip(out.iter_mut()) {
                if rows.signs.negates(row) {
                    *score = -*score;
                }
            }
            sound
        });
        sound.min().unwrap_or(true)
    }
}

/// Decrypts the rows themselves, row-major, with their noise where a group of rows has sums: `secrets`
/// for a sealed segment, none for a plain one. `None` if they are not what was sealed, as far as there
/// is a check.
///
/// # Errors
/// If `data` holds a residue at or above q.
pub fn unseal(
    ring: &Ring,
    masks: Option<&Masks>,
    opened: &OpenedRows<'_>,
    data: &[u8],
    rows: usize,
) -> Result<Option<Vec<f64>>> {
    let layout = opened.layout;
    let (nodes, blocks, dimension) = (layout.nodes(), layout.blocks(rows), layout.dimension());
    let (q, vectors) = (ring.modulus(), layout.vectors_per_block());
    let mut plain = vec![0.0; rows * dimension];
    let unsealed = plain.par_chunks_mut(vectors * dimension).enumerate().map(|(block, plain)| {
        let mut packed = vec![0u8; POLY_BYTES];
        let mut column = Zeroizing::new(vec![0i64; plain.len() / dimension]);
        let signs =
            (block * vectors..).map(|row| if opened.signs.negates(row) { -1.0 } else { 1.0 });
        let signs: Vec<f64> = signs.take(column.len()).collect();
        let mut words = blake3::Hasher::new();
        for (node, (chunk, residue)) in layout.node_list().enumerate() {
            let place = ring::strip_offset(blocks, nodes, block, node);
            for (strip, out) in packed.chunks_exact_mut(STRIP_BYTES).enumerate() {
                let start = strip * blocks * nodes * STRIP_BYTES + place;
                out.copy_from_slice(&data[start..][..STRIP_BYTES]);
            }
            words.update(&packed);
            let mut poly = Zeroizing::new(unpack_poly("a segment", &packed, q)?);
            if let (Some(masks), Some(key)) = (masks, opened.key) {
                poly::mul_add_assign(&mut poly, masks.node(ring, node), key.block(block), q);
            }
            ring.tables()[0].inverse(&mut poly);
            for (dim, exponent) in layout.node_dims(chunk, residue) {
                for (vector, value) in column.iter_mut().enumerate() {
                    *value = q.to_centered(poly[layout.position(vector) + exponent]);
                }
                let check = opened.check;
                if !check.is_none_or(|check| check.holds(layout, block, dim, &mut column)) {
                    return Ok(false);
                }
                let out = plain[dim..].iter_mut().step_by(dimension);
                for ((out, value), sign) in out.zip(column.iter()).zip(&signs) {
                    *out = *value as f64 * sign;
                }
            }
        }
        Result::Ok(opened.check.is_none_or(|check| check.holds_words(block, &words)))
    });
    let sound = unsealed.collect::<Result<Vec<bool>>>()?;
    Ok(sound.iter().all(|sound| *sound).then_some(plain))
}
