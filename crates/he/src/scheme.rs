//! Interface of an additive scheme and of its public keys: parameters, security and bytes.
//!
//! A type a scheme, which names its keys. Whoever learns a scheme at run time only is generic over
//! [`AdditiveScheme`] and needs no list of what each scheme brings: that stands in its own folder.
//!
//! # Bytes of schemes that rest on factoring
//!
//! n has `bits` bits; numbers modulo n take ⌈bits/8⌉ bytes. The parameter id is that of `Paillier n=3072 s=1 noise=short
//! exponent` and the like, with `insecure ` before it below 2,048 bits. The key id hashes the scheme's byte and the public key's
//! payload. Paillier (3) is Damgård–Jurik (4) with s = 1; Okamoto–Uchiyama is 5.
//!
//! |kind|scheme|payload|
//! |---|---|---|
//! |public key (6)|3, 4|noise u8 (0 uniform, 1 short exponent, 2 subgroup); s u8; bits u32; n; the base h of the noise unless uniform|
//! ||5|noise u8 (0 full, 1 short); bits u32; n; g|
//! |secret key (7)|3, 4|the public key's payload; p; q, p < q, ⌈bits/16⌉ + 4 bytes each; for subgroup noise their orders (160, 256 or 384 bits; bits/8 below 1,024)|
//! ||5|the public key's payload; p; q, as many bytes each as ⌈bits/3⌉ bits take|
//! |ciphertexts (8)|3, 4, 5|rows u32; columns u32; per ciphertext, row by row, its digits in base n, least significant first: s + 1, one for Okamoto–Uchiyama|
//! |noise pool (9)|3, 4, 5|count u64; elements, as ciphertexts|
//!
//! A digit is below n; the lowest is a unit. Secret keys and noise pools are frames in memory only: at rest the one is in a key
//! file, the other sealed.

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
