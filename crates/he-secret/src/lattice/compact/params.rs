//! Transforms that the key holder masks and opens with.

use super::Width;
use crate::error::Result;
use crate::params::{self, Security};
use ciphervec_arith::ntt::NttTable;
use ciphervec_arith::rns::RnsPair;

/// A checked parameter set of the compact form with its transform tables. A server needs none: it
/// adds words.
pub struct Compact {
    pub(super) width: Width,
    pub(super) tables: Vec<NttTable>,
    pub(super) rns: Option<RnsPair>,
}

impl Compact {
    /// Builds the tables.
    ///
    /// # Errors
    /// [`crate::Error::Insecure`] if the modulus were too wide for the degree.
    pub fn new(width: Width) -> Result<Self> {
        let degree = width.degree();
        params::check(degree, width.ciphertext_modulus_bits(), Security::Classical128)?;
        // |a · s| < 2^Q · N: below half a 50-bit prime at Q = 37, below half of
        // two of them at Q = 64.
        let count = if width == Width::Wide { 2 } else { 1 };
        let primes = ciphervec_arith::ntt_primes(50, degree, count)?;
        let tables = primes
            .iter()
            .map(|&prime| NttTable::new(degree, prime))
            .collect::<core::result::Result<Vec<_>, _>>()?;
        let rns = match tables.as_slice() {
            [first, second] => Some(RnsPair::new(first, second)?),
            _ => None,
        };
        Ok(Compact { width, tables, rns })
    }

    /// The word width.
    pub fn width(&self) -> Width {
        self.width
    }

    /// Blocks that `rows` vectors need.
    pub fn blocks(&self, rows: usize) -> usize {
        rows.div_ceil(self.width.degree())
    }
}
