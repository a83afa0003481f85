//! Members of a collection: who they are, and what the signed list of them says. A change of a list, or a state, counts only if
//! somebody signed it who might at that moment.
//!
//! A list (`list.rs` has its bytes) has 1 to 4,096 changes and at most 128 present members, an owner at every point, and no
//! two members of one name. A key has a name once; the last key of the changes is the description's `key_id`. No name has 32
//! hexadecimal digits and nothing else, characters that are not seen, a space at an end or two together. Times are their
//! author's word. HPKE's `info` of a member's key is `ciphervec v1 member-key` and the list's version u32, the origin, the name
//! of the key and the member's fingerprint, each behind its length u64. The hash of changes is `derive_key`, context
//! `ciphervec v1 member-list`, of the origin, then of itself and each whole change.

mod card;
mod list;

pub use card::MemberCard;
pub use list::{Change, Entry, MAX_CHANGES, MAX_MEMBERS, MemberList};

use crate::error::{Error, Result};
use crate::sharing::{Fingerprint, name_fits};

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

/// Whether a name on a list tells its holder from others: it can be seen whole, and is nobody's fingerprint.
fn tells(name: &str) -> bool {
    let fingerprint = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let spaced = |c: char| c.is_whitespace() && c != ' ';
    name_fits(name)
        && !fingerprint
        && name.trim() == name
        && !name.contains("  ")
        && !name.chars().any(|c| spaced(c) || is_unseen(c))
}

/// Characters without a shape of their own, and those that turn the direction of others.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn first_half(digest: &[u8; 32]) -> Fingerprint {
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}
