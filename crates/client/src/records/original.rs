//! A vector as it was put in, as the bytes that are sealed.

use crate::error::{Error, Result};

/// The first byte.
const ORIGINAL: u8 = 1;

/// What is kept of a vector, where it is as it was put in.
pub fn original(vector: &[f32], there: bool) -> Vec<u8> {
    match there {
        true => [ORIGINAL].into_iter().chain(vector.iter().flat_map(|x| x.to_le_bytes())).collect(),
        false => Vec::new(),
    }
}

/// Reads it back; none where it was not kept.
pub fn read_original(data: &[u8], dimension: usize) -> Result<Option<Vec<f32>>> {
    let Some((first, floats)) = data.split_first() else { return Ok(None) };
    let (floats, rest) = floats.as_chunks::<4>();
    if *first != ORIGINAL || floats.len() != dimension || !rest.is_empty() {
        return Error::corrupt(format!(
            "a vector that was kept as it was put in has {} bytes, of which the first is 1; these {} are something else.",
            1 + 4 * dimension,
            data.len()
        ));
    }
    Ok(Some(floats.iter().map(|four| f32::from_le_bytes(*four)).collect()))
}
