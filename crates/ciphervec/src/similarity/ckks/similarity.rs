//! Dot products, cosines and distances of encrypted arrays and plain rows, for the server: the
//! scores stay encrypted.
//!
//! Results are for the key owner. In layouts `slots` and `coefficients` the ciphertexts hold other
//! sums of the owner's own vectors beside the scores, and a plain operand shows in them: nothing
//! here hides a plain vector from the key owner.

use super::array::{EncryptedArray, PostProcessing, Side};
use super::layout::{ArrayLayout, ArrayPacking, Spread};
use super::plain::PlainRows;
use super::server::{Server, common, spread};
use crate::error::{Error, Result};
use ciphervec_he::ckks::Ciphertext;
use rayon::prelude::*;

impl Server {
    /// The dot product of each vector of `a` with the one beside it in `b`, or of all with a single
    /// one. One level.
    ///
    /// # Errors
    /// [`Error::CkksSimilarity`] for shapes, layouts or roles that don't go together; the scheme's
    /// errors: no level left, a missing key, another context's ciphertexts.
    pub fn dot(&self, a: &EncryptedArray, b: &EncryptedArray) -> Result<EncryptedArray> {
        self.expect("dot", a)?;
        self.expect("dot", b)?;
        let scores = match a.packing.layout {
            ArrayLayout::Coefficients => self.dot_coefficients(a, b)?,
            ArrayLayout::Slots => {
                let products = self.multiply(a, b)?;
                self.sum(&products)?
            }
            ArrayLayout::Single => {
                let packing = common("dot", &a.packing, &b.packing)?;
                let term = |index| {
                    let left = spread(&packing, &a.packing, &a.left, index)?;
                    let right = spread(&packing, &b.packing, &b.left, index)?;
                    Ok(self.evaluator.multiply(&left, &right)?)
                };
                self.total(&packing, term, &[a, b])?
            }
        };
        if a.unit && b.unit { scores.bounded(1.0) } else { Ok(scores) }
    }

    /// The dot product with plain vectors: one for each of `a`, one for all, or many for a single
    /// one of `a`. One level.
    ///
    /// # Errors
    /// As [`Self::dot`].
    pub fn dot_plain(&self, a: &EncryptedArray, plain: &PlainRows<'_>) -> Result<EncryptedArray> {
        self.expect("dot", a)?;
        let rows = a.packing.rows.max(plain.rows());
        let packing = ArrayPacking { rows, ..a.packing.batched(plain.is_batch()) };
        if a.packing.rows != 1 || plain.rows() == 1 {
            plain.expect("dot", &a.packing)?;
        } else {
            plain.expect("dot", &packing)?;
        }
        match a.packing.layout {
            ArrayLayout::Coefficients => self.dot_plain_coefficients(a, plain),
            ArrayLayout::Slots => {
                let product = |index| {
                    let cipher = spread(&packing, &a.packing, &a.left, index)?;
                    self.times(&cipher, plain, &packing, (Side::Left, index))
                };
                let products = (0..packing.ciphertexts()).into_par_iter().map(product);
                self.sum(&EncryptedArray::new(
                    packing,
                    products.collect::<Result<_>>()?,
                    Vec::new(),
                    &[a],
                ))
            }
            ArrayLayout::Single => {
                let term = |index| {
                    let cipher = spread(&packing, &a.packing, &a.left, index)?;
                    self.times_lazy(&cipher, plain, &packing, (Side::Left, index))
                };
                self.total(&packing, term, &[a])
            }
        }
    }

    /// The sum of each vector's coordinates. Free of levels, but for one in layout `coefficients`.
    ///
    /// # Errors
    /// As [`Self::dot`].
    pub fn sum(&self, a: &EncryptedArray) -> Result<EncryptedArray> {
        self.expect("sum", a)?;
        match a.packing.layout {
            _ if a.packing.dimension == 1 => {
                Ok(EncryptedArray { packing: a.packing.column(), ..a.clone() })
            }
            ArrayLayout::Coefficients => {
                self.dot_plain_coefficients(a, &PlainRows::new(&[1.0], 1, 1)?)
            }
            ArrayLayout::Slots => {
                let width = a.packing.dimension.next_power_of_two();
                let out = self
                    .each("sum", a, |_, _, cipher| Ok(self.rotator.inner_sum(cipher, width)?))?;
                Ok(EncryptedArray { packing: a.packing.scores(), ..out })
            }
            ArrayLayout::Single => self.total(&a.packing, |index| Ok(a.left[index].clone()), &[a]),
        }
    }

    /// Σ (a_i − b_i)² for each vector of `a` and the one beside it in `b`. One level.
    ///
    /// # Errors
    /// As [`Self::dot`]; in layout `coefficients` vectors that were not scaled to length 1 need
    /// role `both`.
    pub fn squared_distance(
        &self,
        a: &EncryptedArray,
        b: &EncryptedArray,
    ) -> Result<EncryptedArray> {
        if a.unit && b.unit {
            // |a|² + |b|² − 2 a·b, without a second side.
            return self.minus_twice(&self.dot(a, b)?, &PlainRows::new(&[2.0], 1, 1)?);
        }
        self.squared_norm(&self.sub(a, b)?)
    }

    /// The same with plain vectors.
    ///
    /// # Errors
    /// As [`Self::dot_plain`] and [`Self::squared_distance`].
    pub fn squared_distance_plain(
        &self,
        a: &EncryptedArray,
        plain: &PlainRows<'_>,
    ) -> Result<EncryptedArray> {
        if !a.unit {
            return self.squared_norm(&self.sub_plain(a, plain)?);
        }
        let norm = |row| 1.0 + (0..a.dimension()).map(|i| plain.get(row, i).powi(2)).sum::<f64>();
        let norms: Vec<f64> = (0..plain.rows()).map(norm).collect();
        self.minus_twice(&self.dot_plain(a, plain)?, &PlainRows::new(&norms, norms.len(), 1)?)
    }

    /// Σ a_i². One level.
    ///
    /// # Errors
    /// As [`Self::squared_distance`].
    pub fn squared_norm(&self, a: &EncryptedArray) -> Result<EncryptedArray> {
        self.dot(a, a)
    }

    /// The Euclidean distance: what [`Self::squared_distance`] gives, of which the key owner takes
    /// the root.
    ///
    /// # Errors
    /// As [`Self::squared_distance`].
    pub fn distance(&self, a: &EncryptedArray, b: &EncryptedArray) -> Result<EncryptedArray> {
        Ok(EncryptedArray { post_processing: PostProcessing::Root, ..self.squared_distance(a, b)? })
    }

    /// The same with plain vectors.
    ///
    /// # Errors
    /// As [`Self::squared_distance_plain`].
    pub fn distance_plain(
        &self,
        a: &EncryptedArray,
        plain: &PlainRows<'_>,
    ) -> Result<EncryptedArray> {
        Ok(EncryptedArray {
            post_processing: PostProcessing::Root,
            ..self.squared_distance_plain(a, plain)?
        })
    }

    /// The cosine of vectors that were scaled to length 1 when they were encrypted: their dot
    /// product. One level.
    ///
    /// # Errors
    /// As [`Self::dot`], and [`Error::CkksSimilarity`] for vectors of any length.
    pub fn cosine(&self, a: &EncryptedArray, b: &EncryptedArray) -> Result<EncryptedArray> {
        expect_unit(a)?;
        expect_unit(b)?;
        self.dot(a, b)
    }

    /// The same with plain vectors of any length.
    ///
    /// # Errors
    /// As [`Self::dot_plain`], and [`Error::ZeroVector`].
    pub fn cosine_plain(
        &self,
        a: &EncryptedArray,
        plain: &PlainRows<'_>,
    ) -> Result<EncryptedArray> {
        expect_unit(a)?;
        let unit = plain.normalized()?;
        let out = self.dot_plain(a, &PlainRows::new(&unit, plain.rows(), plain.dimension())?)?;
        out.bounded(1.0)
    }

    /// `constant` − 2 `dot`.
    fn minus_twice(
        &self,
        dot: &EncryptedArray,
        constant: &PlainRows<'_>,
    ) -> Result<EncryptedArray> {
        let twice = self.multiply_plain(dot, &PlainRows::new(&[-2.0], 1, 1)?)?;
        self.add_plain(&twice, constant)
    }

    /// a − plain numbers.
    ///
    /// # Errors
    /// As [`Self::add_plain`].
    pub fn sub_plain(&self, a: &EncryptedArray, plain: &PlainRows<'_>) -> Result<EncryptedArray> {
        self.negate(&self.add_plain(&self.negate(a)?, plain)?)
    }

    /// Sums over the ciphertexts of a layout with one for each coordinate, rescaled once.
    fn total(
        &self,
        packing: &ArrayPacking,
        term: impl Fn(usize) -> Result<Ciphertext> + Sync,
        sources: &[&EncryptedArray],
    ) -> Result<EncryptedArray> {
        let block = |block: usize| {
            let terms = (block * packing.dimension..(block + 1) * packing.dimension)
                .into_par_iter()
                .map(|index| term(index).map(Some));
            let sum = terms.try_reduce(
                || None,
                |a, b| match (a, b) {
                    (Some(a), Some(b)) => Ok(Some(self.evaluator.add(&a, &b)?)),
                    (one, None) | (None, one) => Ok(one),
                },
            )?;
            // A block has as many terms as coordinates, and a packing has at least one of those.
            sum.map_or_else(|| Err(roles("dot")), |sum| self.settle(sum))
        };
        let sums = (0..packing.blocks()).map(block).collect::<Result<Vec<_>>>()?;
        Ok(EncryptedArray::new(packing.scores(), sums, Vec::new(), sources))
    }

    /// Relinearised where there is a key for it, and rescaled where that is due. Without a key the
    /// result stays of degree 2: half as large again, and as easily decrypted.
    fn settle(&self, cipher: Ciphertext) -> Result<Ciphertext> {
        let can = cipher.degree() == 2 && self.can_relinearise(cipher.level());
        let cipher = if can { self.evaluator.relinearise(&cipher)? } else { cipher };
        Ok(if self.evaluator.is_pending(&cipher) {
            self.evaluator.rescale(&cipher)?
        } else {
            cipher
        })
    }

    fn dot_coefficients(&self, a: &EncryptedArray, b: &EncryptedArray) -> Result<EncryptedArray> {
        let packing = meeting(&a.packing, &b.packing)?;
        let (left, right) = if a.role().has_left() && b.role().has_right() {
            (&a.left, &b.right)
        } else if b.role().has_left() && a.role().has_right() {
            (&b.left, &a.right)
        } else {
            return Err(roles("dot"));
        };
        let block = |index: usize| {
            let pick = |side: &[Ciphertext]| if side.len() == 1 { 0 } else { index };
            let product = self.evaluator.multiply(&left[pick(left)], &right[pick(right)])?;
            self.settle(product)
        };
        let count = left.len().max(right.len());
        let products = (0..count).into_par_iter().map(block).collect::<Result<Vec<_>>>()?;
        Ok(EncryptedArray::new(packing, products, Vec::new(), &[a, b]))
    }

    fn dot_plain_coefficients(
        &self,
        a: &EncryptedArray,
        plain: &PlainRows<'_>,
    ) -> Result<EncryptedArray> {
        let (own, other) =
            if a.role().has_left() { (&a.left, Side::Right) } else { (&a.right, Side::Left) };
        let spread = if a.packing.rows == 1 { Spread::Gallery } else { a.packing.spread };
        let ring = (self.params.degree(), self.params.max_slots());
        let shape = (plain.rows(), a.packing.dimension);
        let theirs = ArrayPacking::new(ArrayLayout::Coefficients, spread, shape, ring)?;
        let theirs = theirs.batched(plain.is_batch());
        let packing = meeting(&a.packing, &theirs)?;
        let block = |index: usize| {
            let pick = |count: usize| if count == 1 { 0 } else { index };
            let place = (other, pick(theirs.ciphertexts()));
            self.times(&own[pick(own.len())], plain, &theirs, place)
        };
        let count = own.len().max(theirs.ciphertexts());
        let products = (0..count).into_par_iter().map(block).collect::<Result<Vec<_>>>()?;
        Ok(EncryptedArray::new(packing, products, Vec::new(), &[a]))
    }
}

impl EncryptedArray {
    /// The same scores, known to stay within ±`bound`.
    pub(super) fn bounded(mut self, bound: f64) -> Result<Self> {
        let told = self.left.into_iter().map(|cipher| cipher.with_magnitude(bound));
        self.left = told.collect::<ciphervec_he::Result<_>>()?;
        Ok(self)
    }
}

/// Where the scores of two packings of layout `coefficients` lie.
fn meeting(a: &ArrayPacking, b: &ArrayPacking) -> Result<ArrayPacking> {
    let refuse = |detail: String| Error::CkksSimilarity { operation: "dot", detail };
    if a.layout != b.layout || a.dimension != b.dimension {
        return Err(refuse(format!(
            "vectors of one dimension and layout expected, got {} ({}) and {} ({})",
            a.dimension,
            a.layout.as_str(),
            b.dimension,
            b.layout.as_str()
        )));
    }
    if a.spread == Spread::Scores || b.spread == Spread::Scores {
        return Err(refuse(
            "scores in layout coefficients can be added and scaled, not multiplied".to_owned(),
        ));
    }
    match (a.rows, b.rows) {
        (1, _) => Ok(b.column().batched(a.batch)),
        (_, 1) => Ok(a.column().batched(b.batch)),
        (one, other) if one == other && a.spread == Spread::Pairs && b.spread == Spread::Pairs => {
            Ok(a.scores())
        }
        (one, other) if one == other => Err(refuse(
            "a gallery is compared with single vectors; encrypt both with spread pairs to \
            compare row by row"
                .to_owned(),
        )),
        (one, other) => Err(refuse(format!(
            "as many vectors on both sides, or one on one of them, expected; got {one} and {other}"
        ))),
    }
}

fn expect_unit(array: &EncryptedArray) -> Result<()> {
    if array.unit {
        return Ok(());
    }
    Err(Error::CkksSimilarity {
        operation: "cosine",
        detail: "vectors scaled to length 1 expected: encrypt them with normalise=True, which \
            costs nothing, or state the \
                 interval of their lengths to have them scaled while encrypted"
            .to_owned(),
    })
}

fn roles(operation: &'static str) -> Error {
    Error::CkksSimilarity {
        operation,
        detail: "one vector for the left side and one for the right side expected in layout \
            coefficients; encrypt one of \
                 them with the other role, or with role both"
            .to_owned(),
    }
}
