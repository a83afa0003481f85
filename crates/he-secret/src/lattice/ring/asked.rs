//! What the key holder knows of a query before its answer comes: the tree that an honest server
//! expands. Owner only.
//!
//! Mask sums are multiplied with a block's secret, so they are never a server's: the owner computes
//! its own (`docs/sealed.md`, section 4.5).

use super::{
    Ciphertext, DEGREE, EvaluationKeys, Expanded, Layout, MaskSums, Masks, QueryKey, Ring, expand,
};
use crate::error::Result;
use ciphervec_arith::parallel::*;
use ciphervec_arith::poly;
use zeroize::{Zeroize, Zeroizing};

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
