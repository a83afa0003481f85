//! Schemes with their secret keys, for whoever makes or reads those of any scheme.
//!
//! Whoever learns a scheme at run time only is generic over [`SecretScheme`].

pub use ciphervec_he::scheme::*;

use crate::additive::Decrypt;
use crate::error::{Error, Result};
use zeroize::Zeroizing;

/// A scheme with its secret keys.
pub trait SecretScheme: AdditiveScheme {
    /// Its secret keys.
    type SecretKey: SchemeSecretKey<Public = Self::PublicKey> + 'static;

    /// A key for an index, with a modulus of `bits` bits where there is one.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a length that the scheme does not have;
    /// [`crate::Error::Randomness`].
    fn generate(bits: u32) -> Result<Self::SecretKey>;

    /// A key as it is asked for.
    ///
    /// # Errors
    /// Those of [`Self::generate`]; [`crate::Error::Choice`] for noise that the scheme does not
    /// have.
    fn generate_with(options: &KeyOptions<'_>) -> Result<Self::SecretKey>;
}

/// What a fresh key is asked to be. A scheme looks at what it leaves open.
#[derive(Clone, Copy, Debug)]
pub struct KeyOptions<'a> {
    /// Bits of the modulus.
    pub bits: u32,
    /// Damgård–Jurik's `s`.
    pub s: u32,
    /// How noise is drawn, by name; as the scheme's own documentation prefers where unset.
    pub noise: Option<&'a str>,
    /// Whether lengths below 112 bits of security are allowed.
    pub insecure: bool,
}

/// A secret key of whichever scheme.
pub trait SchemeSecretKey: Decrypt<Public: SchemePublicKey> + Sized {
    /// The key, framed and not encrypted.
    fn to_bytes(&self) -> Zeroizing<Vec<u8>>;

    /// Reads a key, of any length if `insecure`.
    ///
    /// # Errors
    /// As [`SchemePublicKey::read`].
    fn read(bytes: &[u8], insecure: bool) -> Result<Self>;
}

/// Noise that a scheme does not have.
pub(crate) fn no_such_noise(expected: &'static str, actual: &str) -> Error {
    Error::Choice { what: "noise", expected, actual: actual.to_owned() }
}
