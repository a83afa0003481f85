//! Store of session keys: evaluation keys that clients send enter, those that answer a client's queries leave. In memory
//! only, within a budget. Server only.
//!
//! A token that may query may send keys. The store files them under that token, and only its own queries are answered
//! with them: no token replaces, uses up or learns of another's. Where there is no room, the token that holds most lets
//! go of what it used longest ago. A client whose keys are gone sends them again.

use super::form::SessionKeys;
use crate::fetch::FetchKeys;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The share of the memory budget, and the least that is of use.
const SHARE: u64 = 16;
const LEAST: u64 = 16 << 20;
/// What keys of few dimensions count at least: an entry is not free.
const LEAST_ENTRY: u64 = 64 << 10;

/// Whose keys, for which index, of which session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Place {
    token: String,
    index: [u8; 8],
    epoch: u32,
}

impl Place {
    fn of(token: &str, index: [u8; 8], epoch: u32) -> Self {
        Place { token: token.to_owned(), index, epoch }
    }
}

/// Evaluation keys of a session, which clones share.
pub trait HeldBySession: Clone {
    /// The session.
    fn epoch(&self) -> u32;
    /// Bytes that they take in memory.
    fn byte_len(&self) -> usize;
    /// Whether both are the same, bit for bit.
    fn same(&self, other: &Self) -> bool;
}

impl HeldBySession for SessionKeys {
    fn epoch(&self) -> u32 {
        self.epoch()
    }

    fn byte_len(&self) -> usize {
        self.byte_len()
    }

    fn same(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl HeldBySession for FetchKeys {
    fn epoch(&self) -> u32 {
        self.epoch()
    }

    fn byte_len(&self) -> usize {
        self.memory()
    }

    fn same(&self, other: &Self) -> bool {
        self.same(other)
    }
}

struct Entry<K> {
    keys: K,
    bytes: u64,
    used: u64,
}

struct Held<K> {
    entries: HashMap<Place, Entry<K>>,
    /// Counts uses, for what was used longest ago.
    clock: u64,
}

impl<K> Default for Held<K> {
    fn default() -> Self {
        Held { entries: HashMap::new(), clock: 0 }
    }
}

impl<K> Held<K> {
    fn bytes(&self, token: Option<&str>) -> u64 {
        let counted =
            self.entries.iter().filter(|(place, _)| token.is_none_or(|of| place.token == of));
        counted.map(|(_, entry)| entry.bytes).sum()
    }

    /// Lets go of what a token used longest ago; whether it had anything.
    fn let_go(&mut self, token: &str) -> bool {
        let own = self.entries.iter().filter(|(place, _)| place.token == token);
        let oldest = own.min_by_key(|(_, entry)| entry.used).map(|(place, _)| place.clone());
        oldest.is_some_and(|place| self.entries.remove(&place).is_some())
    }

    /// The token that holds most; of several `mine`, if it is one of them.
    fn largest(&self, mine: &str) -> Option<String> {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for (place, entry) in &self.entries {
            *sums.entry(&place.token).or_default() += entry.bytes;
        }
        let most = sums.into_iter().max_by_key(|&(token, bytes)| (bytes, token == mine));
        most.map(|(token, _)| token.to_owned())
    }
}

/// The session keys that a server holds, of all its indexes: those of queries, or of fetches.
pub struct SessionStore<K = SessionKeys> {
    budget: u64,
    held: Mutex<Held<K>>,
}

/// A token has sent other keys of the session before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there are other evaluation keys of this session from this token; nothing was changed")]
pub struct OtherKeys;

/// What a server without tokens calls everybody, who then has all of the room.
const ANYONE: &str = "-";

impl SessionStore {
    /// What a server without tokens calls everybody, who then has all of the room.
    pub const ANYONE: &'static str = ANYONE;
}

impl<K: HeldBySession> SessionStore<K> {
    /// A store that takes its share of `memory`.
    pub fn within(memory: u64) -> Self {
        SessionStore { budget: (memory / SHARE).max(LEAST), held: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Held<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes(None)
    }

    /// Takes in the keys that a token sends for an index. Half of the room is the most that one token has, where there
    /// are tokens.
    ///
    /// # Errors
    /// [`OtherKeys`] where the token has sent others for this session.
    pub fn put(&self, token: &str, index: [u8; 8], keys: K) -> Result<(), OtherKeys> {
        let place = Place::of(token, index, keys.epoch());
        let mut held = self.lock();
        held.clock += 1;
        let used = held.clock;
        if let Some(entry) = held.entries.get_mut(&place) {
            if !entry.keys.same(&keys) {
                return Err(OtherKeys);
            }
            entry.used = used;
            return Ok(());
        }
        let bytes = (keys.byte_len() as u64).max(LEAST_ENTRY);
        let share = if token == ANYONE { self.budget } else { self.budget / 2 };
        while held.bytes(Some(token)) + bytes > share && held.let_go(token) {}
        while held.bytes(None) + bytes > self.budget {
            let Some(largest) = held.largest(token) else { break };
            held.let_go(&largest);
        }
        held.entries.insert(place, Entry { keys, bytes, used });
        Ok(())
    }

    /// The keys that this token sent for this session; `None` where it sent none, or they are gone.
    pub fn get(&self, token: &str, index: [u8; 8], epoch: u32) -> Option<K> {
        let mut held = self.lock();
        held.clock += 1;
        let used = held.clock;
        let entry = held.entries.get_mut(&Place::of(token, index, epoch))?;
        entry.used = used;
        Some(entry.keys.clone())
    }
}
