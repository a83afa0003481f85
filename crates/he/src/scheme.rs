//! Interface of an additive scheme and of its public keys: parameters, security and bytes.
//!
//! A type a scheme, which names its keys. Whoever learns a scheme at run time only is generic over
//! [`AdditiveScheme`] and needs no list of what each scheme brings: that stands in its own folder.

use crate::additive::{Evaluate, SecurityStatement};
use crate::error::Result;
use crate::wire;

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

    /// What a key with a modulus of `bits` bits rests on, if it is made for an index.
    fn security(bits: u32) -> SecurityStatement;
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
