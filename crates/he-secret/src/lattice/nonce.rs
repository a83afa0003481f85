//! Draws the nonce of a sealing call, which never repeats for different plaintexts. Owner only.

use super::{Plaintext, SegmentId};
use crate::error::Result;
use crate::keys::{MasterKey, Purpose};
use crate::random::random_bytes;
use zeroize::Zeroize;

/// ν: the first 16 bytes of keyed BLAKE3 over 32 random bytes, the collection and the plaintext.
///
/// Hedged: with a broken random generator two different plaintexts still never share a nonce, and
/// equal plaintexts under an equal nonce give away their equality alone.
///
/// # Errors
/// If the operating system's generator fails.
pub fn draw(
    master: &MasterKey,
    collection: &[u8],
    plaintext: &impl Plaintext,
) -> Result<SegmentId> {
    let key = master.derive(Purpose::Nonce, &[]);
    let mut hasher = blake3::Hasher::new_keyed(key.expose());
    hasher.update(&random_bytes::<32>()?);
    hasher.update(&(collection.len() as u64).to_le_bytes()).update(collection);
    hasher.update(plaintext.content());
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    hasher.zeroize();
    Ok(SegmentId(nonce))
}
