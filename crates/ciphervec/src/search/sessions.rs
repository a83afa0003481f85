//! A store of the evaluation keys that clients send for their sessions, for the server. In memory only, within a budget.
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

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u32 = 1 << 31;
    const INDEX: [u8; 8] = [1; 8];
    /// Above the least that an entry counts.
    const EACH: usize = 1 << 17;

    /// Keys of an owner's session, by whose they are.
    #[derive(Clone, PartialEq, Debug)]
    struct Sent {
        owner: u8,
        epoch: u32,
    }

    impl HeldBySession for Sent {
        fn epoch(&self) -> u32 {
            self.epoch
        }

        fn byte_len(&self) -> usize {
            EACH
        }

        fn same(&self, other: &Self) -> bool {
            self == other
        }
    }

    fn session(number: u32) -> Sent {
        Sent { owner: 7, epoch: FIRST + number }
    }

    fn holds(store: &SessionStore<Sent>, token: &str, number: u32) -> bool {
        store.lock().entries.contains_key(&Place::of(token, INDEX, FIRST + number))
    }

    #[test]
    fn a_token_pushes_out_its_own_keys_and_nobody_elses() {
        let each = EACH as u64;
        let store = SessionStore::<Sent> { budget: 8 * each, held: Mutex::default() };
        for number in 0..3 {
            store.put("mallory", INDEX, session(number)).expect("room");
        }
        store.put("alice", INDEX, session(0)).expect("room");
        store.put("bob", INDEX, session(1)).expect("room");
        // Half of the room is four; the one used longest ago goes first.
        store.get("mallory", INDEX, FIRST).expect("held");
        for number in 3..20 {
            store.put("mallory", INDEX, session(number)).expect("room");
            assert!(store.bytes() <= store.budget);
            assert!(holds(&store, "alice", 0) && holds(&store, "bob", 1));
            assert_eq!(holds(&store, "mallory", 1), number == 3);
        }
        assert_eq!(store.lock().bytes(Some("mallory")), 4 * each);
        assert!(holds(&store, "mallory", 19) && !holds(&store, "mallory", 0));
        // Where all of it is full, who holds most makes room; who asks for more than the others makes it himself.
        for number in 2..5 {
            store.put("carol", INDEX, session(number)).expect("room");
        }
        assert_eq!(store.lock().bytes(Some("mallory")), 3 * each);
        assert!(holds(&store, "alice", 0) && holds(&store, "bob", 1));
        assert!(store.get("mallory", INDEX, FIRST + 16).is_none());
    }

    #[test]
    fn without_tokens_everybody_has_all_of_the_room() {
        let each = EACH as u64;
        let store = SessionStore::<Sent> { budget: 4 * each, held: Mutex::default() };
        for number in 0..9 {
            store.put(SessionStore::ANYONE, INDEX, session(number)).expect("room");
        }
        assert_eq!(store.bytes(), store.budget);
        assert!((5..9).all(|number| holds(&store, SessionStore::ANYONE, number)));
    }

    #[test]
    fn keys_are_never_replaced_and_serve_the_token_that_sent_them() {
        let store = SessionStore::<Sent>::within(0);
        store.put("alice", INDEX, session(0)).expect("room");
        store.put("alice", INDEX, session(0)).expect("the same again");
        // Of the same session and another owner: what somebody else could send.
        let forged = Sent { owner: 8, ..session(0) };
        assert_eq!(store.put("alice", INDEX, forged.clone()), Err(OtherKeys));
        store.put("mallory", INDEX, forged.clone()).expect("in a place of its own");
        assert!(store.get("alice", INDEX, FIRST).expect("held").same(&session(0)));
        assert!(store.get("mallory", INDEX, FIRST).expect("held").same(&forged));
        for (token, index, epoch) in
            [("bob", INDEX, FIRST), ("alice", [2; 8], FIRST), ("alice", INDEX, FIRST + 1)]
        {
            assert!(store.get(token, index, epoch).is_none());
        }
    }
}
