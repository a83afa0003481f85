//! Strings, integers and bigints of JavaScript as ids, and ids as those.

use ciphervec_owner::protect::id::Id;
use js_sys::{Array, BigInt};
use wasm_bindgen::{JsCast, JsValue};

use crate::errors::{Failure, Result};

/// The greatest integer that a number holds beside its neighbours.
const SAFE: i64 = (1 << 53) - 1;

/// One id as JavaScript gave it.
///
/// # Errors
/// `InvalidInput` for anything else than text or an integer of 64 bits.
pub fn of(value: &JsValue) -> Result<Id> {
    if let Some(text) = value.as_string() {
        return Ok(Id::Text(text));
    }
    if let Some(number) = value.as_f64() {
        let whole = number.trunc() == number && number.abs() <= SAFE as f64;
        let refused = || {
            let next = "give a bigint, or text";
            Failure::input(format!("{number} is no integer that a number holds exactly; {next}"))
        };
        return if whole { Ok(Id::Number(number as i64)) } else { Err(refused()) };
    }
    if let Some(big) = value.dyn_ref::<BigInt>() {
        let number = i64::try_from(big.clone());
        return number.map(Id::Number).map_err(|_| Failure::input("an id has at most 64 bits"));
    }
    Err(Failure::input("an id is text or an integer"))
}

/// The ids of a batch.
///
/// # Errors
/// As [`of`].
pub fn all(values: &[JsValue]) -> Result<Vec<Id>> {
    values.iter().map(of).collect()
}

/// One id for JavaScript: a number where it is exact, otherwise a bigint.
pub fn out(id: &Id) -> JsValue {
    match id {
        Id::Number(number) if number.abs() <= SAFE => JsValue::from_f64(*number as f64),
        Id::Number(number) => BigInt::from(*number).into(),
        Id::Text(text) => JsValue::from_str(text),
    }
}

/// Ids, null where there is none.
pub fn outs<'a>(ids: impl Iterator<Item = Option<&'a Id>>) -> Array {
    ids.map(|id| id.map_or(JsValue::NULL, out)).collect()
}
