//! Bilinear forms of two lists of ciphertexts: weighted sums of their products. Server only.
//!
//! `Σ_a x_a (c_a + Σ_b W_ab y_b)` is a matrix product with the second list and an inner product
//! with the first. Both are taken a tile of coefficients at a time, for all matrices before the
//! next tile: what lies between them never leaves the cache.

use super::ciphertext::{Ciphertext, Meta};
use super::evaluate::Evaluator;
use super::noise::Noise;
use super::pcmm::PlainMatrix;
use super::plaintext::residue;
use super::poly::Poly;
use crate::error::{Error, Result};
use ciphervec_arith::parallel::*;
use ciphervec_arith::{Modulus, pcmm, poly};
use core::ops::Range;

/// Coefficients of a tile: both lists and the sums between them, of some 32 ciphertexts, in a
/// second-level cache.
const TILE: usize = 512;

/// A matrix whose rows belong to the first list, with what is added to each row's sum.
#[derive(Clone, Debug)]
pub struct BilinearForm {
    /// W, with one scale for all rows.
    pub matrix: PlainMatrix,
    /// c, one for each row.
    pub constants: Vec<f64>,
    /// A bound on the form's values, which the caller knows: what has to fit the modulus.
    pub magnitude: f64,
}

impl Evaluator {
    /// Adds `Σ_a x_a (c_a + Σ_b W_ab y_b)` for every form to `sums`, which may be empty: of degree
    /// 2, not rescaled. With one `x` fewer than rows, the first row stands beside the number 1.
    ///
    /// # Errors
    /// [`Error::Range`] for lists that do not fit the forms or the sums, operands of degree 2 or of
    /// different levels or scales; [`Error::Level`] if the modulus has no room for a form;
    /// [`Error::WrongKey`], [`Error::Parameters`].
    pub fn add_bilinear(
        &self,
        sums: &mut Vec<Ciphertext>,
        forms: &[BilinearForm],
        x: &[Ciphertext],
        y: &[Ciphertext],
    ) -> Result<()> {
        let (Some(first), Some(second)) = (x.first(), y.first()) else {
            return Err(shape("both lists", "at least one ciphertext", "none".into()));
        };
        self.params().check_same("a ciphertext", first.params())?;
        self.same_kind(first, x)?;
        self.same_kind(second, y)?;
        first.check_same(second)?;
        if first.level() != second.level() {
            let (expected, actual) = (first.level().to_string(), second.level().to_string());
            return Err(shape("the level of the second list", &expected, actual));
        }
        if !sums.is_empty() && sums.len() != forms.len() {
            return Err(shape(
                "the number of sums",
                &forms.len().to_string(),
                sums.len().to_string(),
            ));
        }
        let metas: Vec<Meta> =
            forms.iter().map(|form| self.meta(form, x, y)).collect::<Result<_>>()?;
        for (sum, meta) in sums.iter().zip(&metas) {
            sum.check_same(first)?;
            let kind = (sum.level(), sum.degree(), sum.scale().to_bits());
            if kind != (first.level(), 2, meta.scale.to_bits()) {
                let actual = format!("{}, {}, {}", sum.level(), sum.degree(), sum.scale());
                let expected = format!("{}, 2, {}", first.level(), meta.scale);
                return Err(shape("level, degree and scale of a sum", &expected, actual));
            }
        }
        if sums.is_empty() {
            let zero = || Poly::zero(self.params(), first.level());
            sums.extend(metas.iter().map(|meta| Ciphertext {
                parts: vec![zero(), zero(), zero()],
                meta: Meta { noise: Noise { std: 0.0, bound: 0.0 }, ..*meta },
            }));
        }
        for (sum, meta) in sums.iter_mut().zip(&metas) {
            sum.meta.noise = sum.meta.noise.plus(meta.noise);
            sum.meta.magnitude = meta.magnitude;
        }
        let threads = current_num_threads();
        if threads == 1 {
            self.tiles(sums, forms, x, y);
        } else {
            let share = forms.len().div_ceil(threads);
            let parts = sums.par_chunks_mut(share).zip(forms.par_chunks(share));
            parts.for_each(|(sums, forms)| self.tiles(sums, forms, x, y));
        }
        Ok(())
    }

    /// All ciphertexts of a list like the first one.
    fn same_kind(&self, first: &Ciphertext, list: &[Ciphertext]) -> Result<()> {
        let kind = |x: &Ciphertext| (x.level(), x.degree(), x.scale().to_bits(), x.slots());
        for one in list {
            first.check_same(one)?;
            if kind(one) != kind(first) || one.degree() != 1 {
                let actual = format!("level {}, degree {}", one.level(), one.degree());
                return Err(shape("a list", "of one level and scale, of degree 1", actual));
            }
        }
        Ok(())
    }

    /// Scale and estimates of a form.
    fn meta(&self, form: &BilinearForm, x: &[Ciphertext], y: &[Ciphertext]) -> Result<Meta> {
        let (rows, columns) = (form.matrix.rows(), form.matrix.columns());
        let lone = rows == x.len() + 1;
        if (rows != x.len() && !lone) || columns != y.len() || form.constants.len() != rows {
            let expected = format!("{} or one more by {}", x.len(), y.len());
            return Err(shape(
                "rows and columns of a form",
                &expected,
                format!("{rows} by {columns}"),
            ));
        }
        let weight = form.matrix.scale(0);
        if (0..rows).any(|row| form.matrix.scale(row).to_bits() != weight.to_bits()) {
            return Err(shape("the scales of a form's rows", "one and the same", "several".into()));
        }
        let (params, delta) = (self.params(), self.params().expansion());
        let (outer, inner) = (x[0].scale(), y[0].scale() * weight);
        let scale = outer * inner;
        let needed = scale.log2() + form.magnitude.max(1.0 / scale).log2() + 1.0;
        let room = params.log_modulus(x[0].level());
        if needed > room {
            return Err(Error::Level {
                operation: "a bilinear form",
                needed: format!("a modulus of {needed:.0} bits"),
                left: format!("{room:.0} bits at level {} are", x[0].level()),
            });
        }
        let mut noise = Noise { std: 0.0, bound: 0.0 };
        for row in 0..rows {
            let (sum, most) = form.matrix.estimate(row, y, delta);
            let most = most + form.constants[row].abs();
            // Beside the number 1 there is no noise but that of rounding it times the scale.
            let (factor, size) = match (row + x.len()).checked_sub(rows) {
                Some(place) => (*x[place].noise(), outer * x[place].magnitude()),
                None => (Noise { std: 0.0, bound: 0.5 }, outer),
            };
            noise = noise.plus(factor.product(size, sum, inner * most, delta));
        }
        Ok(Meta { scale, noise, magnitude: form.magnitude, ..x[0].meta })
    }

    fn tiles(
        &self,
        sums: &mut [Ciphertext],
        forms: &[BilinearForm],
        x: &[Ciphertext],
        y: &[Ciphertext],
    ) {
        let rows = forms.iter().map(|form| form.matrix.rows()).max().unwrap_or(0);
        let (mut inner, mut part) = ([vec![0; rows * TILE], vec![0; rows * TILE]], vec![0; TILE]);
        let (level, degree) = (x[0].level(), self.params().degree());
        for limb in 0..=level {
            let m = self.params().prime(limb);
            let one = residue(x[0].scale().round(), m);
            for start in (0..degree).step_by(TILE) {
                let range = start..(start + TILE).min(degree);
                let tiles = [cut(x, 0, limb, &range), cut(x, 1, limb, &range)];
                let tiles = [tiles, [cut(y, 0, limb, &range), cut(y, 1, limb, &range)]].concat();
                for (sum, form) in sums.iter_mut().zip(forms) {
                    let scale = y[0].scale() * form.matrix.scale(0);
                    let constants: Vec<u64> =
                        form.constants.iter().map(|c| residue((c * scale).round(), m)).collect();
                    let inner = inner.each_mut().map(|inner| &mut inner[..]);
                    let tile = Tile { form, constants: &constants, one, m, lists: &tiles };
                    let part = &mut part[..range.len()];
                    tile.add(inner, part, |index, part| {
                        let limb = &mut sum.parts[index].limb_mut(limb)[range.clone()];
                        poly::add_assign(limb, part, m);
                    });
                }
            }
        }
    }
}

/// A form on one tile of coefficients.
struct Tile<'a> {
    form: &'a BilinearForm,
    constants: &'a [u64],
    /// The number 1 at the scale of the first list.
    one: u64,
    m: &'a Modulus,
    /// x_0, x_1, y_0, y_1.
    lists: &'a [Vec<&'a [u64]>],
}

impl Tile<'_> {
    /// Hands the three parts of the form on, one after the other.
    fn add(&self, inner: [&mut [u64]; 2], part: &mut [u64], mut hand: impl FnMut(usize, &[u64])) {
        let (length, m) = (part.len(), self.m);
        let rows = self.form.matrix.rows();
        let [x0, x1, y0, y1] = self.lists else { return };
        let [first, second] = inner.map(|inner| &mut inner[..rows * length]);
        for (inner, y) in [(&mut *first, y0), (&mut *second, y1)] {
            let mut outputs: Vec<&mut [u64]> = inner.chunks_exact_mut(length).collect();
            pcmm::multiply(self.form.matrix.weights(), y, &mut outputs, m);
        }
        for (row, constant) in first.chunks_exact_mut(length).zip(self.constants) {
            row.iter_mut().for_each(|value| *value = m.add(*value, *constant));
        }
        let lone = rows - x0.len();
        let s0: Vec<&[u64]> = first.chunks_exact(length).collect();
        let s1: Vec<&[u64]> = second.chunks_exact(length).collect();
        let mut finish =
            |index: usize, alone: Option<&[u64]>, left: &[&[u64]], right: &[&[u64]]| {
                poly::dot(part, left, right, m);
                hand(index, part);
                if let Some(alone) = alone {
                    part.copy_from_slice(alone);
                    poly::scalar_mul_assign(part, self.one, m);
                    hand(index, part);
                }
            };
        let [top0, top1] = [&s0, &s1].map(|rows| rows.first().copied().filter(|_| lone == 1));
        finish(0, top0, x0, &s0[lone..]);
        let left = [&x0[..], &x1[..]].concat();
        let right = [&s1[lone..], &s0[lone..]].concat();
        finish(1, top1, &left, &right);
        finish(2, None, x1, &s1[lone..]);
    }
}

/// A tile of part `index` of every ciphertext.
fn cut<'a>(
    list: &'a [Ciphertext],
    index: usize,
    limb: usize,
    range: &Range<usize>,
) -> Vec<&'a [u64]> {
    list.iter().map(|x| &x.parts()[index].limb(limb)[range.clone()]).collect()
}

fn shape(what: &'static str, expected: &str, actual: String) -> Error {
    Error::Range { what, expected: expected.to_owned(), actual }
}
