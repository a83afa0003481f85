//! Sign: about ±1 for encrypted numbers of [−1, 1] that keep a distance from 0. Server only.
//!
//! Odd polynomials, one after the other: each takes what the one before it left of `[r, 1]` (and of
//! its mirror image) closer to 1, being the closest to 1 of its degree there (Cheon, Kim & Kim,
//! ASIACRYPT 2020; Lee, Lee, No & Kim, IEEE TDSC 2021, IACR ePrint 2020/834). All but the last are
//! divided by the most that they reach, so that none leaves `[−1, 1]` and no level is spent between
//! two of them; that holds for numbers in the gap around 0 as well.
//!
//! Degrees are found by dynamic programming (docs/ckks.md, section 8.5, has results).
//!
//! # Stages and their estimates
//!
//! *sign(x) for gap ≤ |x| ≤ 1* is a composition of odd polynomials of degree at most 31, each the
//! closest to 1 on \[a, b], 0 < a, by Remez's exchange (`minimax.rs`), of largest error E. Divided
//! by 1 + E it takes \[a, b] to \[(1 − E)/(1 + E), 1] and \[−1, 1] to itself. The last is not
//! divided: it is off by E on both sides. Degrees are those of the fewest levels, then
//! relinearisations, then products.
//!
//! Every stage is built for inputs that are off by up to ν, by default 1/32 of the gap: a stage for
//! r is the best on \[r − ν, 1 + ν]. `Evaluator::sign` refuses if 9.5 standard deviations of the
//! error in a slot exceed ν before any stage. So a result's estimate is that of the last stage's
//! own operations; the bound adds E, unless an earlier stage's bound is over ν: then it goes on as
//! through any polynomial. **For a slot in the gap neither holds.**

use super::ciphertext::Ciphertext;
use super::evaluate::Evaluator;
use super::noise::Noise;
use super::operations::Estimates;
use super::polynomial::Polynomial;
use super::polynomial_evaluation::evaluate;
use super::sign_search::{MOST_LEVELS, Noises, after, shallowest, stage};
use crate::error::{Error, Result};
use crate::params::TAIL_DEVIATIONS;

/// Smallest gap: below it doubles are as wide as what is left of it.
const LEAST_GAP: f64 = 1.0 / (1u64 << 40) as f64;
/// Most bits of an output, for the same reason.
const MOST_BITS: f64 = 40.0;
/// What inputs of a stage may be off by unless something else is asked for: this part of the gap,
/// which hardly ever takes a level more than exact ones.
const NOISE_OF_GAP: f64 = 1.0 / 32.0;
/// A declared magnitude that is 1 but for rounding.
const ONE: f64 = 1.0 + 1.0 / (1u64 << 30) as f64;

/// How to take the sign of numbers `x` with `gap ≤ |x| ≤ 1`.
#[derive(Clone, PartialEq, Debug)]
pub struct Sign {
    gap: f64,
    alpha: f64,
    noises: Noises,
    stages: Vec<Polynomial>,
    /// What the inputs of each stage may be off by.
    stands: Vec<f64>,
    error: f64,
}

impl Sign {
    /// The composition in the fewest levels, and of those with the least work, whose results are
    /// off by at most `2^-alpha`. Every stage is built for inputs that are off by up to 1/32 of the
    /// gap.
    ///
    /// # Errors
    /// [`Error::TooFine`] for a gap below `2⁻⁴⁰`, or if more than 63 levels were needed;
    /// [`Error::Range`] unless `0 < gap < 1` and `1 ≤ alpha ≤ 40`.
    pub fn new(gap: f64, alpha: f64) -> Result<Self> {
        Self::with_noise(gap, alpha, NOISE_OF_GAP * gap)
    }

    /// [`Self::new`] for inputs of every stage that are off by up to `noise`.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::Range`] for a noise that is negative or not below half the gap.
    pub fn with_noise(gap: f64, alpha: f64, noise: f64) -> Result<Self> {
        Self::build(gap, alpha, Noises::Levels { early_levels: 0, early: noise, late: noise })
    }

    /// [`Self::with_noise`] where errors of single operations count: inputs of the first stage are
    /// off by up to `noise`, three times what one rescale adds, and those of all others by what the
    /// stage before them leaves of that. High degrees leave most, and so come when numbers are
    /// further from 0.
    ///
    /// # Errors
    /// As [`Self::with_noise`]; [`Error::Range`] for a noise of 0.
    pub fn graded(gap: f64, alpha: f64, noise: f64) -> Result<Self> {
        if noise == 0.0 {
            return Err(Error::Range {
                what: "what the inputs of a graded sign are off by",
                expected: "above 0: of that all stages have a part".into(),
                actual: noise.to_string(),
            });
        }
        Self::build(gap, alpha, Noises::Graded(noise))
    }

    /// [`Self::with_noise`] of numbers that are refreshed on the way: stages that end within the first
    /// `levels` levels are for inputs that are off by up to `early`, all others for `late`, which may
    /// be more than the gap: by then numbers are further from 0.
    ///
    /// # Errors
    /// As [`Self::with_noise`], of `early`; [`Error::Range`] for a `late` noise that is not below 1/4.
    pub fn refreshed(
        gap: f64,
        alpha: f64,
        (levels, early): (usize, f64),
        late: f64,
    ) -> Result<Self> {
        if !(0.0..0.25).contains(&late) {
            return Err(Error::Range {
                what: "what later stages of a sign may be off by",
                expected: "not negative, and below 1/4".into(),
                actual: late.to_string(),
            });
        }
        Self::build(gap, alpha, Noises::Levels { early_levels: levels, early, late })
    }

    fn build(gap: f64, alpha: f64, noises: Noises) -> Result<Self> {
        let noise = noises.first();
        let range = |what, expected: String, actual: f64| {
            Err(Error::Range { what, expected, actual: actual.to_string() })
        };
        if gap > 0.0 && gap < LEAST_GAP {
            return Err(Error::TooFine { levels: MOST_LEVELS });
        }
        if !(LEAST_GAP..1.0).contains(&gap) {
            let expected = format!("from {LEAST_GAP:e} to below 1");
            return range("the gap of a sign", expected, gap);
        }
        if !(1.0..=MOST_BITS).contains(&alpha) {
            let expected = format!("from 1 to {MOST_BITS} bits");
            return range("the precision of a sign", expected, alpha);
        }
        if !(0.0..0.5 * gap).contains(&noise) {
            let expected = format!("not negative, and below {:e}, half the gap", 0.5 * gap);
            return range("what the inputs of a sign are off by", expected, noise);
        }
        let Some(found) = shallowest(gap, (-alpha).exp2(), noises)? else {
            return Err(Error::TooFine { levels: MOST_LEVELS });
        };
        let (mut reached, mut stages, mut error) = (gap, Vec::new(), 1.0);
        for (place, &(degree, noise)) in found.iter().enumerate() {
            let minimax = stage(degree, reached, noise, noises)?;
            let most = if place + 1 == found.len() { 1.0 } else { 1.0 + minimax.error };
            let mut coefficients = vec![0.0; degree + 1];
            for (place, c) in coefficients.iter_mut().skip(1).step_by(2).zip(&minimax.coefficients)
            {
                *place = c / most;
            }
            stages.push(Polynomial::chebyshev(-1.0, 1.0, &coefficients)?);
            (reached, error) = (after(&minimax), minimax.error);
        }
        let stands = found.into_iter().map(|(_, noise)| noise).collect();
        Ok(Sign { gap, alpha, noises, stages, stands, error })
    }

    /// The polynomials, the first of them to be taken first.
    pub fn stages(&self) -> &[Polynomial] {
        &self.stages
    }

    /// Bits of its results.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The levels that it spends.
    pub fn depth(&self) -> usize {
        self.stages.iter().map(Polynomial::depth).sum()
    }

    /// Products of two ciphertexts that it takes.
    pub fn products(&self) -> usize {
        self.stages.iter().map(Polynomial::products).sum()
    }

    /// How often it relinearises.
    pub fn relinearisations(&self) -> usize {
        self.stages.iter().map(Polynomial::relinearisations).sum()
    }

    /// The distance from 0 that numbers have to keep.
    pub fn gap(&self) -> f64 {
        self.gap
    }

    /// What inputs of every stage may be off by; of [`Self::refreshed`] those of later ones, of
    /// [`Self::graded`] those of the first.
    pub fn noise(&self) -> f64 {
        match self.noises {
            Noises::Levels { late, .. } => late,
            Noises::Graded(first) => first,
        }
    }

    /// What inputs of each stage may be off by.
    pub fn stands(&self) -> &[f64] {
        &self.stands
    }

    /// Whether it is one of [`Self::graded`].
    pub fn is_graded(&self) -> bool {
        matches!(self.noises, Noises::Graded(_))
    }

    /// Of [`Self::refreshed`] the levels that stages end within whose inputs are closer, and what they
    /// may be off by.
    pub fn early(&self) -> Option<(usize, f64)> {
        let Noises::Levels { early_levels, early, late } = self.noises else { return None };
        (early_levels > 0 || early != late).then_some((early_levels, early))
    }

    /// The largest distance of a result from ±1, whatever the inputs of all stages are off by
    /// within what they were built for; what the last stage's own operations add comes on top.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// The value at `x` in double precision.
    pub fn evaluate(&self, x: f64) -> f64 {
        self.stages.iter().fold(x, |x, stage| stage.evaluate(x))
    }
}

impl Evaluator {
    /// About the sign of every slot, ±1 up to [`Sign::error`], [`Sign::depth`] levels lower. What
    /// is pending in `x` is rescaled first.
    ///
    /// The noise of the result is that of its last stage alone: all before it was room that the
    /// stages were built with. A slot in the gap becomes some number of [−1, 1], for which neither
    /// estimate of the result holds.
    ///
    /// # Errors
    /// [`Error::Level`] if fewer levels are left, [`Error::MissingKey`] without the relinearisation
    /// key; [`Error::Range`] for a declared magnitude over 1, [`Error::TooNoisy`] if 9.5 standard
    /// deviations of the error in a slot, before any stage, are over [`Sign::noise`].
    pub fn sign(&self, x: &Ciphertext, sign: &Sign) -> Result<Ciphertext> {
        take(self, x, sign)
    }

    /// The polynomial `stage` of [`Self::sign`], of what the one before it has left: between two of
    /// them a ciphertext can be refreshed.
    ///
    /// # Errors
    /// As [`Self::sign`]; [`Error::Range`] for a stage that it does not have.
    pub fn sign_stage(&self, x: &Ciphertext, sign: &Sign, stage: usize) -> Result<Ciphertext> {
        take_stage(self, x, sign, stage)
    }
}

/// The sign of every slot.
pub(super) fn take<O: Estimates>(operations: &O, x: &O::Value, sign: &Sign) -> Result<O::Value> {
    let x = operations.normalise(x)?;
    check_magnitude(operations, &x)?;
    let (level, depth) = (operations.level(&x), sign.depth());
    if level < depth {
        return Err(Error::Level {
            operation: "a sign",
            needed: format!("{depth} levels"),
            left: format!("{level} are"),
        });
    }
    (0..sign.stages.len()).try_fold(x, |x, stage| take_stage(operations, &x, sign, stage))
}

/// One polynomial of a sign.
pub(super) fn take_stage<O: Estimates>(
    operations: &O,
    x: &O::Value,
    sign: &Sign,
    place: usize,
) -> Result<O::Value> {
    let x = operations.normalise(x)?;
    check_magnitude(operations, &x)?;
    let Some(stage) = sign.stages.get(place) else {
        let (what, expected) = ("a stage of a sign", format!("below {}", sign.stages.len()));
        return Err(Error::Range { what, expected, actual: place.to_string() });
    };
    let (noise, scale) = (operations.noise(&x), operations.scale(&x));
    let off = TAIL_DEVIATIONS * noise.std * operations.expansion().sqrt() / scale;
    let most = sign.stands[place];
    if off > most {
        let [off, most] = [off, most].map(|error| format!("2^{:.1}", error.log2()));
        return Err(Error::TooNoisy { off, most });
    }
    // What the stage was built for is no error of its result; a bound that is over it stays.
    let bound = if noise.bound / scale <= most { 0.0 } else { noise.bound };
    let x = operations.with_noise(x, Noise { std: 0.0, bound });
    let x = operations.with_magnitude(evaluate(operations, &x, stage)?, 1.0)?;
    if place + 1 < sign.stages.len() {
        return Ok(x);
    }
    let (noise, off) = (operations.noise(&x), sign.error * operations.scale(&x));
    let x = operations.with_noise(x, Noise { bound: noise.bound + off, ..noise });
    operations.with_magnitude(x, 1.0 + sign.error)
}

fn check_magnitude<O: Estimates>(operations: &O, x: &O::Value) -> Result<()> {
    if operations.magnitude(x) <= ONE {
        return Ok(());
    }
    Err(Error::Range {
        what: "the declared magnitude of a number whose sign is taken",
        expected: "at most 1; scale it, or declare what is known with with_magnitude".into(),
        actual: operations.magnitude(x).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::operations::Products;
    use super::*;

    const EXACT: Noises = Noises::Levels { early_levels: 0, early: 0.0, late: 0.0 };

    /// Numbers from `low` to 1, dense at both ends and on every scale between.
    fn points(low: f64) -> impl Iterator<Item = f64> {
        let even = (0..=2000).map(move |k| low + (1.0 - low) * f64::from(k) / 2000.0);
        let geometric = (0..=2000).map(move |k| low.powf(f64::from(k) / 2000.0));
        even.chain(geometric).map(move |x| x.clamp(low, 1.0))
    }

    #[test]
    fn results_are_as_close_to_one_as_was_asked_for() {
        for log in 3..=20 {
            for alpha in [4.0, 20.0, 30.0] {
                let gap = f64::exp2(-f64::from(log));
                let sign = Sign::new(gap, alpha).unwrap();
                assert!(sign.error() <= (-alpha).exp2(), "2^-{log}, {alpha} bits");
                let largest = points(gap).map(|x| (sign.evaluate(x) - 1.0).abs());
                let largest = largest.fold(0.0, f64::max);
                assert!(largest <= sign.error() + 1e-13, "2^-{log}: {largest:e}");
                // Odd, and inside of [-1, 1] whatever enters, the gap included.
                for x in points(gap).chain((0..1000).map(|k| gap * f64::from(k) / 1000.0)) {
                    let mut value = x;
                    for stage in sign.stages() {
                        value = stage.evaluate(value);
                        assert!(value <= 1.0 + sign.error() + 1e-12 && value >= -1e-12);
                    }
                    assert!((sign.evaluate(-x) + value).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn every_stage_stands_the_noise_it_was_built_for() {
        for (log, alpha, noise) in [(4, 8.0, -8.0), (8, 12.0, -11.0), (17, 20.0, -20.0)] {
            let (gap, noise) = (f64::exp2(-f64::from(log)), f64::exp2(noise));
            let sign = Sign::with_noise(gap, alpha, noise).unwrap();
            for pattern in 0..1u32 << sign.stages().len() {
                for x in points(gap).step_by(7) {
                    let mut value = x;
                    for (place, stage) in sign.stages().iter().enumerate() {
                        let off = if pattern >> place & 1 == 0 { noise } else { -noise };
                        value = stage.evaluate(value + off);
                    }
                    assert!((value - 1.0).abs() <= sign.error() + 1e-13, "2^-{log}, {x}");
                }
            }
        }
    }

    /// Numbers that are told apart to 2^-24, refreshed with an error of 2^-17.5 once ten levels have
    /// taken them further from 0.
    #[test]
    fn stages_after_a_refresh_stand_more_than_those_before() {
        let (gap, early, late) = (f64::exp2(-24.0), (10, f64::exp2(-28.0)), f64::exp2(-17.5));
        assert!(Sign::with_noise(gap, 12.0, late).is_err());
        let sign = Sign::refreshed(gap, 12.0, early, late).unwrap();
        assert_eq!((sign.early(), sign.noise()), (Some(early), late));
        let alone = Sign::with_noise(gap, 12.0, early.1).unwrap();
        assert!(sign.depth() <= alone.depth() + 4, "{} and {}", sign.depth(), alone.depth());
        assert_eq!(alone.early(), None);
        for pattern in 0..1u32 << sign.stages().len() {
            for x in points(gap).step_by(7) {
                let (mut value, mut depth) = (x, 0);
                for (place, stage) in sign.stages().iter().enumerate() {
                    depth += stage.depth();
                    let noise = if depth <= early.0 { early.1 } else { late };
                    value = stage
                        .evaluate(value + if pattern >> place & 1 == 0 { noise } else { -noise });
                }
                assert!((value - 1.0).abs() <= sign.error() + 1e-13, "{x}: {value}");
            }
        }
    }

    /// Stages add errors of their own, 2^-22 and more of what they lead to: no part of a gap of 2^-24.
    #[test]
    fn stages_of_a_graded_sign_stand_what_those_before_leave() {
        let (gap, first) = (f64::exp2(-24.0), f64::exp2(-26.0));
        let sign = Sign::graded(gap, 12.0, first).unwrap();
        assert!(sign.is_graded() && sign.early().is_none() && sign.noise() == first);
        let alone = Sign::with_noise(gap, 12.0, first).unwrap();
        assert!(sign.depth() <= alone.depth() + 3, "{} and {}", sign.depth(), alone.depth());
        // None leaves less than a rescale, and the last ones that lead away from 0 leave a hundred
        // times that.
        assert!(sign.stands.iter().all(|&one| one > first / 3.0), "{:?}", sign.stands);
        assert!(sign.stands.iter().any(|&one| one > 32.0 * first), "{:?}", sign.stands);
        for pattern in 0..1u32 << sign.stages().len() {
            for x in points(gap).step_by(7) {
                let mut value = x;
                for (place, stage) in sign.stages().iter().enumerate() {
                    let noise = sign.stands[place];
                    value = stage
                        .evaluate(value + if pattern >> place & 1 == 0 { noise } else { -noise });
                }
                assert!((value - 1.0).abs() <= sign.error() + 1e-13, "{x}: {value}");
            }
        }
        assert!(Sign::graded(gap, 12.0, 0.0).is_err());
    }

    /// All sequences of odd degrees up to 31 that take `depth` levels, with what they reach.
    fn search(reached: f64, depth: usize, degrees: &[usize], seen: &mut impl FnMut(f64, usize)) {
        for &degree in degrees {
            let levels = (degree + 1).next_power_of_two().ilog2() as usize;
            if levels > depth {
                continue;
            }
            let Ok(minimax) = stage(degree, reached, 0.0, EXACT) else { continue };
            seen(minimax.error, depth - levels);
            if depth - levels >= 2 {
                search(after(&minimax), depth - levels, degrees, seen);
            }
        }
    }

    #[test]
    fn no_composition_is_shallower() {
        // The deepest degrees of every depth are the best of it.
        for (log, alpha) in [(2, 6.0), (4, 10.0), (6, 10.0), (10, 14.0)] {
            let gap = f64::exp2(-f64::from(log));
            let sign = Sign::with_noise(gap, alpha, 0.0).unwrap();
            let mut least = f64::INFINITY;
            search(gap, sign.depth() - 1, &[3, 7, 15, 31], &mut |error, _| {
                least = least.min(error)
            });
            assert!(least > (-alpha).exp2(), "2^-{log}: {least:e} in fewer than {}", sign.depth());
        }
        // Nine tenths of a bit of the gap a level and more, at one precision.
        let depth = |log: i32| Sign::new(f64::exp2(-f64::from(log)), 20.0).unwrap().depth();
        assert!(depth(24) - depth(10) <= 15);
        assert!(depth(17) <= 23);
    }

    #[test]
    fn none_of_that_depth_takes_less_work() {
        let every: Vec<usize> = (3..=31).step_by(2).collect();
        for (log, alpha) in [(3, 4.0), (4, 6.0)] {
            let gap = f64::exp2(-f64::from(log));
            let sign = Sign::with_noise(gap, alpha, 0.0).unwrap();
            // Sequences whose last stage takes the last level, by their switches.
            fn least(reached: f64, depth: usize, goal: f64, degrees: &[usize]) -> Option<Products> {
                let of = |degree: usize| {
                    let c: Vec<f64> = (0..=degree).map(|k| 0.5 / (k + 1) as f64).collect();
                    let odd: Vec<f64> =
                        c.iter().enumerate().map(|(k, c)| c * (k % 2) as f64).collect();
                    Polynomial::chebyshev(-1.0, 1.0, &odd).unwrap()
                };
                let tried = degrees.iter().filter_map(|&degree| {
                    let polynomial = of(degree);
                    let left = depth.checked_sub(polynomial.depth())?;
                    let minimax = stage(degree, reached, 0.0, EXACT).ok()?;
                    if minimax.error <= goal {
                        return (left == 0).then(|| polynomial.work());
                    }
                    Some(polynomial.work() + least(after(&minimax), left, goal, degrees)?)
                });
                tried.min()
            }
            let best = least(gap, sign.depth(), (-alpha).exp2(), &every).unwrap();
            assert_eq!((sign.relinearisations(), sign.products()), (best.switches, best.products));
        }
    }

    #[test]
    fn refuses_what_means_nothing() {
        for gap in [0.0, -0.5, 1.0, 2.0, f64::NAN, f64::INFINITY] {
            let error = Sign::new(gap, 10.0).unwrap_err().to_string();
            assert!(error.contains("gap") && error.contains(&gap.to_string()), "{error}");
        }
        for (gap, alpha) in [(1e-13, 10.0), (1e-12, 40.0)] {
            assert_eq!(Sign::new(gap, alpha), Err(Error::TooFine { levels: MOST_LEVELS }));
        }
        for alpha in [0.0, -3.0, 41.0, f64::NAN] {
            let error = Sign::new(0.1, alpha).unwrap_err().to_string();
            assert!(error.contains("precision"), "{error}");
        }
        for noise in [-1e-9, 0.05, f64::NAN] {
            let error = Sign::with_noise(0.1, 10.0, noise).unwrap_err().to_string();
            assert!(error.contains("half the gap"), "{error}");
        }
    }
}
