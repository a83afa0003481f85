//! Indexes under an additively homomorphic scheme, whichever it is. Framed bytes enter, framed bytes leave. Both sides.
//!
//! The schemes have types of their own for keys and ciphertexts. An index learns its scheme from its description, at run
//! time: [`Evaluator`] and [`KeyPair`] are what it needs of either half, and this folder is the only place that knows
//! which scheme stands behind one.

mod evaluator;
#[cfg(feature = "client")]
mod key_pair;
#[cfg(feature = "client")]
mod owner;
#[cfg(feature = "client")]
mod public;

pub(super) use evaluator::{Evaluator, Gallery, read_public_key};
#[cfg(feature = "client")]
pub(super) use key_pair::KeyPair;
#[cfg(feature = "client")]
pub(super) use public::encryptor;
