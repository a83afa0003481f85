//! Bootstraps arrays whose levels are spent, for the server; the keys for it come from the owner.

use super::array::EncryptedArray;
use super::layout::ArrayLayout;
use super::server::expect_key;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Bootstrapper, BootstrappingKeys, Ciphertext};

impl EncryptedArray {
    /// The same numbers at the level that `bootstrapper` gives them back at, one ciphertext after
    /// another: each takes what memory there is, and all threads.
    ///
    /// # Errors
    /// [`Error::CkksSimilarity`] in layout `coefficients`, whose slots have no bound that the array
    /// knows, and for distances; the scheme's errors, among them a magnitude over 1 and missing keys.
    pub fn refresh(&self, bootstrapper: &Bootstrapper, keys: &BootstrappingKeys) -> Result<Self> {
        let operation = "refreshing";
        self.expect_plain(operation)?;
        if self.packing.layout == ArrayLayout::Coefficients {
            return Err(Error::CkksSimilarity {
                operation,
                detail:
                    "layout slots or single expected, got coefficients; numbers are refreshed in \
                    slots"
                        .to_owned(),
            });
        }
        expect_key(keys.key_id(), self.key_id())?;
        let one = |cipher: &Ciphertext| Ok(bootstrapper.bootstrap(cipher, keys)?);
        let left = self.left.iter().map(one).collect::<Result<Vec<_>>>()?;
        Ok(EncryptedArray::new(self.packing, left, Vec::new(), &[self]).of_unit_length(self.unit))
    }

    /// The bound on the absolute value of a number that its ciphertexts declare.
    pub fn magnitude(&self) -> f64 {
        self.all().map(Ciphertext::magnitude).fold(0.0, f64::max)
    }

    /// The same ciphertexts with a bound that the caller knows to hold. Nobody but the owner can see
    /// whether it does.
    ///
    /// # Errors
    /// [`ciphervec_he::Error::Range`] unless it is positive and finite.
    pub fn with_magnitude(&self, magnitude: f64) -> Result<Self> {
        let side = |ciphers: &[Ciphertext]| -> Result<Vec<Ciphertext>> {
            ciphers.iter().map(|one| Ok(one.clone().with_magnitude(magnitude)?)).collect()
        };
        let (left, right) = (side(&self.left)?, side(&self.right)?);
        Ok(EncryptedArray { left, right, seeds: Vec::new(), ..self.clone() })
    }
}
