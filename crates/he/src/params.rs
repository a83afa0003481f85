//! Security of lattice parameters: what a degree and a modulus are worth, or why they are refused.

use crate::error::{Error, Result};

use crate::estimates::ESTIMATES;
pub use crate::estimates::Estimate;
pub use crate::id::ParamId;

/// Largest log2(Q·P) at uniform ternary secrets and σ = 3.2, by log2 of the ring degree from 10 to
/// 17 (community guidelines 2024, IACR ePrint 2024/463, Table 5.2).
const CLASSICAL_128: [u32; 8] = [26, 53, 106, 214, 430, 868, 1747, 3523];
const QUANTUM_128: [u32; 8] = [25, 50, 101, 203, 409, 825, 1663, 3348];

/// √(2 · 65 · ln 2): a sub-Gaussian variable exceeds this many standard deviations with probability
/// below 2⁻⁶⁴.
pub(crate) const TAIL_DEVIATIONS: f64 = 9.5;

/// A security level of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Security {
    /// 128 bits against classical attacks.
    Classical128,
    /// 128 bits against quantum attacks.
    Quantum128,
}

impl Security {
    /// The level in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Security::Classical128 => "128-bit classical security",
            Security::Quantum128 => "128-bit quantum security",
        }
    }
}

/// What the figures of an [`Estimate`] are.
pub const COST_MODEL: &str = "blocks of b in dimension d. bits and guidelines: 0.292 b + 16.4 + log2(8 d) (BDGL 2016), the model of the table; core_svp: \
     0.292 b; quantum_core_svp: 0.265 b. The cheaper of the primal and the dual attack, by tools/security_estimate.py";

/// The estimate at `degree` and the smallest listed modulus that is at least as wide as `log_modulus`: an attack on the
/// narrower one costs no less. `None` beyond the guidelines' table.
pub fn estimate(degree: usize, log_modulus: u32) -> Option<Estimate> {
    // By degree, then modulus.
    ESTIMATES.into_iter().find(|row| row.degree == degree && row.log_modulus >= log_modulus)
}

/// What `security()` says of a key. Nobody's opinion: a row of a published table and a named
/// assumption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SecurityStatement {
    /// Bits against classical attacks; 0 where the table has no row as short.
    pub bits: u32,
    /// The source of `bits`.
    pub table: &'static str,
    /// The assumption that semantic security rests on.
    pub assumption: &'static str,
    /// Whether the assumption is believed to hold against quantum computers, and the parameters are
    /// within the table's column for them where it has one.
    pub post_quantum: bool,
    /// Whether the key is for tests and reproductions of papers only.
    pub insecure: bool,
    /// What attacks on the lattice cost; of schemes without one, nothing.
    pub lattice: Option<Estimate>,
}

/// The widest modulus, in bits, that the table allows at `degree`, or `None` for a degree outside
/// 2^10 … 2^17.
pub fn max_log_modulus(degree: usize, security: Security) -> Option<u32> {
    if !degree.is_power_of_two() {
        return None;
    }
    let row = (degree.trailing_zeros() as usize).checked_sub(10)?;
    let table = match security {
        Security::Classical128 => &CLASSICAL_128,
        Security::Quantum128 => &QUANTUM_128,
    };
    table.get(row).copied()
}

/// Refuses a modulus of `log_modulus` bits (special primes included) that is too wide for `degree`.
///
/// # Errors
/// [`Error::Insecure`] with the limit; a degree outside the table has the limit 0.
pub fn check(degree: usize, log_modulus: u32, security: Security) -> Result<()> {
    let limit = max_log_modulus(degree, security).unwrap_or(0);
    if log_modulus <= limit {
        Ok(())
    } else {
        Err(Error::Insecure { degree, log_modulus, limit, security: security.as_str() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_rows_match_the_guidelines() {
        assert_eq!(max_log_modulus(2048, Security::Classical128), Some(53));
        assert_eq!(max_log_modulus(4096, Security::Classical128), Some(106));
        assert_eq!(max_log_modulus(4096, Security::Quantum128), Some(101));
        assert_eq!(max_log_modulus(1 << 17, Security::Classical128), Some(3523));
        assert_eq!(max_log_modulus(1 << 9, Security::Classical128), None);
        assert_eq!(max_log_modulus(3000, Security::Classical128), None);
    }

    /// Whatever the table allows has an estimate, and none of them is below what the column claims.
    #[test]
    fn every_set_within_the_table_is_estimated_at_what_it_claims() {
        for exponent in 10..=17 {
            let degree = 1 << exponent;
            let classical = max_log_modulus(degree, Security::Classical128).unwrap();
            let quantum = max_log_modulus(degree, Security::Quantum128).unwrap();
            for log_modulus in 1..=classical {
                let found = estimate(degree, log_modulus).unwrap();
                assert!(found.log_modulus >= log_modulus && found.guidelines >= 128, "{found:?}");
                // A quantum sieve saves a tenth of the exponent, and the overhead stays.
                let overhead = f64::from(found.guidelines - found.core_svp);
                let bits = f64::from(found.core_svp) * 0.265 / 0.292 + overhead;
                assert!(log_modulus > quantum || bits >= 127.0, "{found:?}: {bits}");
            }
            assert_eq!(estimate(degree, classical + 1), None);
        }
        assert_eq!(estimate(512, 1), None);
    }

    #[test]
    fn a_wide_modulus_is_refused() {
        assert!(check(2048, 53, Security::Classical128).is_ok());
        assert!(matches!(
            check(2048, 54, Security::Classical128),
            Err(Error::Insecure { limit: 53, .. })
        ));
        assert!(check(512, 1, Security::Classical128).is_err());
    }
}
