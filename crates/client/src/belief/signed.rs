//! One state that a collection's owner has authenticated, and which states came before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciphervec_owner::KeyId;
use ciphervec_owner::members::{Member, MemberList};
use ciphervec_owner::protect::state::{self, StateDigest, StateRecord, StateSigner};
use ciphervec_owner::search::Owner;
use ciphervec_owner::sharing::Identity;

use crate::belief::description::Description;
use crate::belief::pins::{ListPin, Pin};
use crate::change::{EVALUATION, KEY_PAIR};
use crate::error::Result;
use crate::hex::Hex;
use crate::random::random;

/// The digest of what is not there.
pub(super) const NONE: [u8; 32] = [0; 32];
/// States before it that a state names.
pub(super) const ANCESTORS: usize = 256;

/// An owner's state, authenticated.
#[derive(Debug)]
pub struct Signed {
    pub record: StateRecord,
    pub sealed: Vec<u8>,
    /// Who committed it, where the collection has members.
    pub author: Option<Member>,
    pub(super) members: Option<Arc<MemberList>>,
    pub(super) name: StateDigest,
}

impl Signed {
    /// Of a state that its owner's key authenticates, beside its list of members; why it is not believed, if nobody who might has
    /// signed it.
    pub(super) fn new(
        record: StateRecord,
        sealed: Vec<u8>,
        members: Option<Arc<MemberList>>,
    ) -> core::result::Result<Arc<Self>, String> {
        let author = match (&members, &record.signed) {
            (None, None) => None,
            (None, Some(_)) => return Err("with an author, and no members are shown".to_owned()),
            (Some(list), _) if *list.origin() != record.origin => {
                return Err("beside the members of another collection".to_owned());
            }
            (Some(list), _) => Some(list.author(&record, &sealed)?),
        };
        let name = state::name(&sealed);
        Ok(Arc::new(Self { record, sealed, author, members, name }))
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
            members: self.members.as_deref().map(|list| {
                let changes = list.changes().len();
                let head = list.head(changes).copied().unwrap_or_default();
                ListPin { changes, head: Hex(head).to_string() }
            }),
        }
    }

    /// Whether its members go on from those that were seen before, and it was committed while these were the latest.
    pub(super) fn goes_on_from(&self, seen: &ListPin) -> bool {
        self.has_members_of(seen)
            && self.record.signed.is_some_and(|signed| signed.changes as usize >= seen.changes)
    }

    /// Whether its members go on from those that were seen before.
    pub fn has_members_of(&self, seen: &ListPin) -> bool {
        let head = self.members.as_ref().and_then(|list| list.head(seen.changes));
        head.is_some_and(|head| Hex(*head).to_string() == seen.head)
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

/// The state of a collection that is being made, sealed.
pub fn first(
    owner: &Owner,
    description: &Description,
    meta: &[u8],
    beside: &BTreeMap<&'static str, Vec<u8>>,
    now: u64,
    by: Option<&Identity>,
) -> Result<Vec<u8>> {
    let hash = |name| beside.get(name).map_or(NONE, |blob| *blake3::hash(blob).as_bytes());
    let record = StateRecord {
        key: KeyId::default(),
        origin: description
            .spec
            .incarnation()
            .map_or_else(random, |incarnation| Ok(*incarnation))?,
        lineage: random()?,
        begun: now,
        sequence: 0,
        epoch: description.epoch,
        segments: 0,
        segments_digest: state::digest(&[]),
        description: *blake3::hash(meta).as_bytes(),
        evaluation: hash(EVALUATION),
        key_pair: hash(KEY_PAIR),
        ancestors: Vec::new(),
        aside: Vec::new(),
        routing: NONE,
        consumed: NONE,
        quarantine: Vec::new(),
        signed: by.map(|by| signer(by, 0)),
    };
    sealed(owner, &record, by)
}

/// Who signs a state, after so many changes of the members.
pub(super) fn signer(by: &Identity, changes: u32) -> StateSigner {
    StateSigner { author: by.member_fingerprint(), changes }
}

/// A state's bytes, with its author's signature.
pub(super) fn sealed(
    owner: &Owner,
    record: &StateRecord,
    by: Option<&Identity>,
) -> Result<Vec<u8>> {
    let mut sealed = owner.seal_state(record)?;
    if let Some(by) = by {
        let signature = by.sign_state(&sealed);
        sealed.extend(signature);
    }
    Ok(sealed)
}
