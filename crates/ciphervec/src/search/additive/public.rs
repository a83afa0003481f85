//! A writer's half: rows enter, ciphertexts under the index's public key leave. Whoever has that key can do it.

use super::key_pair::layout;
use crate::error::Result;
use crate::search::seal::Encrypt;
use crate::similarity::additive::{EncryptedVectors, Vectors};
use crate::{IndexSpec, Scheme};
use ciphervec_he::additive::Evaluate;
use ciphervec_he::wire::KeyId;
use ciphervec_he::{damgard_jurik, elgamal, okamoto_uchiyama};

/// What encrypts rows of `spec` under the public key in `bytes`, and the name of that key.
///
/// # Errors
/// As [`super::read_public_key`].
pub(in crate::search) fn encryptor(
    spec: &IndexSpec,
    bytes: &[u8],
) -> Result<(KeyId, Box<Encrypt<'static>>)> {
    let key = super::read_public_key(spec, bytes)?.key_id();
    let spec = spec.clone();
    let encrypt: Box<Encrypt<'static>> = match spec.scheme() {
        Scheme::OkamotoUchiyama => under(spec, okamoto_uchiyama::PublicKey::from_bytes(bytes)?),
        Scheme::ElGamal => under(spec, elgamal::PublicKey::from_bytes(bytes)?),
        _ => under(spec, damgard_jurik::PublicKey::from_bytes(bytes)?),
    };
    Ok((key, encrypt))
}

fn under<P: Evaluate + 'static>(spec: IndexSpec, public: P) -> Box<Encrypt<'static>> {
    Box::new(move |rows| {
        let layout = layout(&spec, rows.len() / spec.dimension(), public.message_bits())?;
        let vectors = Vectors::quantize(&layout, rows)?;
        EncryptedVectors::encrypt(&layout, &public, &vectors)?.to_bytes(&public)
    })
}
