//! Members of a collection: who they are, and what the signed list of them says. A change of a list, or a state, counts only if
//! somebody signed it who might at that moment.

mod card;
mod list;

pub use card::MemberCard;
pub use list::{Change, Entry, MAX_CHANGES, MAX_MEMBERS, MemberList};

use crate::error::{Error, Result};
use crate::sharing::Fingerprint;

/// Bytes of a signature (Ed25519).
pub const SIGNATURE: usize = 64;

/// What a member may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Changes the list and the keys, and commits.
    Owner = 0,
    /// Commits.
    Member = 1,
    /// Reads.
    Reader = 2,
}

impl Role {
    const ALL: [Role; 3] = [Role::Owner, Role::Member, Role::Reader];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Member => "member",
            Role::Reader => "reader",
        }
    }

    /// The role of this name.
    ///
    /// # Errors
    /// [`Error::Choice`].
    pub fn parse(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == name);
        found.ok_or_else(|| Error::choice("role", "owner, member or reader", name))
    }

    fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Whether commits of such a member count.
    pub fn commits(self) -> bool {
        self != Role::Reader
    }
}

/// One who is on a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// The name that the person gave.
    pub name: String,
    /// What the person may do.
    pub role: Role,
    /// BLAKE3 of the card; its first half is the [`Fingerprint`].
    pub(crate) card: [u8; 32],
    /// What signatures are verified by.
    pub(crate) verifying: [u8; 32],
}

impl Member {
    /// What names the person, as on the card.
    pub fn fingerprint(&self) -> Fingerprint {
        first_half(&self.card)
    }
}

fn first_half(digest: &[u8; 32]) -> Fingerprint {
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}
