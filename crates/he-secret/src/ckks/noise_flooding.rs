//! Decrypts results that others may see, under noise that hides their exact errors. Owner only.
//!
//! The exact error of a decryption is a linear equation in the secret key (Li & Micciancio 2021,
//! IACR ePrint 2020/1533). Noise that dwarfs a bound on the error hides it: with `n` numbers of
//! error at most B each, Gaussian noise of standard deviation σ = B √(n τ) 2^(s−1), and τ such
//! results, what is seen is within statistical distance 2^−s of what could be computed without the
//! ciphertext (docs/ckks.md, section 6).
//!
//! B is that of the computation which the owner expects, and never the ciphertext's word: whoever
//! may write one would write that too.

use super::keys::{Budget, PublishPolicy, SecretKey};
use super::{Ciphertext, Complex, Expected, Noise};
use crate::error::{Error, Result};
use crate::gaussian;
use crate::random::random_bytes;
use std::sync::{MutexGuard, PoisonError};

/// Rounding keeps this many bits below the noise.
const GUARD_BITS: f64 = 4.0;

impl PublishPolicy {
    /// Deviations that a flood goes beyond with a chance below 2^−κ: √(2 ln 2 (κ + 1)).
    pub fn reach(&self) -> f64 {
        (2.0 * core::f64::consts::LN_2 * (f64::from(self.statistical_bits) + 1.0)).sqrt()
    }
}

/// A published result.
#[derive(Clone, PartialEq, Debug)]
pub struct Published {
    /// The numbers, rounded.
    pub values: Vec<Complex>,
    /// The standard deviation of the noise in each part of a number.
    pub deviation: f64,
}

impl SecretKey {
    /// What the key has published. It is part of its bytes, but bytes can be read twice: what counts
    /// for good is a ledger that is written before a result leaves, see [`Self::count_published`].
    pub fn published(&self) -> Budget {
        *self.budget()
    }

    /// Takes over what a ledger has counted under `policy`; a count never goes down.
    ///
    /// # Errors
    /// [`Error::Range`] for another policy than the key has published under.
    pub fn count_published(&self, policy: PublishPolicy, used: u64) -> Result<()> {
        self.budget().raise(policy, used)
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The standard deviation of the noise that publishing what is so `expected` would add; counts
    /// nothing.
    ///
    /// # Errors
    /// Those of [`Self::publish`] that depend on neither the key nor its uses.
    pub fn flood_deviation(
        &self,
        expected: &Expected,
        count: usize,
        policy: PublishPolicy,
    ) -> Result<f64> {
        if count == 0 || count > expected.slots {
            return Err(Error::Range {
                what: "the number of values to publish",
                expected: format!("1 to {}, the number of slots", expected.slots),
                actual: count.to_string(),
            });
        }
        if policy.uses == 0 || !(1..=128).contains(&policy.statistical_bits) {
            return Err(Error::Range {
                what: "a publishing policy",
                expected: "at least 1 use and 1 to 128 statistical bits".into(),
                actual: format!("{policy:?}"),
            });
        }
        let spread = (policy.uses as f64 * count as f64).sqrt();
        let noise = expected.noise.at_least(Noise::least(self.params().expansion()));
        let bound = noise.bound / expected.scale;
        let deviation = bound * spread * f64::exp2(f64::from(policy.statistical_bits) - 1.0);
        if deviation >= expected.magnitude {
            return Err(Error::Range {
                what: "the noise of a published result",
                expected: format!(
                    "below the magnitude {} (a larger scale, fewer values, fewer uses or fewer \
                     statistical bits make it smaller)",
                    expected.magnitude
                ),
                actual: format!("{deviation:.3e}"),
            });
        }
        Ok(deviation)
    }

    /// Decrypts the first `count` slots for others to see, under a flood for what was `expected`: the
    /// computation, from fresh ciphertexts on, as [`Forecast`](super::Forecast) or the owner's own
    /// ciphertexts give it. It covers what was computed so; of a ciphertext that somebody made up
    /// no flood hides the key.
    ///
    /// Numbers beyond the magnitude expected are refused, as their error may be beyond the bound.
    /// That is told of the flooded ones, and is a use: a refusal is an output.
    ///
    /// # Errors
    /// [`Error::Published`] when the policy's uses are used up; [`Error::Range`] for another policy
    /// than before, more values than slots, noise as large as the message, or a ciphertext of
    /// another level, degree, scale or number of slots than expected, or that says its error or
    /// magnitude is larger; [`Error::Outside`];
    /// [`Error::WrongKey`], [`Error::Parameters`], [`Error::Randomness`].
    pub fn publish(
        &self,
        ciphertext: &Ciphertext,
        expected: &Expected,
        count: usize,
        policy: PublishPolicy,
    ) -> Result<Published> {
        expected.check_instance(&ciphertext.expected())?;
        let deviation = self.flood_deviation(expected, count, policy)?;
        let exact = self.decrypt(ciphertext)?.decode_complex();
        let seed = zeroize::Zeroizing::new(random_bytes::<32>()?);
        self.budget().spend(policy)?;
        let noise = gaussian::pairs(&seed, 0, count);
        let step = f64::exp2((deviation.log2() - GUARD_BITS).floor());
        let round = |value: f64| (value / step).round() * step;
        let real = self.params().max_slots() == self.params().degree();
        let values = exact[..count].iter().zip(noise.iter()).map(|(value, noise)| {
            let sum = *value + Complex::new(noise[0], noise[1]).scale(deviation);
            Complex::new(round(sum.re), if real { 0.0 } else { round(sum.im) })
        });
        let values: Vec<Complex> = values.collect();
        let most = expected.largest() + policy.reach() * deviation;
        // Not the other way round: a sum that is no number is beyond, too.
        if !values.iter().all(|value| value.re.abs() <= most && value.im.abs() <= most) {
            let expected = format!("±{}, their magnitude", expected.magnitude);
            return Err(Error::Outside { what: "numbers of a result to publish", expected });
        }
        Ok(Published { values, deviation })
    }
}
