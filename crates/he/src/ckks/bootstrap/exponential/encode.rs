//! Numbers modulo 1 as a plaintext that roots can be made of, once it is encrypted.

use super::super::super::{plaintext::Plaintext, poly::Poly};
use super::Exponential;
use crate::error::{Error, Result};

impl Exponential {
    /// The numbers, modulo 1, as coefficients modulo q_0: what [`Self::from_coefficients`] takes
    /// once it is encrypted. Coefficients that are left are 0. Rounding is off by at most
    /// 1/(2 q_0).
    ///
    /// # Errors
    /// [`Error::Range`] for more numbers than coefficients, or a number that is not finite.
    pub fn encode(&self, numbers: &[f64]) -> Result<Plaintext> {
        let params = &self.params;
        if numbers.len() > params.degree() {
            return Err(Error::Range {
                what: "the number of coefficients",
                expected: format!("at most {}", params.degree()),
                actual: numbers.len().to_string(),
            });
        }
        if let Some(place) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(Error::Range {
                what: "a number to encode",
                expected: "finite".into(),
                actual: format!("{} at place {place}", numbers[place]),
            });
        }
        let (q, scale) = (params.prime(0), self.base_scale());
        let mut poly = Poly::scratch(params, 0);
        let (limb, rest) = poly.limb_mut(0).split_at_mut(numbers.len());
        for (out, x) in limb.iter_mut().zip(numbers) {
            *out = q.from_i64(((x - x.round()) * scale).round_ties_even() as i64);
        }
        rest.fill(0);
        let (slots, magnitude) = (params.max_slots(), params.degree() as f64);
        Ok(Plaintext { poly: poly.into_ntt(), scale, slots, magnitude })
    }
}
