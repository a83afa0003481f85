//! Picks the smallest ring that serves a similarity, with its keys and the error to expect. Public numbers only.
//!
//! # Errors of a result
//!
//! |symbol||
//! |---|---|
//! |V = σ² + 1/12, σ = 3.2|variance of fresh noise and the encoding's rounding|
//! |Δ, N|scale, degree|
//! |δ|mean square of a slot over that of a coefficient: N, or 2N in the conjugate-invariant ring|
//! |τ = 2/3|variance of a coefficient of the secret|
//! |B|the largest \|x\|\|y\|, 4 times that for distances|
//! |w|the dimension rounded up to a power of two|
//! |R_g = (1 + δτ + … + (δτ)^g)/12|variance of the rounding of a ciphertext of degree g|
//!
//! |layout|variance of a result times Δ²|
//! |---|---|
//! |`coefficients`|2VB + 2R₂|
//! |`single`|δ (2VB + 2R₂)|
//! |`slots`|δ (2VB + w (2R₁ + δσ²/12))|
//!
//! The terms in B: each fresh error meets the other vector's length. R₂: the rescaling, doubled as
//! values of s² vary. In `slots`: w slots, each with the errors of the rescaling and of rotations
//! with one digit as wide as the special prime.
//!
//! Distances take twice the root. `error_bound` is six standard deviations: one result in 500
//! million exceeds it. `for_similarity` takes the smallest N whose widest scale keeps it below
//! 2^−precision_bits of the largest result. That scale leaves three bits above the largest result
//! in the base prime of at most 50 bits, and all primes within the security table: 2 log2 Δ + log2
//! B bits without keys, 3 log2 Δ + 2 log2 B with them.

use super::keys::KeyList;
use super::layout::ArrayLayout;
use crate::error::{Error, Result};
use crate::index::spec::MAX_DIMENSION;
use ciphervec_he::ckks::{Params, ParamsSpec, Ring};
use ciphervec_he::params::{Security, max_log_modulus};
use core::str::FromStr;
use std::sync::Arc;

/// Standard deviations that an error is said to stay within: one in 500 million goes beyond.
const DEVIATIONS: f64 = 6.0;
/// σ² of the noise of an encryption, and the variance of a rounding.
const GAUSSIAN: f64 = 3.2 * 3.2;
const ROUNDING: f64 = 1.0 / 12.0;
/// The variance of a coefficient of a ternary secret.
const TERNARY: f64 = 2.0 / 3.0;
/// Bits that the base prime has beyond the largest result: its sign, and room for the error and for
/// primes a little off.
const SIGN_BITS: u32 = 3;
/// Widest prime.
const PRIME_BITS: u32 = 50;
/// Widest and narrowest scale.
const SCALE_BITS: core::ops::RangeInclusive<u32> = 20..=48;

/// Of what the modulus of a level holds, the part that numbers may fill: the rest is for their errors.
const FILLED: f64 = 0.99;

/// The smallest parameters for `depth` products in a row that hold numbers up to `magnitude` at the end. Where one prime
/// does not, levels are added which no product uses.
///
/// # Errors
/// As [`Params::for_depth_in`]; a magnitude that is not positive and finite.
pub fn params_for_depth(
    ring: Ring,
    depth: usize,
    precision_bits: u32,
    magnitude: f64,
    security: Security,
) -> Result<Arc<Params>> {
    if !(magnitude.is_finite() && magnitude > 0.0) {
        return Err(Error::Range {
            what: "the magnitude of numbers",
            expected: "positive and finite".into(),
            actual: magnitude.to_string(),
        });
    }
    let mut more = 0;
    loop {
        let params = Params::for_depth_in(ring, depth + more, precision_bits, security)?;
        let room = (params.log_modulus(more) - 1.0).exp2() / params.scale(more);
        if magnitude <= FILLED * room {
            return Ok(params);
        }
        more += 1;
    }
}

/// What is computed of two vectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Operation {
    /// x·y.
    Dot = 0,
    /// x·y of vectors that the owner scales to length 1.
    Cosine = 1,
    /// |x − y|².
    SquaredDistance = 2,
    /// |x − y|, whose root the owner takes.
    Distance = 3,
}

impl Operation {
    const ALL: [Operation; 4] =
        [Operation::Dot, Operation::Cosine, Operation::SquaredDistance, Operation::Distance];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Dot => "dot",
            Operation::Cosine => "cosine",
            Operation::SquaredDistance => "squared_distance",
            Operation::Distance => "distance",
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| *operation as u8 == byte)
    }
}

impl FromStr for Operation {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == name).ok_or_else(|| {
            Error::choice("operation", "dot, cosine, squared_distance or distance", name)
        })
    }
}

/// What parameters are wanted for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlanRequest {
    /// What is computed.
    pub operation: Operation,
    /// How vectors lie.
    pub layout: ArrayLayout,
    /// Coordinates of a vector.
    pub dimension: usize,
    /// Largest coordinate, in absolute value. Without a meaning for cosines.
    pub magnitude: f64,
    /// b: a result is off by less than 2^-b times the largest that vectors of this magnitude can
    /// have.
    pub precision_bits: u32,
    /// Whether one of the two vectors is plain on the server.
    pub plain: bool,
    /// The row of the security table.
    pub security: Security,
}

impl PlanRequest {
    /// The largest length of a vector.
    pub fn norm(&self) -> f64 {
        match self.operation {
            Operation::Cosine => 1.0,
            _ => self.magnitude * (self.dimension as f64).sqrt(),
        }
    }

    /// The largest coordinate of a vector.
    pub fn coordinate(&self) -> f64 {
        match self.operation {
            Operation::Cosine => 1.0,
            _ => self.magnitude,
        }
    }

    /// The largest result, before any root.
    pub fn largest(&self) -> f64 {
        match self.operation {
            Operation::Dot | Operation::Cosine => self.norm().powi(2),
            Operation::SquaredDistance | Operation::Distance => 4.0 * self.norm().powi(2),
        }
    }

    /// What was chosen and why, in words: parameters made for this request, with `key_bytes` of
    /// evaluation keys.
    pub fn explain(&self, params: &Params, key_bytes: usize) -> String {
        let spec = params.spec();
        let (largest, error) = (self.largest(), self.error(spec));
        let dimension = self.dimension;
        let how = match self.layout {
            ArrayLayout::Slots => format!(
                "multiply, {}rescale, {} rotations and sums",
                if self.plain { "" } else { "relinearise, " },
                self.width().trailing_zeros()
            ),
            ArrayLayout::Coefficients => {
                "one product of polynomials, with the dot product in a coefficient; not \
                relinearised, so no evaluation key"
                    .to_owned()
            }
            ArrayLayout::Single => format!(
                "{dimension} products, summed and rescaled once; not relinearised, so no evaluation key"
            ),
        };
        format!(
            "{} of encrypted vectors of dimension {dimension} and {} ones in layout {}: {how}. A \
            result is at most {largest:.4} \
             and off by less than {error:.1e}, {:.1} bits below that; {} were asked for. {} ring \
             of degree 2^{}, the smallest that \
             reaches them: primes of {} and {} bits and {}, {} slots, {}. Evaluation keys: {key_bytes} bytes.",
            self.operation.as_str(),
            if self.plain { "plain" } else { "encrypted" },
            self.layout.as_str(),
            (largest / error).log2(),
            self.precision_bits,
            spec.ring.as_str(),
            spec.log_degree,
            spec.base_bits,
            spec.scale_bits,
            match spec.special_primes {
                0 => "no special prime".to_owned(),
                _ => format!("a special one of {} bits", spec.special_bits),
            },
            params.max_slots(),
            spec.security.as_str(),
        )
    }

    pub(super) fn check(&self) -> Result<()> {
        let range =
            |what, expected: String, actual: String| Error::Range { what, expected, actual };
        if self.dimension == 0 || self.dimension > MAX_DIMENSION as usize {
            let expected = format!("1 to {MAX_DIMENSION}");
            return Err(range("the dimension", expected, self.dimension.to_string()));
        }
        if !(1e-6..=1e6).contains(&self.magnitude) {
            let expected = "10^-6 to 10^6; scale the vectors".to_owned();
            return Err(range("the magnitude", expected, self.magnitude.to_string()));
        }
        if !(1..=40).contains(&self.precision_bits) {
            let expected = "1 to 40 bits".to_owned();
            return Err(range("the precision", expected, self.precision_bits.to_string()));
        }
        Ok(())
    }

    /// Slots that sums go over.
    fn width(&self) -> usize {
        self.dimension.next_power_of_two()
    }

    /// Whether results need switched keys.
    fn switches(&self) -> bool {
        self.layout == ArrayLayout::Slots && (!self.plain || self.width() > 1)
    }

    /// Embeddings are real, so slots are taken in the ring that has only real ones; coefficients
    /// need `X^N = −1`.
    fn ring(&self) -> Ring {
        match self.layout {
            ArrayLayout::Coefficients => Ring::Standard,
            _ => Ring::ConjugateInvariant,
        }
    }

    /// The widest scale that a ring has room for, if any.
    fn spec(&self, log_degree: u32) -> Option<ParamsSpec> {
        let room = match self.layout {
            ArrayLayout::Single => true,
            _ => self.dimension <= 1 << log_degree,
        };
        let limit = max_log_modulus(1 << log_degree, self.security)?;
        let headroom = self.largest().log2().ceil().max(0.0) as u32 + SIGN_BITS;
        // log2 of q_0 q_1 P is 3 scale + 2 headroom with a key switch, 2 scale + headroom without;
        // one bit for rounding up.
        let widest = match self.switches() {
            true => (limit - 1).saturating_sub(2 * headroom) / 3,
            false => (limit - 1).saturating_sub(headroom) / 2,
        };
        let scale_bits = widest.min(PRIME_BITS.saturating_sub(headroom)).min(*SCALE_BITS.end());
        (room && SCALE_BITS.contains(&scale_bits)).then(|| ParamsSpec {
            log_degree,
            ring: self.ring(),
            base_bits: scale_bits + headroom,
            scale_bits,
            levels: 1,
            special_primes: usize::from(self.switches()),
            special_bits: scale_bits + headroom,
            digits: 2,
            security: self.security,
        })
    }

    /// What the error of a result, before any root, stays within under parameters made for this
    /// request.
    pub fn error_under(&self, params: &Params) -> f64 {
        self.error(params.spec())
    }

    /// By the formulas above.
    fn error(&self, spec: &ParamsSpec) -> f64 {
        let degree = f64::exp2(f64::from(spec.log_degree));
        let scale = f64::exp2(f64::from(spec.scale_bits));
        let terms = self.width() as f64;
        let expansion = match spec.ring {
            Ring::Standard => degree,
            _ => 2.0 * degree,
        };
        // Two fresh errors times the other vector's length, of x and y or, for distances, twice x −
        // y.
        let fresh = 2.0 * (GAUSSIAN + ROUNDING) * self.largest();
        let secret = expansion * TERNARY;
        let rounding = |degree_of_key: i32| {
            ROUNDING * (0..=degree_of_key).map(|power| secret.powi(power)).sum::<f64>()
        };
        let variance = match self.layout {
            ArrayLayout::Coefficients => fresh + 2.0 * rounding(2),
            ArrayLayout::Single => expansion * (fresh + 2.0 * rounding(2)),
            ArrayLayout::Slots => {
                // The product's rounding, then a rotation's error at every doubling; sums over w
                // slots have w of each.
                let switch = expansion * ROUNDING * GAUSSIAN + rounding(1);
                expansion * (fresh + terms * (rounding(1) + switch))
            }
        };
        let doubled = match self.operation {
            Operation::Cosine | Operation::Dot => 1.0,
            _ => 2.0,
        };
        DEVIATIONS * doubled * variance.sqrt() / scale
    }
}

/// Parameters and keys for a request.
#[derive(Clone, Debug)]
pub struct Plan {
    request: PlanRequest,
    params: Arc<Params>,
    keys: KeyList,
    error: f64,
}

impl Plan {
    /// The smallest ring that reaches the precision, with the widest scale it has room for.
    ///
    /// # Errors
    /// [`Error::Range`] for a request out of bounds, and for a precision that no ring of one
    /// product reaches.
    pub fn new(request: PlanRequest) -> Result<Self> {
        request.check()?;
        let goal = request.largest() * f64::exp2(-f64::from(request.precision_bits));
        let mut best = f64::INFINITY;
        for log_degree in 12..=17 {
            let Some(spec) = request.spec(log_degree) else { continue };
            let error = request.error(&spec);
            best = best.min(error);
            if error <= goal {
                let params = Params::new(spec)?;
                let keys = keys(&request);
                return Ok(Plan { request, params, keys, error });
            }
        }
        Err(Error::Range {
            what: "the precision",
            expected: format!(
                "at most {} bits of results up to {:.3e}",
                (request.largest() / best).log2().floor().max(0.0),
                request.largest()
            ),
            actual: format!("{} bits", request.precision_bits),
        })
    }

    /// What was asked for.
    pub fn request(&self) -> &PlanRequest {
        &self.request
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The keys that the server needs, and no others.
    pub fn keys(&self) -> &KeyList {
        &self.keys
    }

    /// What the error of a result, before any root, stays within.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// What was chosen and why, in words.
    ///
    /// # Errors
    /// None: keys of a plan have the levels of its parameters.
    pub fn explain(&self) -> Result<String> {
        let (products, rotations) = self.keys.bytes(&self.params)?;
        Ok(self.request.explain(&self.params, products + rotations))
    }
}

/// A relinearisation key for the product, rotation keys for the level below it.
fn keys(request: &PlanRequest) -> KeyList {
    if !request.switches() {
        return KeyList::default();
    }
    // Distances from a plain vector square a difference.
    let alone = request.plain && matches!(request.operation, Operation::Dot | Operation::Cosine);
    let products = KeyList { relinearise: (!alone).then_some(1), ..KeyList::default() };
    products.sums(request.width())
}
