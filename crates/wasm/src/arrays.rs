//! Copies typed arrays of JavaScript to Rust vectors, where it is sure that they fit, and bytes to new arrays.

use js_sys::{Array, Float32Array, Object, Reflect, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

use crate::errors::{Failure, Result};
use crate::memory::room;

/// A copy of the bytes.
///
/// # Errors
/// `OutOfMemory`.
pub fn bytes(what: &str, array: &Uint8Array) -> Result<Vec<u8>> {
    let mut out = room(what, array.length() as usize)?;
    out.resize(array.length() as usize, 0);
    array.copy_to(&mut out);
    Ok(out)
}

/// The rows of an (n, dimension) array that is given end to end.
///
/// # Errors
/// `InvalidInput` for numbers that are no whole rows, or other than `count` of them where it is known; `OutOfMemory`.
pub fn rows(array: &Float32Array, dimension: usize, count: Option<usize>) -> Result<Vec<f32>> {
    let length = array.length() as usize;
    expect_rows(length, dimension, count)?;
    let mut out = room("vectors", length)?;
    out.resize(length, 0.0);
    array.copy_to(&mut out);
    Ok(out)
}

fn expect_rows(length: usize, dimension: usize, count: Option<usize>) -> Result<()> {
    let fits = match count {
        Some(count) => count.checked_mul(dimension) == Some(length),
        None => length.is_multiple_of(dimension),
    };
    if fits {
        return Ok(());
    }
    let of = count.map_or("n".to_owned(), |count| count.to_string());
    Err(Failure::input(format!(
        "vectors must be {of} × {dimension} numbers, row after row, got {length}"
    )))
}

/// Sixteen bytes, or another length that is fixed.
///
/// # Errors
/// `InvalidInput`.
pub fn exact<const L: usize>(what: &str, bytes: &[u8]) -> Result<[u8; L]> {
    <[u8; L]>::try_from(bytes)
        .map_err(|_| Failure::input(format!("{what} has {L} bytes, got {}", bytes.len())))
}

/// The same of a typed array.
///
/// # Errors
/// As [`exact`].
pub fn one<const L: usize>(what: &str, array: &Uint8Array) -> Result<[u8; L]> {
    let mut out = [0; L];
    if array.length() as usize != L {
        return Err(Failure::input(format!("{what} has {L} bytes, got {}", array.length())));
    }
    array.copy_to(&mut out);
    Ok(out)
}

/// The same of each of several.
///
/// # Errors
/// `InvalidInput`.
pub fn exacts<const L: usize>(what: &str, arrays: &[Uint8Array]) -> Result<Vec<[u8; L]>> {
    arrays.iter().map(|array| one(what, array)).collect()
}

/// A new array with these bytes.
pub fn out(bytes: &[u8]) -> Uint8Array {
    Uint8Array::from(bytes)
}

/// An array of such arrays.
pub fn outs<'a>(all: impl IntoIterator<Item = &'a [u8; 16]>) -> Vec<Uint8Array> {
    all.into_iter().map(|one| out(one)).collect()
}

/// A plain object with these fields.
pub fn object(fields: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (key, value) in fields {
        // An object that was just made takes any property.
        let _ = Reflect::set(&object, &JsValue::from_str(key), value);
    }
    object.into()
}

/// A field of a plain object.
///
/// # Errors
/// `InvalidInput` for what is no object, or lacks it.
pub fn field(object: &JsValue, key: &str) -> Result<JsValue> {
    let found = Reflect::get(object, &JsValue::from_str(key)).ok();
    let found = found.filter(|value| !value.is_undefined());
    found.ok_or_else(|| Failure::input(format!("an object with {key:?} expected")))
}

/// A field of bytes.
///
/// # Errors
/// As [`field`]; something else than a Uint8Array, or of another length.
pub fn bytes_field<const L: usize>(object: &JsValue, key: &str) -> Result<[u8; L]> {
    let array = field(object, key)?.dyn_into::<Uint8Array>();
    let array = array.map_err(|_| Failure::input(format!("{key:?} must be a Uint8Array")))?;
    one(&format!("{key:?}"), &array)
}

/// Items of an array, of whatever type.
pub fn items(value: &JsValue) -> impl Iterator<Item = JsValue> {
    Array::from(value).into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_not_whole_or_too_few_are_named() {
        assert!(expect_rows(6, 3, None).is_ok() && expect_rows(6, 3, Some(2)).is_ok());
        let message = |length, count| expect_rows(length, 3, count).err().map(|e| e.message);
        let wanted = "vectors must be n × 3 numbers, row after row, got 7";
        assert_eq!(message(7, None).as_deref(), Some(wanted));
        let wanted = "vectors must be 3 × 3 numbers, row after row, got 6";
        assert_eq!(message(6, Some(3)).as_deref(), Some(wanted));
        assert!(message(usize::MAX, Some(usize::MAX)).is_some());
    }
}
