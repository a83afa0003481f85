//! Holder: who opens collections, by a master key or as a member. Which keys a collection has for them is found here alone.

use std::sync::Arc;

use ciphervec_owner::members::MemberList;
use ciphervec_owner::sharing::Identity;
use ciphervec_owner::{Error as SchemeError, IndexSpec, Keys, Mode};

use crate::belief::vault::Vault;
use crate::error::{Error, Result};
use crate::face::Face;

/// What a client opens collections with.
#[derive(Clone, Debug)]
pub enum Holder {
    /// A master key, which the collections are sealed under.
    Keys(Arc<Keys>),
    /// A person, to whom the keys of collections are sealed, and who signs commits.
    Member(Arc<Identity>),
}

impl From<Arc<Keys>> for Holder {
    fn from(keys: Arc<Keys>) -> Self {
        Self::Keys(keys)
    }
}

impl From<Arc<Identity>> for Holder {
    fn from(identity: Arc<Identity>) -> Self {
        Self::Member(identity)
    }
}

impl Holder {
    /// The person, if it is one.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        match self {
            Self::Keys(_) => None,
            Self::Member(identity) => Some(identity),
        }
    }

    /// What this holder's clients remember is encrypted here; of those who have nothing, under the key that everybody has.
    pub fn vault(holder: Option<&Self>) -> Result<Vault> {
        match holder {
            None => Vault::new(&Keys::public()),
            Some(Self::Keys(keys)) => Vault::new(keys),
            Some(Self::Member(identity)) => Vault::of_member(identity),
        }
    }
}

/// The keys that a collection is sealed under.
pub fn keys_of(
    face: Face,
    holder: Option<&Holder>,
    spec: &IndexSpec,
    members: Option<&MemberList>,
) -> Result<Arc<Keys>> {
    let name = || face.quoted(spec.collection());
    match (spec.mode(), holder, members) {
        (Mode::Open, ..) => Ok(Arc::new(Keys::public())),
        (mode, None, _) => Error::input(format!(
            "mode {} needs keys. Make them with Keys.generate(), keep them in a file with a passphrase, and pass them to the Client.",
            face.quoted(mode.as_str())
        )),
        (_, Some(Holder::Keys(keys)), _) => Ok(Arc::clone(keys)),
        (_, Some(Holder::Member(identity)), None) => Err(Error::WrongKey(format!(
            "collection {} has no members, and {} came as one. Open it with the keys that it was made with, or have their holder begin a \
             list of members.",
            name(),
            identity.name()
        ))),
        (_, Some(Holder::Member(identity)), Some(list)) => match list.open(identity) {
            Err(SchemeError::NotShared { name: who, recipients }) => Err(Error::WrongKey(format!(
                "{who} is no member of collection {}; its members are {recipients}. Give one of its owners your member card.",
                name()
            ))),
            opened => Ok(Arc::new(opened?)),
        },
    }
}

/// The member list of a description, if it is one of this collection under these keys; what is wrong with it, if not.
pub fn listed(
    bytes: &[u8],
    spec: &IndexSpec,
    key_id: &str,
) -> core::result::Result<Arc<MemberList>, String> {
    let list = MemberList::from_bytes(bytes).map_err(|error| error.to_string())?;
    if spec.incarnation().is_some_and(|incarnation| incarnation != list.origin()) {
        return Err("the members are those of another collection".to_owned());
    }
    if list.key_id().to_string() != key_id {
        return Err(format!("its key is {key_id}, and its owners gave it {}", list.key_id()));
    }
    Ok(Arc::new(list))
}
