//! Polynomials and signs of traced ciphertexts: how far the result may be off, with the chance that was asked for.

use super::super::super::expected::Expected;
use super::super::super::polynomial::Polynomial;
use super::super::super::sign::Sign;
use super::super::super::tail::Deviation;
use super::super::course::added;
use super::super::names::{hashed, named};
use super::{Own, Traced, TracedForecast, silent};
use crate::error::{Error, Result};

impl TracedForecast {
    /// A polynomial of every slot.
    ///
    /// # Errors
    /// As [`Forecast::polynomial`](super::super::Forecast::polynomial).
    pub fn polynomial(&self, x: &Traced, polynomial: &Polynomial) -> Result<Traced> {
        let expected = self.forecast.polynomial(&x.expected, polynomial)?;
        let own = self.evaluated(x, polynomial)?;
        let most = polynomial.steepest(x.expected.magnitude, self.within(x));
        let name = x.name.function(named(polynomial.coefficients()));
        let [error] = self.read([x]);
        let own = self.of_step((name, Own::Step), own);
        Ok(self.made(expected, name, error.times(most).plus(&own)))
    }

    /// What evaluating adds.
    fn evaluated(&self, x: &Traced, polynomial: &Polynomial) -> Result<Deviation> {
        if !self.tracing.dependent {
            let own = self.own.polynomial(&silent(&x.expected), polynomial)?;
            return Ok(Deviation { std: self.std(&own), keyed: 1.0 });
        }
        let Expected { level, scale, magnitude, .. } = x.expected;
        let (low, high) = polynomial.domain(magnitude);
        let name = hashed(&[
            named(polynomial.coefficients()),
            level as u64,
            x.expected.degree as u64,
            named(&[scale, magnitude, low, high]),
        ]);
        let known = self.added.borrow().get(&name).copied();
        let std = match known {
            Some(std) => std,
            None => added(&self.own, &x.expected, polynomial)?,
        };
        self.added.borrow_mut().insert(name, std);
        Ok(Deviation { std, keyed: 1.0 })
    }

    /// About the sign of every slot.
    ///
    /// # Errors
    /// As [`Forecast::sign`](super::super::Forecast::sign), and [`Error::TooNoisy`] for what is off by more than the sign was built
    /// for, with the chance that was asked for.
    pub fn sign(&self, x: &Traced, sign: &Sign) -> Result<Traced> {
        (0..sign.stages().len()).try_fold(x.clone(), |x, stage| self.sign_stage(&x, sign, stage))
    }

    /// One polynomial of a sign.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub fn sign_stage(&self, x: &Traced, sign: &Sign, stage: usize) -> Result<Traced> {
        let x = self.normalise(x)?;
        let expected = self.forecast.sign_stage(&x.expected, sign, stage)?;
        let (off, most) = (self.within(&x), sign.stands()[stage]);
        if off > most {
            return Err(Error::TooNoisy {
                off: format!("2^{:.1} with a chance of 2^-{:.0}", off.log2(), self.tracing.bits),
                most: format!("2^{:.1}", most.log2()),
            });
        }
        let polynomial = &sign.stages()[stage];
        let name = x.name.function(named(polynomial.coefficients()));
        let own = self.evaluated(&x, polynomial)?;
        Ok(self.made(expected, name, self.of_step((name, Own::Step), own)))
    }
}
