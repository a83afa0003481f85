//! Picks the smallest ring that is secure and precise enough for a design. Public numbers only.

use super::bound::Errors;
use super::candidate::{Candidate, candidates};
use super::design::Design;
use crate::error::{Error, Result};
use ciphervec_he::ckks::Params;
use ciphervec_he::params::{Security, max_log_modulus};
use std::sync::Arc;

/// The set of the smallest ring that is secure and precise enough; among those, the one whose key
/// switches take the least work, and then the most precise one.
pub(super) fn choose(design: &Design<'_>) -> Result<Arc<Params>> {
    // A margin for what estimates are off: 13 bits are an error below 10^-4.
    let goal = 0.8 * f64::exp2(-f64::from(design.shape.precision_bits));
    let switches = design.switches();
    let mut best = f64::INFINITY;
    for log_degree in 12..=17 {
        let limit = max_log_modulus(1 << log_degree, Security::Classical128).unwrap_or(0);
        let errors = Errors::new(design, log_degree);
        let secure = candidates(design, log_degree).filter(|candidate| {
            let spec = &candidate.spec;
            candidate.bits() <= limit && spec.special_primes <= 16 && spec.digits <= spec.primes()
        });
        let rated = secure.map(|candidate| (errors.relative(&candidate), candidate));
        let rated: Vec<(f64, Candidate)> = rated.collect();
        best = rated.iter().map(|(error, _)| *error).fold(best, f64::min);
        let precise = rated.into_iter().filter(|(error, _)| *error <= goal);
        let found = precise.min_by(|(a, x), (b, y)| {
            x.work(&switches).total_cmp(&y.work(&switches)).then(a.total_cmp(b))
        });
        if let Some((_, candidate)) = found {
            return candidate.build();
        }
    }
    Err(Error::Range {
        what: "the bits of precision",
        expected: match best {
            best if best < 1.0 => format!("at most {:.0}", (-best.log2()).floor()),
            _ => "of a table with fewer rows: no ring up to 2^17 has the levels".to_owned(),
        },
        actual: design.shape.precision_bits.to_string(),
    })
}

/// The most precise set whatever the security table says.
#[cfg(feature = "hazmat")]
pub(super) fn insecure(design: &Design<'_>, log_degree: u32) -> Result<Arc<Params>> {
    let errors = Errors::new(design, log_degree);
    let found = candidates(design, log_degree)
        .filter(|candidate| candidate.spec.special_primes <= 2)
        .min_by(|a, b| errors.relative(a).total_cmp(&errors.relative(b)));
    let Some(Candidate { spec, last_bits }) = found else {
        return Err(Error::Range {
            what: "the degree",
            expected: "one that a set is found for".into(),
            actual: format!("2^{log_degree}"),
        });
    };
    Ok(match last_bits {
        Some(last) => Params::insecure_with_last_prime(spec, last)?,
        None => Params::insecure_new(spec)?,
    })
}
