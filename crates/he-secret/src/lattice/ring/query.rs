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

/// The coefficients of c0_r + t c1_r at which node r holds dimensions.
fn message(ring: &Ring, secret: &QueryKey, tree: &Expanded) -> Zeroizing<Vec<i64>> {
    let (layout, q) = (tree.layout(), ring.modulus());
    let nodes: Vec<(usize, usize)> = layout.node_list().collect();
    let found: Vec<Vec<(usize, i64)>> = nodes
        .par_iter()
        .enumerate()
        .map_init(
            || [(); 2].map(|()| Zeroizing::new(vec![0u64; DEGREE])),
            |[constant, linear], (node, &(chunk, residue))| {
                tree.node(node, constant, linear);
                poly::mul_add_assign(constant, linear, &secret.residues, q);
                ring.tables()[0].inverse(constant);
                // X^(−e) = −X^(N − e).
                let at = |exponent: usize| match exponent {
                    0 => q.to_centered(constant[0]),
                    _ => -q.to_centered(constant[DEGREE - exponent]),
                };
                let dims = layout.node_dims(chunk, residue);
                dims.map(|(dim, exponent)| (dim, at(exponent))).collect()
            },
        )
        .collect();
    let mut message = Zeroizing::new(vec![0; layout.dimension()]);
    for mut dims in found {
        dims.iter().for_each(|&(dim, value)| message[dim] = value);
        dims.iter_mut().for_each(|(_, value)| value.zeroize());
    }
    message
}
