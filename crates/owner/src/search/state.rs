//! Authenticates states of an index under the owner's key, and reads them back. Owner only.

use super::form;
use super::owner::Owner;
use super::root_key::SegmentRootKey;
use crate::error::{Error, Result};
use crate::protect::state::StateRecord;
use ciphervec_he_secret::keys::{Purpose, Secret};
use std::sync::Arc;

impl Owner {
    fn state_key(&self, root: &SegmentRootKey) -> Secret {
        root.master().derive(Purpose::State, &[&self.spec().binding()])
    }

    /// Authenticates a state under the owner's present key, which it names.
    ///
    /// # Errors
    /// Mode `open`, which has no key.
    pub fn seal_state(&self, record: &StateRecord) -> Result<Vec<u8>> {
        let spec = self.spec();
        if !form::of(spec).seals() {
            let known =
                "sealed, sealed-query or sealed-index to authenticate states: open has no key";
            return Err(Error::choice("mode", known, spec.mode().as_str()));
        }
        let record = StateRecord { key: self.key_id(), ..record.clone() };
        Ok(record.seal(&self.state_key(self.root())))
    }

    /// Reads a state that this owner authenticated for this index; while its keys change, under those before as well.
    ///
    /// # Errors
    /// Another key, changed bytes, or bytes that are no state.
    pub fn open_state(&self, sealed: &[u8]) -> Result<StateRecord> {
        let key = StateRecord::key_of(sealed)?;
        let roots = [Some(self.root()), self.previous().map(Arc::as_ref)];
        let Some(root) = roots.into_iter().flatten().find(|root| root.key_id() == key) else {
            let (what, expected) = ("an authenticated state", self.key_id());
            return Err(ciphervec_he_secret::Error::WrongKey { what, expected, actual: key }.into());
        };
        Ok(StateRecord::open(&self.state_key(root), sealed)?)
    }
}
