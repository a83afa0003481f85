//! Evaluation key list as bytes that an owner keeps. Key owner only.

use crate::error::Result;
pub use ciphervec::similarity::ckks::keys::*;
use ciphervec_he_secret::ckks::Params;
use ciphervec_he_secret::wire::Reader;

/// Most rotations of a list.
const MAX_ROTATIONS: u32 = 4096;
const NO_KEY: u8 = u8::MAX;

/// For an owner: `level u8 | level u8 | rotations u32 | each i64`.
pub(super) fn write(list: &KeyList, out: &mut Vec<u8>) {
    out.push(list.relinearise.map_or(NO_KEY, |level| level as u8));
    out.push(list.rotation_level as u8);
    out.extend_from_slice(&(list.rotations.len() as u32).to_le_bytes());
    list.rotations.iter().for_each(|step| out.extend_from_slice(&step.to_le_bytes()));
}

pub(super) fn read(params: &Params, reader: &mut Reader<'_>) -> Result<KeyList> {
    let relinearise = Some(reader.u8()?).filter(|level| *level != NO_KEY).map(usize::from);
    let rotation_level = usize::from(reader.u8()?);
    let count = reader.u32()?;
    let levels = relinearise.unwrap_or(0).max(rotation_level);
    if count > MAX_ROTATIONS || levels > params.max_level() {
        return Err(reader
            .error(format!(
                "at most {MAX_ROTATIONS} rotations and level {} expected, got {count} and {levels}",
                params.max_level()
            ))
            .into());
    }
    let steps = reader.take(8 * count as usize)?.as_chunks::<8>().0;
    let steps: Vec<i64> = steps.iter().map(|step| i64::from_le_bytes(*step)).collect();
    if !steps.is_sorted_by(|a, b| a < b) {
        return Err(reader.error("rotations in ascending order expected").into());
    }
    let rotations = steps.into_iter().collect();
    Ok(KeyList { relinearise, rotations, rotation_level })
}
