//! Evaluation key list: operations enter, key plans and their sizes leave. Both sides, public
//! numbers only.

use crate::error::Result;
use ciphervec_he::ckks::{KeyPlan, Params};
#[cfg(feature = "client")]
use ciphervec_he::wire::Reader;
use std::collections::BTreeSet;

/// Most rotations of a list.
#[cfg(feature = "client")]
const MAX_ROTATIONS: u32 = 4096;
#[cfg(feature = "client")]
const NO_KEY: u8 = u8::MAX;

/// The evaluation keys of a context, and for which level each is made: keys for a lower level are
/// smaller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyList {
    /// The level up to which products can be relinearised, if at all.
    pub relinearise: Option<usize>,
    /// Rotations.
    pub rotations: BTreeSet<i64>,
    /// The level up to which they can be made.
    pub rotation_level: usize,
}

impl KeyList {
    /// Also the rotations that sum over `width` neighbouring slots, a power of two.
    pub fn sums(mut self, width: usize) -> Self {
        self.rotations.extend((0..width.max(1).ilog2()).map(|bit| 1i64 << bit));
        self
    }

    /// The keys for products.
    pub fn products(&self) -> KeyPlan {
        match self.relinearise {
            Some(level) => KeyPlan::new().relinearise().at_level(level),
            None => KeyPlan::new().at_level(0),
        }
    }

    /// The keys for rotations.
    pub fn turns(&self) -> KeyPlan {
        KeyPlan::new().rotations(self.rotations.iter().copied()).at_level(self.rotation_level)
    }

    /// Bytes of the keys for products, and of those for rotations.
    ///
    /// # Errors
    /// A level that the parameters do not have.
    pub fn bytes(&self, params: &Params) -> Result<(usize, usize)> {
        Ok((self.products().bytes(params)?, self.turns().bytes(params)?))
    }

    /// For an owner: `level u8 | level u8 | rotations u32 | each i64`.
    #[cfg(feature = "client")]
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.relinearise.map_or(NO_KEY, |level| level as u8));
        out.push(self.rotation_level as u8);
        out.extend_from_slice(&(self.rotations.len() as u32).to_le_bytes());
        self.rotations.iter().for_each(|step| out.extend_from_slice(&step.to_le_bytes()));
    }

    #[cfg(feature = "client")]
    pub(super) fn read(params: &Params, reader: &mut Reader<'_>) -> Result<Self> {
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
}
