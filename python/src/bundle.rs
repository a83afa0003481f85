//! Several byte strings in one, under a checksum: parts come back whole, or an error does.
//!
//! `magic 4 | version u32 | BLAKE3 of the rest 32 | parts u32 | length u64 each | the parts`, little-endian.

use pyo3::prelude::*;

use crate::errors::{CorruptData, UnsupportedVersion};

const VERSION: u32 = 1;
const HEAD: usize = 40;

/// One byte string that holds `parts` in order.
pub fn pack(magic: [u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(HEAD + 4 + parts.len() * 8 + payload);
    out.extend_from_slice(&magic);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 32]);
    out.extend_from_slice(&(parts.len() as u32).to_le_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(&(part.len() as u64).to_le_bytes()));
    parts.iter().for_each(|part| out.extend_from_slice(part));
    let digest = blake3::hash(&out[HEAD..]);
    out[8..HEAD].copy_from_slice(digest.as_bytes());
    out
}

/// The parts that [`pack`] was given.
///
/// # Errors
/// `CorruptData` for anything but a whole, unaltered bundle; `UnsupportedVersion` for one from a later release.
pub fn unpack<'a>(what: &str, magic: [u8; 4], bytes: &'a [u8]) -> PyResult<Vec<&'a [u8]>> {
    let corrupt = |detail: String| {
        CorruptData::new_err(format!("{what}: {detail}; fetch or restore the bytes again"))
    };
    let Some((head, body)) = bytes.split_at_checked(HEAD) else {
        return Err(corrupt(format!("at least {HEAD} bytes expected, {} came", bytes.len())));
    };
    if head[..4] != magic {
        return Err(corrupt("the first four bytes are those of something else".to_owned()));
    }
    let version = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if version > VERSION {
        let message = format!(
            "{what}: format {version}, this release reads up to {VERSION}; upgrade ciphervec"
        );
        return Err(UnsupportedVersion::new_err(message));
    }
    if version != VERSION || blake3::hash(body).as_bytes() != &head[8..] {
        return Err(corrupt(
            "the checksum does not match, the bytes are truncated or altered".to_owned(),
        ));
    }
    let (parts, rest) =
        split(body).ok_or_else(|| corrupt("the lengths of its parts do not add up".to_owned()))?;
    if rest == 0 { Ok(parts) } else { Err(corrupt(format!("{rest} bytes follow its end"))) }
}

fn split(body: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let (count, rest) = body.split_first_chunk::<4>()?;
    let count = u32::from_le_bytes(*count) as usize;
    let (lengths, mut rest) = rest.split_at_checked(count.checked_mul(8)?)?;
    let mut parts = Vec::with_capacity(count);
    for length in lengths.as_chunks::<8>().0 {
        let (part, after) =
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        parts.push(part);
        rest = after;
    }
    Some((parts, rest.len()))
}
