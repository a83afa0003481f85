//! Evaluation keys of sessions, which clients bring. In memory only, within a budget.
//!
//! Whoever may query may bring keys. They are filed under the token that brought them, and only its own queries are
//! answered with them: nobody replaces, uses up or learns of another's. Where there is no room, the token that holds most
//! lets go of what it used longest ago. A client whose keys are gone sends them again.

use super::error::DatabaseError;
use ciphervec::search::SessionKeys;
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

struct Entry {
    keys: SessionKeys,
    bytes: u64,
    used: u64,
}

#[derive(Default)]
struct Held {
    entries: HashMap<Place, Entry>,
    /// Counts uses, for what was used longest ago.
    clock: u64,
}

impl Held {
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

/// The session keys of all collections.
pub(crate) struct SessionStore {
    budget: u64,
    held: Mutex<Held>,
}

impl SessionStore {
    /// One that takes its share of `memory`.
    pub fn within(memory: u64) -> Self {
        SessionStore { budget: (memory / SHARE).max(LEAST), held: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes(None)
    }

    /// Takes in the keys that a token brings for an index; half of the room is the most that one token has, where there
    /// are tokens.
    ///
    /// # Errors
    /// [`DatabaseError::SessionExists`] where it has brought others for this session.
    pub fn put(&self, token: &str, index: [u8; 8], keys: SessionKeys) -> Result<(), DatabaseError> {
        let place = Place { token: token.to_owned(), index, epoch: keys.epoch() };
        let mut held = self.lock();
        held.clock += 1;
        let used = held.clock;
        if let Some(entry) = held.entries.get_mut(&place) {
            if !entry.keys.same(&keys) {
                return Err(DatabaseError::SessionExists(place.epoch));
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

    /// The keys that this token brought for this session.
    ///
    /// # Errors
    /// [`DatabaseError::KeysMissing`].
    pub fn get(
        &self,
        token: &str,
        index: [u8; 8],
        epoch: u32,
    ) -> Result<SessionKeys, DatabaseError> {
        let place = Place { token: token.to_owned(), index, epoch };
        let mut held = self.lock();
        held.clock += 1;
        let used = held.clock;
        let entry = held.entries.get_mut(&place).ok_or(DatabaseError::KeysMissing(epoch))?;
        entry.used = used;
        Ok(entry.keys.clone())
    }
}

/// The id of everybody where no tokens are asked for.
const ANYONE: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;
    use ciphervec::search::ServerIndex;
    use ciphervec::{IndexSpec, Keys, Metric, Mode, Precision};

    const FIRST: u32 = 1 << 31;
    const INDEX: [u8; 8] = [1; 8];

    struct Source {
        keys: Keys,
        spec: IndexSpec,
        index: ServerIndex,
    }

    impl Source {
        fn new() -> Self {
            let keys = Keys::from_master([7; 32]);
            let spec =
                IndexSpec::new("faces", 16, Metric::Cosine, Mode::Sealed, Precision::Standard)
                    .expect("a spec");
            let mut index = ServerIndex::new(spec.clone()).expect("an index");
            let own = keys.evaluation(&spec, 0).expect("keys").expect("some");
            index.set_evaluation_keys(&own.to_bytes()).expect("its own");
            Source { keys, spec, index }
        }

        fn of(&self, number: u32) -> SessionKeys {
            let made = self.keys.evaluation(&self.spec, FIRST + number);
            let bytes = made.expect("keys").expect("some").to_bytes();
            self.index.session_keys(&bytes).expect("a session's")
        }
    }

    fn holds(store: &SessionStore, token: &str, number: u32) -> bool {
        let place = Place { token: token.to_owned(), index: INDEX, epoch: FIRST + number };
        store.lock().entries.contains_key(&place)
    }

    #[test]
    fn a_token_pushes_out_its_own_keys_and_nobody_elses() {
        let source = Source::new();
        let each = source.of(0).byte_len() as u64;
        let store = SessionStore { budget: 8 * each, held: Mutex::default() };
        for number in 0..3 {
            store.put("mallory", INDEX, source.of(number)).expect("room");
        }
        store.put("alice", INDEX, source.of(0)).expect("room");
        store.put("bob", INDEX, source.of(1)).expect("room");
        // Half of the room is four; the one used longest ago goes first.
        store.get("mallory", INDEX, FIRST).expect("held");
        for number in 3..20 {
            store.put("mallory", INDEX, source.of(number)).expect("room");
            assert!(store.bytes() <= store.budget);
            assert!(holds(&store, "alice", 0) && holds(&store, "bob", 1));
            assert_eq!(holds(&store, "mallory", 1), number == 3);
        }
        assert_eq!(store.lock().bytes(Some("mallory")), 4 * each);
        assert!(holds(&store, "mallory", 19) && !holds(&store, "mallory", 0));
        // Where all of it is full, who holds most makes room; who asks for more than the others makes it himself.
        for number in 2..5 {
            store.put("carol", INDEX, source.of(number)).expect("room");
        }
        assert_eq!(store.lock().bytes(Some("mallory")), 3 * each);
        assert!(holds(&store, "alice", 0) && holds(&store, "bob", 1));
        let gone = store.get("mallory", INDEX, FIRST + 16).err();
        assert!(matches!(gone, Some(DatabaseError::KeysMissing(epoch)) if epoch == FIRST + 16));
    }

    #[test]
    fn keys_are_never_replaced_and_serve_the_token_that_brought_them() {
        let source = Source::new();
        let store = SessionStore::within(0);
        store.put("alice", INDEX, source.of(0)).expect("room");
        store.put("alice", INDEX, source.of(0)).expect("the same again");
        // Of the same session and another master key: what somebody else could bring.
        let other = Source { keys: Keys::from_master([8; 32]), ..Source::new() };
        let mut index = ServerIndex::new(other.spec.clone()).expect("an index");
        let own = other.keys.evaluation(&other.spec, 0).expect("keys").expect("some");
        index.set_evaluation_keys(&own.to_bytes()).expect("its own");
        let forged = Source { index, ..other }.of(0);
        let refused = store.put("alice", INDEX, forged.clone());
        assert!(matches!(refused, Err(DatabaseError::SessionExists(FIRST))));
        store.put("mallory", INDEX, forged.clone()).expect("in a place of its own");
        assert!(store.get("alice", INDEX, FIRST).expect("held").same(&source.of(0)));
        assert!(store.get("mallory", INDEX, FIRST).expect("held").same(&forged));
        for (token, index, epoch) in
            [("bob", INDEX, FIRST), ("alice", [2; 8], FIRST), ("alice", INDEX, FIRST + 1)]
        {
            assert!(store.get(token, index, epoch).is_err());
        }
    }
}
