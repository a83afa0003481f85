//! One state that a collection's owner has authenticated, and which states came before it.

use std::sync::Arc;

use ciphervec_owner::protect::state::{self, StateDigest, StateRecord};

use crate::belief::pins::Pin;
use crate::hex::Hex;

/// States before it that a state names.
pub(super) const ANCESTORS: usize = 256;

/// An owner's state, authenticated.
#[derive(Debug)]
pub struct Signed {
    pub record: StateRecord,
    pub sealed: Vec<u8>,
    pub(super) name: StateDigest,
}
impl Signed {
    pub(super) fn new(record: StateRecord, sealed: Vec<u8>) -> Arc<Self> {
        let name = state::name(&sealed);
        Arc::new(Self { record, sealed, name })
    }

    /// The name of the state so many steps before this one; of this one for none.
    pub(super) fn before(&self, steps: u64) -> Option<&StateDigest> {
        let ancestors = &self.record.ancestors;
        match usize::try_from(steps).ok()? {
            0 => Some(&self.name),
            steps => ancestors.get(ancestors.len().checked_sub(steps)?),
        }
    }

    /// As it is remembered.
    pub fn pin(&self) -> Pin {
        Pin {
            origin: Hex(self.record.origin).to_string(),
            lineage: Hex(self.record.lineage).to_string(),
            sequence: self.record.sequence,
            name: Hex(self.name).to_string(),
            epoch: self.record.epoch.into(),
            left: Vec::new(),
        }
    }

    /// Whether it is the state of the pin, or names it among those before.
    pub(super) fn follows(&self, pin: &Pin) -> bool {
        let steps = self.record.sequence.checked_sub(pin.sequence);
        let name = steps.and_then(|steps| self.before(steps));
        name.is_some_and(|name| Hex(*name).to_string() == pin.name)
    }

    /// Whether it names as many before it as one can, and not the one so many steps before.
    pub(super) fn is_long_after(&self, steps: Option<u64>) -> bool {
        let ancestors = self.record.ancestors.len();
        ancestors >= ANCESTORS && steps.is_some_and(|steps| steps > ancestors as u64)
    }
}
