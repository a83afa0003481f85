//! A query at its key holder: its ciphertexts, 25.6 KB a piece, and what is known of it before its answer comes: the tree that an honest
//! server expands.
//!
//! Mask sums are multiplied with a block's secret, so they are never a server's: the owner computes
//! its own (`docs/sealed.md`, section 4.5).

use super::{
    Ciphertext, DEGREE, EvaluationKeys, Expanded, Layout, MaskSums, Masks, QueryKey, Ring, expand,
};
use crate::error::Result;
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::STRIP;
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{convert, poly};
use zeroize::{Zeroize, Zeroizing};

impl QueryKey {
    /// Encrypts the pieces of `query` (length `layout.dimension()`): piece j masks with stream
    /// `first_stream + j` of `seed`, which must never serve twice, and draws its noise from the
    /// same streams of `noise_seed`.
    pub fn encrypt(
        &self,
        ring: &Ring,
        layout: &Layout,
        query: &[i64],
        seed: &[u8; 32],
        noise_seed: &[u8; 32],
        first_stream: u64,
    ) -> Vec<Ciphertext> {
        let q = ring.modulus();
        query
            .chunks(layout.chunk_len())
            .enumerate()
            .map(|(piece, values)| {
                let stream = first_stream + piece as u64;
                let mut errors = vec![0i32; DEGREE];
                Stream::new(noise_seed, stream).gaussian(&mut errors);
                let mut message = vec![0i64; DEGREE];
                for (index, value) in values.iter().enumerate() {
                    // X^(−i) = −X^(N − i) for i > 0.
                    let (place, signed) =
                        if index == 0 { (0, *value) } else { (DEGREE - index, -value) };
                    message[place] = signed;
                }
                let mut constant = vec![0; DEGREE];
                convert::lift_noisy(&mut constant, &message, &errors, q);
                errors.zeroize();
                message.zeroize();
                ring.tables()[0].forward(&mut constant);
                let linear = Ciphertext::mask(ring, seed, stream);
                let mut masked = vec![0; DEGREE];
                poly::mul(&mut masked, &linear, &self.residues, q);
                poly::sub_assign(&mut constant, &masked, q);
                masked.zeroize();
                Ciphertext::from_parts(constant, linear)
            })
            .collect()
    }
}

/// One query at one level of its tree.
pub struct AskedLevel {
    level: u8,
    /// Σ a_r c0_r and Σ a_r c1_r; none where rows are plain.
    pub(super) sums: Option<MaskSums>,
    /// 2^k q_i as the nodes hold them, with the tree's noise at these places.
    pub(super) message: Zeroizing<Vec<i64>>,
}

impl core::fmt::Debug for AskedLevel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "AskedLevel({}, redacted)", self.level)
    }
}

impl AskedLevel {
    /// The level.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Expands one query, whose `pieces` were encrypted under `secret`, for these layouts. `masks`
    /// are those of sealed rows.
    ///
    /// # Errors
    /// If the keys reach less deep than a layout asks.
    pub fn expand(
        ring: &Ring,
        keys: &EvaluationKeys,
        secret: &QueryKey,
        masks: Option<&Masks>,
        pieces: &[Ciphertext],
        layouts: &[Layout],
    ) -> Result<Vec<Self>> {
        let trees = expand(ring, keys, pieces, layouts)?;
        Ok(trees.into_iter().map(|tree| Self::of(ring, secret, masks, &tree)).collect())
    }

    /// The same of a tree that is there.
    pub fn of(ring: &Ring, secret: &QueryKey, masks: Option<&Masks>, tree: &Expanded) -> Self {
        let layout = tree.layout();
        let sums = masks
            .and_then(|masks| MaskSums::compute(ring, masks, layout, &[tree]).into_iter().next());
        AskedLevel { level: layout.level(), sums, message: message(ring, secret, tree) }
    }
}

/// The coefficients of c0_r + t c1_r at which node r holds dimensions: every 2^level-th, for which sums of runs of 2^level values are
/// enough.
fn message(ring: &Ring, secret: &QueryKey, tree: &Expanded) -> Zeroizing<Vec<i64>> {
    let (layout, q) = (tree.layout(), ring.modulus());
    let (step, count) = (1 << layout.level(), DEGREE >> layout.level());
    // Runs of less than a strip are cut from its sums.
    let (strips_a_run, runs_a_strip) = ((step / STRIP).max(1), (STRIP / step).max(1));
    let strips: Vec<&[u64]> = tree.strips().collect();
    let factors = secret.residues.par_chunks(strips_a_run * STRIP);
    let folded: Vec<Zeroizing<Vec<u64>>> = strips
        .par_chunks(strips_a_run)
        .zip(factors)
        .map(|(strips, factors)| {
            let factors: Vec<&[u64]> = factors.chunks(STRIP).collect();
            let mut folded = Zeroizing::new(Vec::with_capacity(layout.nodes() * runs_a_strip));
            for at in (0..layout.nodes()).map(|node| node * 2 * STRIP) {
                let linear: Vec<&[u64]> =
                    strips.iter().map(|strip| &strip[at + STRIP..][..STRIP]).collect();
                let mut sums = Zeroizing::new([0; STRIP]);
                poly::dot(&mut *sums, &linear, &factors, q);
                // Not 2^13 words below 2^50.
                for constant in strips.iter().map(|strip| &strip[at..][..STRIP]) {
                    sums.iter_mut().zip(constant).for_each(|(sum, word)| *sum += word);
                }
                folded.extend(
                    sums.chunks(STRIP / runs_a_strip).map(|run| q.reduce(run.iter().sum())),
                );
            }
            folded
        })
        .collect();
    let mut message = Zeroizing::new(vec![0; layout.dimension()]);
    let mut some = Zeroizing::new(vec![0; count]);
    for (node, (chunk, residue)) in layout.node_list().enumerate() {
        let runs = folded.iter().flat_map(|folded| &folded[node * runs_a_strip..][..runs_a_strip]);
        some.iter_mut().zip(runs).for_each(|(some, run)| *some = *run);
        ring.tables()[0].inverse_of_runs(&mut some);
        for (dim, exponent) in layout.node_dims(chunk, residue) {
            // X^(−e) = −X^(N − e).
            message[dim] = match exponent / step {
                0 => q.to_centered(some[0]),
                place => -q.to_centered(some[count - place]),
            };
        }
    }
    message
}
