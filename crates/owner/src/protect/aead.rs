//! Authenticated encryption, bound to the place of what is sealed. Key owner only.
//!
//! XChaCha20-Poly1305 with a random 24-byte nonce from the operating system: at 2^48 messages under
//! one key the chance that two share a nonce is below 2^-96.

use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305, XNonce};
pub use ciphervec::protect::error::EnvelopeError;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Nonce, in bytes; stored before the ciphertext.
pub const NONCE: usize = 24;
/// Authentication tag, in bytes; stored after the ciphertext.
pub const TAG: usize = 16;
/// Bytes that sealing adds to a plaintext.
pub const OVERHEAD: usize = NONCE + TAG;

/// A 256-bit XChaCha20-Poly1305 key; wiped on drop, never printed or copied implicitly.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct AeadKey([u8; 32]);

impl AeadKey {
    /// Takes a key that was derived for this purpose alone.
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// `nonce ‖ ciphertext ‖ tag`, [`OVERHEAD`] bytes longer than `plain`. `associated` is
    /// authenticated, not stored.
    ///
    /// # Errors
    /// [`EnvelopeError::Randomness`] when the system gives none.
    pub fn seal(
        &self,
        what: &'static str,
        associated: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, EnvelopeError> {
        let mut sealed = vec![0; plain.len() + OVERHEAD];
        self.seal_to(what, associated, plain, &mut sealed)?;
        Ok(sealed)
    }

    /// As [`AeadKey::seal`], appending to `out`.
    pub(crate) fn seal_into(
        &self,
        what: &'static str,
        associated: &[u8],
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EnvelopeError> {
        let start = out.len();
        out.resize(start + plain.len() + OVERHEAD, 0);
        self.seal_to(what, associated, plain, &mut out[start..])
    }

    /// As [`AeadKey::seal`], filling `out`, which must be as long as what is sealed.
    pub(crate) fn seal_to(
        &self,
        what: &'static str,
        associated: &[u8],
        plain: &[u8],
        out: &mut [u8],
    ) -> Result<(), EnvelopeError> {
        let mut nonce = XNonce::default();
        random(&mut nonce)?;
        let (head, rest) = out.split_at_mut(NONCE);
        let (body, tag) = rest.split_at_mut(plain.len());
        head.copy_from_slice(&nonce);
        body.copy_from_slice(plain);
        let made = self
            .cipher()
            .encrypt_inout_detached(&nonce, associated, body.into())
            .map_err(|_| EnvelopeError::Unauthentic { what })?;
        tag.copy_from_slice(&made);
        Ok(())
    }

    /// The plaintext of [`AeadKey::seal`]'s output; wiped on drop.
    ///
    /// # Errors
    /// [`EnvelopeError::Unauthentic`] for another key, other associated data or changed bytes.
    pub fn open(
        &self,
        what: &'static str,
        associated: &[u8],
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(sealed.len().saturating_sub(OVERHEAD)));
        self.open_to(what, associated, sealed, &mut plain)?;
        Ok(plain)
    }

    /// As [`AeadKey::open`], into `plain`, whose former content goes. Where it has no room it is made anew and the old one is wiped.
    pub(crate) fn open_to(
        &self,
        what: &'static str,
        associated: &[u8],
        sealed: &[u8],
        plain: &mut Zeroizing<Vec<u8>>,
    ) -> Result<(), EnvelopeError> {
        let unauthentic = EnvelopeError::Unauthentic { what };
        let Some((nonce, rest)) = sealed.split_first_chunk::<NONCE>() else {
            return Err(unauthentic);
        };
        let Some((body, tag)) = rest.split_last_chunk::<TAG>() else { return Err(unauthentic) };
        if plain.capacity() < body.len() {
            *plain = Zeroizing::new(Vec::with_capacity(body.len().next_power_of_two()));
        }
        plain.clear();
        plain.extend_from_slice(body);
        let opened = self.cipher().decrypt_inout_detached(
            &(*nonce).into(),
            associated,
            plain.as_mut_slice().into(),
            &(*tag).into(),
        );
        opened.map_err(|_| unauthentic)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&self.0).into())
    }
}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AeadKey(redacted)")
    }
}

/// Fills `out` from the operating system's generator.
pub(crate) fn random(out: &mut [u8]) -> Result<(), EnvelopeError> {
    getrandom::fill(out).map_err(|error| EnvelopeError::Randomness { cause: error.to_string() })
}

/// Joins the parts of a place so that no two lists of parts give the same bytes: a context string,
/// then each part after its length.
pub(crate) fn associated_data(context: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::with_capacity(
        8 + context.len() + parts.iter().map(|part| 8 + part.len()).sum::<usize>(),
    );
    append_part(&mut out, context.as_bytes());
    parts.iter().for_each(|part| append_part(&mut out, part));
    out
}

/// One more part of what [`associated_data`] joins.
pub(crate) fn append_part(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u64).to_le_bytes());
    out.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_under_the_same_key_place_and_bytes() -> Result<(), EnvelopeError> {
        let key = AeadKey::new([7; 32]);
        let sealed = key.seal("test", b"here", b"plain")?;
        assert_eq!(sealed.len(), 5 + OVERHEAD);
        assert_eq!(key.open("test", b"here", &sealed)?.as_slice(), b"plain");
        let unauthentic = Err(EnvelopeError::Unauthentic { what: "test" });
        assert_eq!(key.open("test", b"there", &sealed), unauthentic);
        assert_eq!(AeadKey::new([8; 32]).open("test", b"here", &sealed), unauthentic);
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open("test", b"here", &changed), unauthentic, "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(
                key.open("test", b"here", &sealed[..length]),
                unauthentic,
                "length {length}"
            );
        }
        Ok(())
    }

    #[test]
    fn known_answer_of_the_xchacha_draft() {
        // draft-irtf-cfrg-xchacha-03, appendix A.3.1: key 80..9f, nonce 40..57, the sunscreen text.
        let mut key = [0u8; 32];
        key.iter_mut().zip(0x80..).for_each(|(byte, value)| *byte = value);
        let nonce: Vec<u8> = (0x40..0x58).collect();
        let associated = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
sunscreen would be it.";
        let first = [
            0xbd, 0x6d, 0x17, 0x9d, 0x3e, 0x83, 0xd4, 0x3b, 0x95, 0x76, 0x57, 0x94, 0x93, 0xc0,
            0xe9, 0x39,
        ];
        let tag = [
            0xc0, 0x87, 0x59, 0x24, 0xc1, 0xc7, 0x98, 0x79, 0x47, 0xde, 0xaf, 0xd8, 0x78, 0x0a,
            0xcf, 0x49,
        ];
        let cipher = AeadKey::new(key).cipher();
        let mut buffer = plain.to_vec();
        let mut fixed = XNonce::default();
        fixed.copy_from_slice(&nonce);
        let found =
            cipher.encrypt_inout_detached(&fixed, &associated, buffer.as_mut_slice().into());
        assert_eq!(buffer[..16], first);
        assert_eq!(found.map(|found| found.to_vec()), Ok(tag.to_vec()));
    }

    #[test]
    fn associated_data_is_unambiguous() {
        assert_ne!(associated_data("c", &[b"ab", b"c"]), associated_data("c", &[b"a", b"bc"]));
        assert_ne!(associated_data("c", &[b""]), associated_data("c", &[]));
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", AeadKey::new([0x41; 32])), "AeadKey(redacted)");
    }
}
