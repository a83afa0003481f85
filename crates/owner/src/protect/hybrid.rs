//! Hybrid public-key encryption, for wraps of writers' keys: whoever has the public key seals, only the holder of the seed opens.
//!
//! HPKE (RFC 9180) in base mode, suite 1: X-Wing (ML-KEM-768 with X25519), SHAKE256, ChaCha20-Poly1305. The vectors rest on
//! lattices, and a wrap by elliptic curves alone would be weaker than they are.

use super::aead::{EnvelopeError, random};
pub use ciphervec::protect::hybrid::*;
use ciphervec_arith::sample::Stream;
use core::convert::Infallible;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::KdfShake256;
use hpke::kem::XWing;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable};
use zeroize::Zeroizing;

/// A pair that secret bytes are sealed to. Its secret half is wiped on drop.
pub(crate) struct Pair {
    secret: <XWing as Kem>::PrivateKey,
    public: <XWing as Kem>::PublicKey,
}

impl Pair {
    /// The pair of a seed: the same one each time.
    pub fn derive(seed: &[u8; 32]) -> Self {
        let (secret, public) = XWing::derive_keypair(seed);
        Pair { secret, public }
    }

    pub fn public_bytes(&self) -> Vec<u8> {
        self.public.to_bytes().to_vec()
    }

    /// The bytes, so many, that were sealed to this pair under `info`; nothing where they were not.
    pub fn open<const N: usize>(
        &self,
        info: &[u8],
        encapsulated: &[u8],
        sealed: &[u8],
    ) -> Option<Zeroizing<[u8; N]>> {
        let encapsulated = <XWing as Kem>::EncappedKey::from_bytes(encapsulated).ok()?;
        let mut context = hpke::setup_receiver::<ChaCha20Poly1305, KdfShake256, XWing>(
            &OpModeR::Base,
            &self.secret,
            &encapsulated,
            info,
        )
        .ok()?;
        let opened = Zeroizing::new(context.open(sealed, &[]).ok()?);
        let mut key = Zeroizing::new([0; N]);
        if opened.len() != key.len() {
            return None;
        }
        key.copy_from_slice(&opened);
        Some(key)
    }
}

/// Whether `public` is a key of the suite.
pub(crate) fn is_public(public: &[u8]) -> bool {
    <XWing as Kem>::PublicKey::from_bytes(public).is_ok()
}

/// A key as it travels to one recipient.
pub(crate) struct SealedKey {
    pub encapsulated: Vec<u8>,
    pub sealed: Vec<u8>,
}

/// `key` for the holder of `public`; nothing for a public key that is none.
///
/// # Errors
/// No randomness.
pub(crate) fn seal(
    public: &[u8],
    info: &[u8],
    key: &[u8],
) -> Result<Option<SealedKey>, EnvelopeError> {
    let mut drawn = Drawn::fresh()?;
    let sealed = || {
        let public = <XWing as Kem>::PublicKey::from_bytes(public).ok()?;
        let (encapsulated, mut context) = hpke::setup_sender_with_rng::<
            ChaCha20Poly1305,
            KdfShake256,
            XWing,
        >(&OpModeS::Base, &public, info, &mut drawn)
        .ok()?;
        let sealed = context.seal(key, &[]).ok()?;
        Some(SealedKey { encapsulated: encapsulated.to_bytes().to_vec(), sealed })
    };
    Ok({ sealed }())
}

/// ChaCha20 under a seed of the operating system's generator, drawn before bytes are asked for: what may fail has happened
/// then.
pub(super) struct Drawn(Stream);

impl Drawn {
    pub fn fresh() -> Result<Self, EnvelopeError> {
        let mut seed = Zeroizing::new([0; 32]);
        random(seed.as_mut_slice())?;
        Ok(Drawn(Stream::new(&seed, 0)))
    }
}

impl TryRng for Drawn {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> core::result::Result<(), Infallible> {
        self.0.fill(out);
        Ok(())
    }
}

impl TryCryptoRng for Drawn {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_to_a_pair_opens_with_it_and_under_its_info_only() {
        let (pair, other) = (Pair::derive(&[1; 32]), Pair::derive(&[2; 32]));
        let public = pair.public_bytes();
        assert_eq!(
            (public.len(), is_public(&public), is_public(&public[1..])),
            (PUBLIC_KEY, true, false)
        );
        let SealedKey { encapsulated, sealed } = seal(&public, b"here", &[7; 32]).unwrap().unwrap();
        assert_eq!((encapsulated.len(), sealed.len()), (ENCAPSULATED, SEALED));
        assert_eq!(*pair.open(b"here", &encapsulated, &sealed).unwrap(), [7; 32]);
        assert!(pair.open::<40>(b"here", &encapsulated, &sealed).is_none(), "of that length alone");
        assert!(pair.open::<32>(b"there", &encapsulated, &sealed).is_none());
        assert!(other.open::<32>(b"here", &encapsulated, &sealed).is_none());
        assert!(pair.open::<32>(b"here", &encapsulated, &sealed[1..]).is_none());
        let again = seal(&public, b"here", &[7; 32]).unwrap().unwrap();
        assert_ne!((again.encapsulated, again.sealed), (encapsulated, sealed));
        assert!(seal(&public[1..], b"here", &[7; 32]).unwrap().is_none());
    }
}
