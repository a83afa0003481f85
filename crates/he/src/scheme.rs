//! Scheme: what is chosen of a key and its bytes enter, keys and what they rest on leave. Both
//! sides.
//!
//! A type a scheme, which names its keys. Whoever learns a scheme at run time only is generic over
//! [`AdditiveScheme`] and needs no list of what each scheme brings: that stands in its own folder.

#[cfg(feature = "client")]
use crate::additive::Decrypt;
use crate::additive::{Evaluate, SecurityStatement};
use crate::error::Result;
use crate::wire;
#[cfg(feature = "client")]
use zeroize::Zeroizing;

/// An additively homomorphic scheme. Its type has no values.
pub trait AdditiveScheme {
    /// What frames say.
    const WIRE: wire::Scheme;
    /// Whether a message is long enough to hold several numbers.
    const PACKS: bool;
    /// Length of the field where all keys have one; `None` where the length of a modulus is chosen.
    const FIELD_BITS: Option<u32>;

    /// Its public keys.
    type PublicKey: SchemePublicKey + 'static;
    /// Its secret keys.
    #[cfg(feature = "client")]
    type SecretKey: SchemeSecretKey<Public = Self::PublicKey> + 'static;

    /// What a key with a modulus of `bits` bits rests on, if it is made by [`Self::generate`].
    fn security(bits: u32) -> SecurityStatement;

    /// A key for an index, with a modulus of `bits` bits where there is one.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a length that the scheme does not have;
    /// [`crate::Error::Randomness`].
    #[cfg(feature = "client")]
    fn generate(bits: u32) -> Result<Self::SecretKey>;

    /// A key as it is asked for.
    ///
    /// # Errors
    /// Those of [`Self::generate`]; [`crate::Error::Choice`] for noise that the scheme does not
    /// have.
    #[cfg(feature = "client")]
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

/// A public key of whichever scheme.
pub trait SchemePublicKey: Evaluate + Sized {
    /// What frames of the key say.
    fn scheme(&self) -> wire::Scheme;

    /// Bits of the modulus, or of the field.
    fn bits(&self) -> u32;

    /// Damgård–Jurik's `s`, 1 for Paillier; `None` for the other schemes.
    fn power(&self) -> Option<u32> {
        None
    }

    /// What the key rests on.
    fn security(&self) -> SecurityStatement;

    /// The key, framed.
    fn to_bytes(&self) -> Vec<u8>;

    /// Reads a key, of any length if `insecure`.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] and the other errors of [`wire::open`]; [`crate::Error::Range`]
    /// for a length that is not secure.
    fn read(bytes: &[u8], insecure: bool) -> Result<Self>;
}

/// A secret key of whichever scheme.
#[cfg(feature = "client")]
pub trait SchemeSecretKey: Decrypt<Public: SchemePublicKey> + Sized {
    /// The key, framed and not encrypted.
    fn to_bytes(&self) -> Zeroizing<Vec<u8>>;

    /// Reads a key, of any length if `insecure`.
    ///
    /// # Errors
    /// As [`SchemePublicKey::read`].
    fn read(bytes: &[u8], insecure: bool) -> Result<Self>;
}
