//! The server of encrypted arrays: it adds, multiplies and rotates them, number by number, and holds no secret.

use super::array::{EncryptedArray, Side};
use super::layout::{ArrayLayout, ArrayPacking};
use super::plain::{PlainRows, like};
use super::plan::PlanRequest;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Ciphertext, Encoding, EvaluationKeys, Evaluator, KeyPlan, Params};
use ciphervec_he::wire::KeyId;
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// Who computes on encrypted vectors: parameters and evaluation keys, nothing secret.
#[derive(Clone)]
pub struct Server {
    pub(super) params: Arc<Params>,
    pub(super) keys: [Arc<EvaluationKeys>; 2],
    pub(super) evaluator: Evaluator,
    pub(super) rotator: Evaluator,
    pub(super) key: KeyId,
    pub(super) request: Option<PlanRequest>,
}

impl Server {
    /// A server with what the key owner sent it: the keys for products, and those for rotations,
    /// which may be for a lower level and so smaller.
    ///
    /// # Errors
    /// [`ciphervec_he::Error::WrongKey`] and [`ciphervec_he::Error::Parameters`] for sets of two
    /// owners.
    pub fn new(products: Arc<EvaluationKeys>, rotations: Arc<EvaluationKeys>) -> Result<Self> {
        let params = Arc::clone(products.params());
        let key = products.key_id();
        expect_key(key, rotations.key_id())?;
        let evaluator = Evaluator::new(Arc::clone(&products));
        let rotator = Evaluator::new(Arc::clone(&rotations));
        Ok(Server { params, keys: [products, rotations], evaluator, rotator, key, request: None })
    }

    /// The same server, told what its parameters were chosen for.
    #[doc(hidden)]
    pub fn described(self, request: Option<PlanRequest>) -> Self {
        Server { request, ..self }
    }

    /// What the parameters were chosen for, if for one operation.
    pub fn request(&self) -> Option<&PlanRequest> {
        self.request.as_ref()
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The keys for products, and those for rotations.
    pub fn keys(&self) -> &[Arc<EvaluationKeys>; 2] {
        &self.keys
    }

    /// Bytes of both, serialised.
    pub fn key_bytes(&self) -> usize {
        self.keys.iter().filter(|keys| !keys.is_empty()).map(|keys| keys.bytes()).sum()
    }

    /// Whether products at `level` can be relinearised.
    pub(super) fn can_relinearise(&self, level: usize) -> bool {
        self.keys[0].covers(&KeyPlan::new().relinearise().at_level(level))
    }

    /// The level to encrypt at: the highest, or as high as products go where what lies above is for
    /// bootstrapping.
    pub fn fresh_level(&self) -> usize {
        let products = &self.keys[0];
        match self.params.stages() {
            [] => self.params.max_level(),
            _ => products.level(),
        }
    }

    /// The public name of the owner's key.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// a + b, number by number. A single vector is added to every one of a batch, but not in layout
    /// `coefficients`.
    ///
    /// # Errors
    /// [`Error::CkksSimilarity`] for other shapes or layouts; the scheme's errors.
    pub fn add(&self, a: &EncryptedArray, b: &EncryptedArray) -> Result<EncryptedArray> {
        self.together("addition", a, b, |a, b| Ok(self.evaluator.add(a, b)?))
    }

    /// a − b; as [`Self::add`].
    ///
    /// # Errors
    /// Those of [`Self::add`].
    pub fn sub(&self, a: &EncryptedArray, b: &EncryptedArray) -> Result<EncryptedArray> {
        self.together("subtraction", a, b, |a, b| Ok(self.evaluator.sub(a, b)?))
    }

    /// −a.
    ///
    /// # Errors
    /// [`Error::CkksSimilarity`] for distances; [`ciphervec_he::Error::WrongKey`].
    pub fn negate(&self, a: &EncryptedArray) -> Result<EncryptedArray> {
        let out = self.each("negation", a, |_, _, cipher| Ok(self.evaluator.negate(cipher)))?;
        Ok(out.of_unit_length(a.unit))
    }

    /// a plus plain numbers.
    ///
    /// # Errors
    /// [`Error::CkksSimilarity`] for plain numbers of another shape; the scheme's errors.
    pub fn add_plain(&self, a: &EncryptedArray, plain: &PlainRows<'_>) -> Result<EncryptedArray> {
        plain.expect("addition", &a.packing)?;
        let options = like(a);
        self.each("addition", a, |side, index, cipher| {
            let summand = plain.encode(&self.params, &a.packing, side, index, &options)?;
            Ok(self.evaluator.add_plain(cipher, &summand)?)
        })
    }

    /// a·b, number by number, relinearised and rescaled: one level.
    ///
    /// # Errors
    /// [`Error::CkksSimilarity`] in layout `coefficients`; the scheme's errors, among them a
    /// missing relinearisation key.
    pub fn multiply(&self, a: &EncryptedArray, b: &EncryptedArray) -> Result<EncryptedArray> {
        slotwise("multiplication", &a.packing)?;
        self.together("multiplication", a, b, |a, b| Ok(self.evaluator.mul(a, b)?))
    }

    /// a times plain numbers. Integers that stand for all numbers cost no level, everything else
    /// one.
    ///
    /// # Errors
    /// [`Error::CkksSimilarity`] for plain numbers of another shape, and in layout `coefficients`
    /// for more than one number; the scheme's errors.
    pub fn multiply_plain(
        &self,
        a: &EncryptedArray,
        plain: &PlainRows<'_>,
    ) -> Result<EncryptedArray> {
        plain.expect("multiplication", &a.packing)?;
        if let Some(factor) = plain.scalar() {
            return self.scale(a, factor);
        }
        slotwise("multiplication by an array", &a.packing)?;
        self.each("multiplication", a, |side, index, cipher| {
            self.times(cipher, plain, &a.packing, (side, index))
        })
    }

    /// One ciphertext times the plaintext of its place, rescaled.
    pub(super) fn times(
        &self,
        cipher: &Ciphertext,
        plain: &PlainRows<'_>,
        packing: &ArrayPacking,
        (side, index): (Side, usize),
    ) -> Result<Ciphertext> {
        Ok(self.evaluator.rescale(&self.times_lazy(cipher, plain, packing, (side, index))?)?)
    }

    /// The same, not rescaled yet: sums of many take one rescaling.
    pub(super) fn times_lazy(
        &self,
        cipher: &Ciphertext,
        plain: &PlainRows<'_>,
        packing: &ArrayPacking,
        (side, index): (Side, usize),
    ) -> Result<Ciphertext> {
        let cipher = self.evaluator.normalise(cipher)?;
        // At this scale the product lands, rescaled, on the canonical scale of the level below.
        let options = Encoding {
            level: Some(cipher.level()),
            scale: Some(self.params.scale(cipher.level())),
            ..Encoding::default()
        };
        let factor = plain.encode(&self.params, packing, side, index, &options)?;
        Ok(self.evaluator.multiply_plain(&cipher, &factor)?)
    }

    fn scale(&self, a: &EncryptedArray, factor: f64) -> Result<EncryptedArray> {
        // Integers up to here keep the noise within a scale's reach.
        let whole = factor.fract() == 0.0 && factor.abs() <= f64::from(1u32 << 20);
        self.each("multiplication", a, |_, _, cipher| {
            Ok(if whole {
                self.evaluator.multiply_integer(cipher, factor as i64)?
            } else {
                self.evaluator.mul_scalar(cipher, factor)?
            })
        })
    }

    /// Every vector turned: coordinate i becomes what coordinate i + `by` was, cyclically.
    ///
    /// # Errors
    /// [`Error::CkksSimilarity`] unless the layout is `slots`, with one vector that fills its
    /// slots; a missing rotation key.
    pub fn rotate(&self, a: &EncryptedArray, by: i64) -> Result<EncryptedArray> {
        let packing = &a.packing;
        if packing.layout != ArrayLayout::Slots
            || packing.rows != 1
            || packing.slots() != packing.dimension
        {
            return Err(Error::CkksSimilarity {
                operation: "rotation",
                detail: format!(
                    "one vector in layout slots whose dimension is a power of two expected, got \
                    {} vectors of dimension {} \
                     in layout {}",
                    packing.rows,
                    packing.dimension,
                    packing.layout.as_str()
                ),
            });
        }
        let out =
            self.each("rotation", a, |_, _, cipher| Ok(self.rotator.rotate(cipher, by)?))?;
        Ok(out.of_unit_length(a.unit))
    }

    /// The ciphertexts of `a`, one by one.
    pub(super) fn each(
        &self,
        operation: &'static str,
        a: &EncryptedArray,
        apply: impl Fn(Side, usize, &Ciphertext) -> Result<Ciphertext> + Sync,
    ) -> Result<EncryptedArray> {
        self.expect(operation, a)?;
        let side = |side, ciphers: &[Ciphertext]| {
            let applied = ciphers.par_iter().enumerate().map(|(at, one)| apply(side, at, one));
            applied.collect::<Result<Vec<_>>>()
        };
        let left = side(Side::Left, &a.left)?;
        let right = side(Side::Right, &a.right)?;
        Ok(EncryptedArray::new(a.packing, left, right, &[a]))
    }

    /// The ciphertexts of `a` and `b` that hold the same places, pair by pair.
    fn together(
        &self,
        operation: &'static str,
        a: &EncryptedArray,
        b: &EncryptedArray,
        apply: impl Fn(&Ciphertext, &Ciphertext) -> Result<Ciphertext> + Sync,
    ) -> Result<EncryptedArray> {
        self.expect(operation, a)?;
        self.expect(operation, b)?;
        let packing = common(operation, &a.packing, &b.packing)?;
        let side =
            |a: &EncryptedArray, b: &EncryptedArray, mine: &[Ciphertext], theirs: &[Ciphertext]| {
                if mine.is_empty() || theirs.is_empty() {
                    return Ok(Vec::new());
                }
                let pair = |index| {
                    let one = spread(&packing, &a.packing, mine, index)?;
                    let other = spread(&packing, &b.packing, theirs, index)?;
                    apply(&one, &other)
                };
                (0..packing.ciphertexts()).into_par_iter().map(pair).collect::<Result<Vec<_>>>()
            };
        let left = side(a, b, &a.left, &b.left)?;
        let right = side(a, b, &a.right, &b.right)?;
        if left.is_empty() && right.is_empty() {
            return Err(Error::CkksSimilarity {
                operation,
                detail: "vectors for the left and for the right side of a product lie in different places; encrypt one \
                         of them with role both, or both with the same role"
                    .to_owned(),
            });
        }
        Ok(EncryptedArray::new(packing, left, right, &[a, b]))
    }

    /// Refuses arrays of another key, and distances.
    pub(super) fn expect(&self, operation: &'static str, array: &EncryptedArray) -> Result<()> {
        array.expect_plain(operation)?;
        array.expect_room(operation, self.request().is_some())?;
        expect_key(self.key, array.key_id())
    }
}

/// Refuses what another key encrypted.
pub fn expect_key(expected: KeyId, actual: KeyId) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    let what = "the encrypted array";
    Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into())
}

/// Refuses the layout whose products are not number by number.
pub(super) fn slotwise(operation: &'static str, packing: &ArrayPacking) -> Result<()> {
    if packing.layout == ArrayLayout::Coefficients {
        return Err(Error::CkksSimilarity {
            operation,
            detail: "products in layout coefficients are dot products; take dot, or layout slots or single".to_owned(),
        });
    }
    Ok(())
}

/// The packing of two arrays of one shape, or of one vector and many.
pub(super) fn common(
    operation: &'static str,
    a: &ArrayPacking,
    b: &ArrayPacking,
) -> Result<ArrayPacking> {
    let (small, large) = if a.rows <= b.rows { (a, b) } else { (b, a) };
    let batch = small.batch || large.batch;
    let (small, large) = (&small.batched(batch), &large.batched(batch));
    let same = ArrayPacking { rows: large.rows, spread: large.spread, ..*small } == *large;
    let repeats = small.rows == 1 && large.layout != ArrayLayout::Coefficients;
    if same && (small.rows == large.rows && small.spread == large.spread || repeats) {
        return Ok(*large);
    }
    let describe = |packing: &ArrayPacking| {
        format!(
            "{} × {} ({}{})",
            packing.rows,
            packing.dimension,
            packing.layout.as_str(),
            match packing.layout {
                ArrayLayout::Coefficients => format!(", {}", packing.spread.as_str()),
                _ => format!(", {} apart", packing.stride),
            }
        )
    };
    Err(Error::CkksSimilarity {
        operation,
        detail: format!(
            "arrays of one shape and layout expected, got {} and {}",
            describe(a),
            describe(b)
        ),
    })
}

/// Ciphertext `index` of an array that lies as `packing` does, or of a single vector that stands
/// for every row.
pub(super) fn spread<'a>(
    packing: &ArrayPacking,
    own: &ArrayPacking,
    ciphers: &'a [Ciphertext],
    index: usize,
) -> Result<Cow<'a, Ciphertext>> {
    if own.rows == packing.rows {
        return Ok(Cow::Borrowed(&ciphers[index]));
    }
    let index = if own.layout == ArrayLayout::Single { index % own.dimension } else { 0 };
    // Slots of a sparse ciphertext repeat all over it: more of them are the same vector again.
    Ok(Cow::Owned(ciphers[index].clone().with_slots(packing.slots())?))
}
