//! Store of session keys: evaluation keys that clients send enter, those that answer a client's queries leave. In memory
//! only, within a budget. Server only.
//!
//! A token that may query may send keys. The store files them under that token, and only its own queries are answered
//! with them: no token replaces, uses up or learns of another's. Where there is no room, the token that holds most lets
//! go of what it used longest ago. A client whose keys are gone sends them again.

pub use ciphervec::search::sessions::*;


#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::ServerIndex;
    use crate::{IndexSpec, Keys, Metric, Mode, Precision};

    const FIRST: u32 = 1 << 31;
    const INDEX: [u8; 8] = [1; 8];

    struct Source {
        keys: Keys,
        spec: IndexSpec,
        index: ServerIndex,
    }

    impl Source {
        fn of_master(master: u8) -> Self {
            let keys = Keys::from_master([master; 32]);
            let spec =
                IndexSpec::new("faces", 16, Metric::Cosine, Mode::Sealed, Precision::Standard)
                    .expect("a spec");
            let mut index = ServerIndex::new(spec.clone()).expect("an index");
            let own = keys.evaluation(&spec, 0).expect("keys").expect("some");
            index.set_evaluation_keys(&own.to_bytes()).expect("its own");
            Source { keys, spec, index }
        }

        fn session(&self, number: u32) -> SessionKeys {
            let made = self.keys.evaluation(&self.spec, FIRST + number);
            let bytes = made.expect("keys").expect("some").to_bytes();
            self.index.session_keys(&bytes).expect("a session's")
        }
    }

    fn holds(store: &SessionStore, token: &str, number: u32) -> bool {
        store.lock().entries.contains_key(&Place::of(token, INDEX, FIRST + number))
    }

    #[test]
    fn a_token_pushes_out_its_own_keys_and_nobody_elses() {
        let source = Source::of_master(7);
        let each = source.session(0).byte_len() as u64;
        let store = SessionStore::<SessionKeys> { budget: 8 * each, held: Mutex::default() };
        for number in 0..3 {
            store.put("mallory", INDEX, source.session(number)).expect("room");
        }
        store.put("alice", INDEX, source.session(0)).expect("room");
        store.put("bob", INDEX, source.session(1)).expect("room");
        // Half of the room is four; the one used longest ago goes first.
        store.get("mallory", INDEX, FIRST).expect("held");
        for number in 3..20 {
            store.put("mallory", INDEX, source.session(number)).expect("room");
            assert!(store.bytes() <= store.budget);
            assert!(holds(&store, "alice", 0) && holds(&store, "bob", 1));
            assert_eq!(holds(&store, "mallory", 1), number == 3);
        }
        assert_eq!(store.lock().bytes(Some("mallory")), 4 * each);
        assert!(holds(&store, "mallory", 19) && !holds(&store, "mallory", 0));
        // Where all of it is full, who holds most makes room; who asks for more than the others makes it himself.
        for number in 2..5 {
            store.put("carol", INDEX, source.session(number)).expect("room");
        }
        assert_eq!(store.lock().bytes(Some("mallory")), 3 * each);
        assert!(holds(&store, "alice", 0) && holds(&store, "bob", 1));
        assert!(store.get("mallory", INDEX, FIRST + 16).is_none());
    }

    #[test]
    fn without_tokens_everybody_has_all_of_the_room() {
        let source = Source::of_master(7);
        let each = source.session(0).byte_len() as u64;
        let store = SessionStore::<SessionKeys> { budget: 4 * each, held: Mutex::default() };
        for number in 0..9 {
            store.put(SessionStore::ANYONE, INDEX, source.session(number)).expect("room");
        }
        assert_eq!(store.bytes(), store.budget);
        assert!((5..9).all(|number| holds(&store, SessionStore::ANYONE, number)));
    }

    #[test]
    fn keys_are_never_replaced_and_serve_the_token_that_sent_them() {
        let source = Source::of_master(7);
        let store = SessionStore::<SessionKeys>::within(0);
        store.put("alice", INDEX, source.session(0)).expect("room");
        store.put("alice", INDEX, source.session(0)).expect("the same again");
        // Of the same session and another master key: what somebody else could send.
        let forged = Source::of_master(8).session(0);
        assert_eq!(store.put("alice", INDEX, forged.clone()), Err(OtherKeys));
        store.put("mallory", INDEX, forged.clone()).expect("in a place of its own");
        assert!(store.get("alice", INDEX, FIRST).expect("held").same(&source.session(0)));
        assert!(store.get("mallory", INDEX, FIRST).expect("held").same(&forged));
        for (token, index, epoch) in
            [("bob", INDEX, FIRST), ("alice", [2; 8], FIRST), ("alice", INDEX, FIRST + 1)]
        {
            assert!(store.get(token, index, epoch).is_none());
        }
    }
}
