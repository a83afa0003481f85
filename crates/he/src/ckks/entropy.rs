//! Source of the 32-byte seeds of keys and ciphertexts: the operating system, or a fixed seed in
//! tests.

use crate::error::Result;
use crate::random;
#[cfg(feature = "hazmat")]
use ciphervec_arith::sample::Stream;
use zeroize::Zeroizing;

/// Where randomness comes from: the operating system, except in tests of frozen bytes.
#[derive(Debug)]
pub struct Entropy {
    #[cfg(feature = "hazmat")]
    fixed: Option<Stream>,
}

impl Entropy {
    /// The operating system's generator.
    pub fn system() -> Self {
        Entropy {
            #[cfg(feature = "hazmat")]
            fixed: None,
        }
    }

    /// The same seeds every time: whoever knows `seed` knows every secret made from them.
    #[cfg(feature = "hazmat")]
    pub fn insecure_fixed(seed: &[u8; 32]) -> Self {
        Entropy { fixed: Some(Stream::new(seed, 0)) }
    }

    /// The next seed.
    #[doc(hidden)]
    pub fn seed(&mut self) -> Result<Zeroizing<[u8; 32]>> {
        let mut seed = Zeroizing::new([0; 32]);
        #[cfg(feature = "hazmat")]
        if let Some(stream) = &mut self.fixed {
            stream.fill(&mut *seed);
            return Ok(seed);
        }
        random::fill(&mut *seed)?;
        Ok(seed)
    }
}
