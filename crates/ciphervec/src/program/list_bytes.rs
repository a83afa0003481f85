//! Lists on the wire, for what plans and arrays are written by: no length is believed before its items are there.
//!
//! Numbers are little-endian, a list is its length as u32 and its items, a real number is an f64.

use crate::error::Result;
use ciphervec_he::wire::Reader;

pub(super) fn flag(reader: &mut Reader<'_>) -> Result<bool> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.error(format!("0 or 1 expected, got {other}")).into()),
    }
}

pub(super) fn length(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u32).to_le_bytes());
}

pub(super) fn real(out: &mut Vec<u8>, number: &f64) {
    out.extend(number.to_le_bytes());
}

pub(super) fn f64_of(reader: &mut Reader<'_>) -> Result<f64> {
    Ok(f64::from_le_bytes(reader.array()?))
}

pub(super) fn list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    length(out, items.len());
    items.iter().for_each(|item| write(out, item));
}

/// A list of at most so many items, of at least `least` bytes each; nothing is allocated for items
/// that cannot be there.
pub(super) fn items<T>(
    reader: &mut Reader<'_>,
    least: usize,
    most: usize,
    read: impl Fn(&mut Reader<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = reader.u32()? as usize;
    if count > most || count > reader.remaining() / least {
        let left = reader.remaining();
        let detail = format!("at most {most} items expected, got {count} in {left} bytes");
        return Err(reader.error(detail).into());
    }
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(read(reader)?);
    }
    Ok(all)
}
