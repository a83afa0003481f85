//! Linear transform: multiplies a ciphertext's slots by a plain matrix. Server only.
//!
//! With `d_k` the k-th diagonal, `d_k[j] = M[j][j + k]` cyclically, the product is
//! `Σ_k d_k · rot(x, k)` (Halevi and Shoup, IACR ePrint 2014/106). Writing `k = g + i` with giant
//! steps `g` and baby steps `i` makes it `Σ_g rot(Σ_i rot(d_k, −g) · rot(x, i), g)`: baby rotations
//! share one decomposition, and there is one giant rotation for each `g`, not one for each
//! diagonal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Complex;
use super::ciphertext::{Ciphertext, Meta};
use super::evaluate::Evaluator;
use super::keys::KeyPlan;
use super::params::Params;
use super::plaintext::{Encoding, Plaintext};
use super::poly::Poly;
use crate::error::{Error, Result};
use ciphervec_arith::poly;

/// What a giant rotation costs in baby ones, which share their decomposition: about two thirds of
/// the transforms.
const GIANT: usize = 2;

/// A square matrix over the slots, encoded for ciphertexts of one level.
#[derive(Clone, Debug)]
pub struct LinearTransform {
    params: Arc<Params>,
    level: usize,
    slots: usize,
    /// The largest sum of absolute values in a row.
    norm: f64,
    /// For each giant step its baby steps and diagonals.
    groups: BTreeMap<usize, Vec<(usize, Plaintext)>>,
}

impl LinearTransform {
    /// The transform with these diagonals, `(k, d_k)` with `d_k[j] = M[j][j + k]` and `k` modulo
    /// the number of slots, encoded at `level`, one of which it spends. Diagonals that are zero
    /// cost nothing.
    ///
    /// # Errors
    /// [`Error::Range`] for slots that the ring does not have, a diagonal of another length or
    /// given twice, none at all that is not zero, or numbers that cannot be encoded;
    /// [`Error::Level`] for level 0.
    pub fn from_diagonals(
        params: &Arc<Params>,
        slots: usize,
        diagonals: &[(i64, Vec<Complex>)],
        level: usize,
    ) -> Result<Self> {
        if level == 0 {
            let (needed, left) = ("1 level".into(), "none is".into());
            return Err(Error::Level { operation: "a linear transform", needed, left });
        }
        let mut kept = BTreeMap::new();
        for (k, diagonal) in diagonals {
            if diagonal.len() != slots {
                let expected = format!("{slots}, one for each slot");
                let actual = diagonal.len().to_string();
                return Err(Error::Range { what: "numbers of a diagonal", expected, actual });
            }
            let place = k.rem_euclid(slots as i64) as usize;
            let zero = diagonal.iter().all(|value| value.norm() == 0.0);
            if !zero && kept.insert(place, diagonal).is_some() {
                let (expected, actual) = ("given once".into(), format!("{k} twice"));
                return Err(Error::Range { what: "a diagonal", expected, actual });
            }
        }
        if kept.is_empty() {
            let (expected, actual) = ("at least 1".into(), "0".into());
            return Err(Error::Range { what: "diagonals that are not zero", expected, actual });
        }
        let row = |j: usize| kept.values().map(|diagonal| diagonal[j].norm()).sum::<f64>();
        let norm = (0..slots).map(row).fold(0.0, f64::max);
        let step = step(kept.keys().copied(), slots);
        let mut groups: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for (k, diagonal) in kept {
            let (giant, baby) = (k - k % step, k % step);
            let mut rotated = diagonal.clone();
            rotated.rotate_right(giant);
            let largest = rotated.iter().map(|value| value.norm()).fold(0.0, f64::max);
            let encoding = Encoding {
                level: Some(level),
                slots: Some(slots),
                magnitude: Some(largest),
                scale: None,
            };
            let plaintext = Plaintext::encode_complex_with(params, &rotated, &encoding)?;
            groups.entry(giant).or_default().push((baby, plaintext));
        }
        Ok(LinearTransform { params: params.clone(), level, slots, norm, groups })
    }

    /// The transform by a matrix of real numbers, given as rows; rows and columns are padded to a
    /// power of two, the slots.
    ///
    /// # Errors
    /// As [`Self::from_diagonals`], and [`Error::Range`] for rows of different lengths.
    pub fn from_rows(params: &Arc<Params>, rows: &[Vec<f64>], level: usize) -> Result<Self> {
        let columns = rows.first().map_or(0, Vec::len);
        if let Some(row) = rows.iter().find(|row| row.len() != columns) {
            let (expected, actual) = (columns.to_string(), row.len().to_string());
            return Err(Error::Range { what: "numbers in a row", expected, actual });
        }
        let slots = rows.len().max(columns).next_power_of_two();
        let entry = |j: usize, i: usize| rows.get(j).and_then(|row| row.get(i)).copied();
        let diagonal = |k: usize| {
            let value = |j| Complex::from(entry(j, (j + k) % slots).unwrap_or(0.0));
            (k as i64, (0..slots).map(value).collect())
        };
        let diagonals: Vec<_> = (0..slots).map(diagonal).collect();
        Self::from_diagonals(params, slots, &diagonals, level)
    }

    /// The level that it takes ciphertexts at; results are at the one below.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The number of slots of its operands.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The rotations that it needs keys for.
    pub fn rotations(&self) -> Vec<i64> {
        let babies = self.groups.values().flatten().map(|(baby, _)| *baby);
        let steps: BTreeSet<usize> = self.groups.keys().copied().chain(babies).collect();
        steps.into_iter().filter(|&step| step != 0).map(|step| step as i64).collect()
    }

    /// The rotations of a transform over `slots` slots with these diagonals, none of them zero: for
    /// an owner who makes the keys for a matrix that is not known yet.
    pub fn rotations_of(slots: usize, diagonals: impl Iterator<Item = usize> + Clone) -> Vec<i64> {
        let step = step(diagonals.clone(), slots);
        let steps: BTreeSet<usize> = diagonals.flat_map(|k| [k - k % step, k % step]).collect();
        steps.into_iter().filter(|&step| step != 0).map(|step| step as i64).collect()
    }

    /// The keys that it needs, for its level.
    pub fn key_plan(&self) -> KeyPlan {
        KeyPlan::new().rotations(self.rotations()).at_level(self.level)
    }
}

/// The number of baby steps, a power of two, with the least work for these diagonals.
pub(super) fn step(diagonals: impl Iterator<Item = usize> + Clone, slots: usize) -> usize {
    let cost = |step: usize| {
        let distinct = |part: &dyn Fn(usize) -> usize| {
            diagonals.clone().map(part).filter(|&part| part != 0).collect::<BTreeSet<_>>().len()
        };
        distinct(&|k| k % step) + GIANT * distinct(&|k| k - k % step)
    };
    let steps = (0..=slots.ilog2()).map(|log| 1usize << log);
    steps.min_by_key(|&step| cost(step)).unwrap_or(1)
}

impl Evaluator {
    /// The matrix of `transform` times the slots of `a`, rescaled: one level below that of the
    /// transform. An operand at a higher level is brought down first.
    ///
    /// # Errors
    /// [`Error::Level`] for an operand below the transform's level, [`Error::Range`] for another
    /// number of slots or degree 2, [`Error::MissingKey`] for a rotation of
    /// [`LinearTransform::rotations`], [`Error::Parameters`], [`Error::WrongKey`].
    pub fn transform(&self, a: &Ciphertext, transform: &LinearTransform) -> Result<Ciphertext> {
        self.params().check_same("a linear transform", &transform.params)?;
        if a.slots() != transform.slots {
            return Err(Error::Range {
                what: "the number of slots of a vector",
                expected: format!("{}, the matrix's", transform.slots),
                actual: a.slots().to_string(),
            });
        }
        if a.level() < transform.level {
            return Err(Error::Level {
                operation: "a linear transform",
                needed: format!("level {}, which it was encoded at,", transform.level),
                left: format!("{} is", a.level()),
            });
        }
        let a = self.match_level(a, transform.level)?;
        let babies: BTreeSet<usize> =
            transform.groups.values().flatten().map(|(baby, _)| *baby).collect();
        let steps: Vec<i64> = babies.iter().map(|&baby| baby as i64).collect();
        let rotated = self.rotate_hoisted(&self.decompose(&a)?, &steps)?;
        let rotated: BTreeMap<usize, Ciphertext> = babies.into_iter().zip(rotated).collect();
        let mut sum: Option<Ciphertext> = None;
        for (&giant, diagonals) in &transform.groups {
            let terms: Vec<_> =
                diagonals.iter().map(|(baby, plaintext)| (&rotated[baby], plaintext)).collect();
            let part = self.rotate(&weighted_sum(&terms), giant as i64)?;
            sum = Some(match sum {
                Some(sum) => self.add(&sum, &part)?,
                None => part,
            });
        }
        // A transform has at least one diagonal.
        let magnitude = transform.norm * a.magnitude();
        self.rescale(&sum.unwrap_or(a))?.with_magnitude(magnitude)
    }
}

/// `Σ x p`, slot by slot, of ciphertexts of one kind and plaintexts at their level; reduced once.
fn weighted_sum(terms: &[(&Ciphertext, &Plaintext)]) -> Ciphertext {
    let (first, plaintext) = terms[0];
    let params = first.params();
    let part = |index: usize| {
        let mut out = Poly::scratch(params, first.level());
        out.for_limbs(|i, table, limb| {
            let left: Vec<&[u64]> = terms.iter().map(|(x, _)| x.parts()[index].limb(i)).collect();
            let right: Vec<&[u64]> = terms.iter().map(|(_, p)| p.poly().limb(i)).collect();
            poly::dot(limb, &left, &right, table.modulus());
        });
        out
    };
    let product = |(x, p): &(&Ciphertext, &Plaintext)| {
        let (mine, theirs) = (x.scale() * x.magnitude(), p.scale() * p.magnitude());
        x.noise().product(mine, p.noise(), theirs, params.expansion())
    };
    let noises = terms[1..].iter().map(product);
    let noise = noises.fold(product(&terms[0]), |sum, noise| sum.plus(noise));
    let magnitude = terms.iter().map(|(x, p)| x.magnitude() * p.magnitude()).sum();
    let scale = first.scale() * plaintext.scale();
    let parts = (0..first.parts().len()).map(part).collect();
    Ciphertext { parts, meta: Meta { scale, noise, magnitude, ..first.meta } }
}
