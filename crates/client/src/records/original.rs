//! A vector as it was put in, or the many of a row, as the bytes that are sealed.
//!
//! One vector is a byte 1 and the numbers f32, or nothing. The many of a row are a byte 2, how many u32, the scale of each f32,
//! and their codes i8 (−127 to 127), vector after vector.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::records::matrix::Matrix;
use crate::records::muvera::{Encoder, Side};

/// The first byte.
const ORIGINAL: u8 = 1;

/// What was kept of a row's vector.
pub struct Kept {
    /// The one that is searched.
    pub vector: Vec<f32>,
    /// The bytes of the many that it is made of; none where it is the only one.
    pub matrix: Option<Arc<[u8]>>,
}

/// What was kept of one row of a collection; none where nothing was.
pub fn read_kept(
    data: &Arc<[u8]>,
    dimension: usize,
    multi: Option<&Encoder>,
) -> Result<Option<Kept>> {
    let Some(encoder) = multi else {
        let vector = read_original(data, dimension)?;
        return Ok(vector.map(|vector| Kept { vector, matrix: None }));
    };
    let matrix = Matrix::read(data, encoder.width())?;
    Ok(matrix.map(|matrix| Kept {
        vector: encoder.encode(&matrix, Side::Document),
        matrix: Some(Arc::clone(data)),
    }))
}

/// Whether these bytes are what is kept of a row, or say that nothing is.
pub fn is_kept(data: &[u8], dimension: usize, multi: Option<&Encoder>) -> bool {
    match multi {
        Some(encoder) => Matrix::read(data, encoder.width()).is_ok(),
        None => read_original(data, dimension).is_ok(),
    }
}

/// What is kept of a vector, where it is as it was put in.
pub fn original(vector: &[f32], there: bool) -> Vec<u8> {
    match there {
        true => [ORIGINAL].into_iter().chain(vector.iter().flat_map(|x| x.to_le_bytes())).collect(),
        false => Vec::new(),
    }
}

/// Reads it back; none where it was not kept.
fn read_original(data: &[u8], dimension: usize) -> Result<Option<Vec<f32>>> {
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
