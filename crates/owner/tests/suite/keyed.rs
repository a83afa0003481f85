//! Keyed private lookup between a client and a server that share bytes alone: against a dictionary, in every size class, of
//! servers that lie, and what a server sees.

use ciphervec_owner::fetch::FetchKeys;
use ciphervec_owner::keyed::{
    Description, KeyedClient, KeyedTable, LookupKey, Records, new_records, read_record, write_table,
};
use ciphervec_owner::{Error, Keys};
use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;

fn written(records: &Records, keys: Option<&Keys>, content: usize) -> Result<Vec<u8>, Error> {
    let mut file = Cursor::new(Vec::new());
    write_table(records, keys, content, Path::new("table"), &mut file)?;
    Ok(file.into_inner())
}

fn built(held: &HashMap<i128, Vec<u8>>, keys: Option<&Keys>, content: usize) -> Vec<u8> {
    let mut records = new_records(keys, None).unwrap();
    for (key, content) in held {
        records.push(LookupKey::Integer(*key), content).unwrap();
    }
    written(&records, keys, content).unwrap()
}

/// A record of a key: lengths from none to the longest.
fn content(key: i128, longest: usize) -> Vec<u8> {
    let length = if key % 7 == 0 { longest } else { key as usize * 31 % (longest + 1) };
    (0..length).map(|at| (key as usize * 131 + at * 7) as u8).collect()
}

struct Parties {
    client: KeyedClient,
    table: KeyedTable,
}

type Found = Vec<Option<Vec<u8>>>;

impl Parties {
    fn new(file: Vec<u8>, keys: Option<&Keys>) -> Self {
        let table = KeyedTable::from_bytes(file).unwrap();
        // A client has the description alone.
        let bytes = table.description().to_bytes();
        let description = Description::from_bytes(&bytes).unwrap();
        assert_eq!(description.to_bytes(), bytes);
        let client = KeyedClient::new(description, keys).unwrap();
        Parties { client, table }
    }

    fn answers(&self, queries: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let keys = FetchKeys::from_bytes(&self.client.evaluation_keys()).unwrap();
        let served = self.table.served().unwrap();
        queries.iter().map(|query| served.answer(&keys, query).unwrap()).collect()
    }

    fn look(&mut self, keys: &[i128], bound: usize) -> Result<Found, Error> {
        let keys: Vec<_> = keys.iter().map(|key| LookupKey::Integer(*key)).collect();
        let (asked, queries) = self.client.ask(&keys, bound)?;
        let found = self.client.open(&asked, &self.answers(&queries))?;
        Ok(found.into_iter().map(|one| one.map(|content| content.to_vec())).collect())
    }
}

/// Every size class: slots by the hundred, by a few, and longer than polynomials; full of keys, of one, and of none.
#[test]
fn records_come_as_they_were_put_in_and_others_are_absent() {
    let owner = Keys::from_master([3; 32]);
    for (records, longest) in
        [(0, 4), (1, 0), (3000, 0), (3000, 30), (700, 1024), (60, 7000), (9, 9000), (2, 65_535)]
    {
        let held: HashMap<i128, Vec<u8>> =
            (0..records).map(|key| (key * 3 - 60, content(key, longest))).collect();
        for keys in [None, Some(&owner)] {
            let mut parties = Parties::new(built(&held, keys, 0), keys);
            parties.table.verify().unwrap();
            let asked: Vec<i128> = (0..10).map(|at| at * records / 10 * 3 - 60 + at % 2).collect();
            let expected: Found = asked.iter().map(|key| held.get(key).cloned()).collect();
            assert_eq!(parties.look(&asked, 10).unwrap(), expected, "{records} {longest}");
            assert_eq!(parties.look(&asked[..1], 1).unwrap(), expected[..1]);
            assert_eq!(parties.look(&[], 1).unwrap(), Found::new());
            assert_eq!(parties.look(&[asked[1]; 2], 3).unwrap(), [&expected[1..2]; 2].concat());
        }
    }
}

/// 12,000 random puts, removals and readings of a dictionary whose table is built again each time, of which some are looked up
/// in private.
#[test]
fn tables_agree_with_a_dictionary_through_random_operations() {
    let owner = Keys::from_master([4; 32]);
    let mut random = 7u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let mut held: HashMap<i128, Vec<u8>> = HashMap::new();
    let mut readings = 0;
    for round in 0..12u64 {
        for _ in 0..600 {
            let key = i128::from(draw(900)) - 450;
            match draw(3) {
                0 => drop(held.remove(&key)),
                _ => drop(held.insert(key, content(key + 450, 1 + 90 * round as usize % 400))),
            }
        }
        let keys = (round % 2 == 1).then_some(&owner);
        let mut parties = Parties::new(built(&held, keys, 0), keys);
        for _ in 0..400 {
            let key = i128::from(draw(900)) - 450;
            let found = read_record(&parties.table, keys, LookupKey::Integer(key)).unwrap();
            assert_eq!(found.as_ref(), held.get(&key), "{round} {key}");
            readings += 1;
        }
        let asked: Vec<i128> = (0..10).map(|_| i128::from(draw(900)) - 450).collect();
        let expected: Found = asked.iter().map(|key| held.get(key).cloned()).collect();
        assert_eq!(parties.look(&asked, 10).unwrap(), expected);
    }
    assert_eq!(readings, 4800);
}

#[test]
fn a_key_has_one_record_and_kinds_of_keys_differ() {
    let mut records = new_records(None, Some([1; 32])).unwrap();
    for key in [LookupKey::Text("7"), LookupKey::Bytes(b"7"), LookupKey::Integer(7)] {
        records.push(key, format!("{key:?}").as_bytes()).unwrap();
    }
    let table = KeyedTable::from_bytes(written(&records, None, 0).unwrap()).unwrap();
    let found = read_record(&table, None, LookupKey::Bytes(b"7")).unwrap().unwrap();
    assert_eq!(found, format!("{:?}", LookupKey::Bytes(b"7")).as_bytes());
    records.push(LookupKey::Integer(9), b"").unwrap();
    records.push(LookupKey::Text("7"), b"another").unwrap();
    let twice = written(&records, None, 0);
    assert!(matches!(twice, Err(Error::KeyTwice { first: 0, second: 4 })), "{twice:?}");
    assert!(records.push(LookupKey::Integer(1), &[0; 65_536]).is_err());
}

/// Tables whose description grows: paths of one and two hashes.
#[test]
fn buckets_of_large_tables_bear_paths() {
    for (records, parts) in [(1500, 3), (4000, 3)] {
        let held: HashMap<i128, Vec<u8>> = (0..records).map(|key| (key, content(key, 2))).collect();
        let mut parties = Parties::new(built(&held, None, 3600), None);
        assert_eq!(parties.table.description().geometry().parts, parts);
        let asked = [0, records - 1, records];
        let expected: Found = asked.iter().map(|key| held.get(key).cloned()).collect();
        assert_eq!(parties.look(&asked, 10).unwrap(), expected);
    }
}

/// Queries and keys of one class are of one length and number, whatever is asked for, however many keys, found or not.
#[test]
fn lookups_of_a_class_look_alike() {
    for longest in [0, 100, 4000] {
        let held: HashMap<i128, Vec<u8>> =
            (0..500).map(|key| (key, content(key, longest))).collect();
        let mut parties = Parties::new(built(&held, None, longest), None);
        let mut sizes = |keys: &[i128], bound| {
            let keys: Vec<_> = keys.iter().map(|key| LookupKey::Integer(*key)).collect();
            let (asked, queries) = parties.client.ask(&keys, bound).unwrap();
            assert!(!format!("{asked:?}").contains("tag"));
            let answers = parties.answers(&queries);
            assert!(answers.iter().all(|answer| answer.len() <= parties.client.longest_answer()));
            let of = |messages: &[Vec<u8>]| messages.iter().map(Vec::len).collect::<Vec<_>>();
            // Heads are public: but for checksum and seed they are the same.
            let heads: Vec<_> =
                queries.iter().map(|query| [&query[..32], &query[64..88]].concat()).collect();
            (of(&queries), of(&answers), heads)
        };
        let one = sizes(&[0], 1);
        assert_eq!(one.0.len(), 1);
        assert!(
            [sizes(&[499], 1), sizes(&[-5], 1), sizes(&[], 1)].iter().all(|other| *other == one)
        );
        let ten = sizes(&[0], 2);
        for keys in [&[][..], &[1, 2, 3], &[7; 10], &[-1, -2, -3, -4, -5, -6, -7, -8, -9, -10]] {
            assert_eq!(sizes(keys, 10), ten);
        }
        assert_ne!(one, ten);
    }
}

#[test]
fn more_keys_than_the_bound_and_bounds_that_there_are_not_are_refused() {
    let mut parties = Parties::new(built(&HashMap::from([(1, vec![1])]), None, 0), None);
    let mut ask = |keys: usize, bound: usize| {
        parties
            .client
            .ask(&vec![LookupKey::Integer(1); keys], bound)
            .map(|(_, queries)| queries.len())
    };
    assert!(ask(2, 1).is_err() && ask(0, 0).is_err() && ask(1, 5001).is_err());
    assert_eq!([ask(1, 1), ask(1, 11), ask(101, 101)].map(Result::unwrap), [1, 10, 20]);
    // A session serves 1,024 queries: a thousand more take another one.
    let client = &mut parties.client;
    let before = client.evaluation_keys();
    assert!(!client.renew_for(1, 1).unwrap());
    assert!(client.renew_for(1, 5000).is_err() || client.evaluation_keys() == before);
    for _ in 0..99 {
        client.ask(&[], 100).unwrap();
    }
    assert!(client.renew_for(100, 100).unwrap() && client.evaluation_keys() != before);
}

/// One byte of one bucket: whoever asks for another key is answered, whoever asks for that one is told once, and never again.
#[test]
fn a_changed_record_ends_a_client_that_asks_for_it() {
    let owner = Keys::from_master([5; 32]);
    let held: HashMap<i128, Vec<u8>> = (0..60).map(|key| (key, content(key, 3000))).collect();
    for keys in [None, Some(&owner)] {
        let file = built(&held, keys, 0);
        let mut parties = Parties::new(file.clone(), keys);
        let (asked, queries) = parties.client.ask(&[LookupKey::Integer(7)], 1).unwrap();
        let right = parties.answers(&queries);
        // As a server would that serves another table under the same name.
        let start = parties.table.description().to_bytes().len();
        let mut changed = file;
        changed[start..].iter_mut().step_by(100).for_each(|byte| *byte ^= 1);
        let table = KeyedTable::from_bytes(changed).unwrap();
        assert!(table.served().is_err() && table.verify().is_err());
        let name = *parties.table.description().name();
        let shape = parties.table.description().geometry().shape(name).unwrap();
        let parts = parties.table.description().geometry().parts;
        let lying = ciphervec_owner::fetch::FetchTable::of_parts(shape, parts, |_, _, out| {
            out.fill(5);
            Ok(())
        });
        let evaluation = FetchKeys::from_bytes(&parties.client.evaluation_keys()).unwrap();
        let wrong = lying.unwrap().answer(&evaluation, &queries[0]).unwrap();
        // Bytes that are no answer, and another number of them, tell nothing and end nothing.
        assert!(parties.client.open(&asked, &[&wrong[..90]]).is_err());
        assert!(parties.client.open(&asked, &Vec::<Vec<u8>>::new()).is_err());
        let found = parties.client.open(&asked, &right).unwrap();
        assert_eq!(found[0].as_ref().map(|one| one.to_vec()), held.get(&7).cloned());
        let failed = parties.client.open(&asked, &[wrong]);
        assert!(matches!(failed, Err(Error::FetchEnded)));
        assert!(matches!(parties.client.open(&asked, &right), Err(Error::FetchEnded)));
        assert!(matches!(parties.client.ask(&[], 1), Err(Error::FetchEnded)));
        assert!(matches!(parties.client.renew_for(1, 1), Err(Error::FetchEnded)));
    }
}

/// A filler that is answered wrongly ends the client as well: a server does not learn how many keys there were.
#[test]
fn an_answer_that_fills_up_is_checked_like_the_others() {
    let held: HashMap<i128, Vec<u8>> = (0..60).map(|key| (key, content(key, 3000))).collect();
    let mut parties = Parties::new(built(&held, None, 0), None);
    let (asked, queries) = parties.client.ask(&[LookupKey::Integer(7)], 10).unwrap();
    let mut answers = parties.answers(&queries);
    // The last fetch of the last query, of a key that nobody asked for: a bit of its words, under a checksum of its own.
    let last = answers.last_mut().unwrap();
    let (header, payload) =
        ciphervec_he_secret::wire::open(ciphervec_he_secret::wire::Kind::RetrievalAnswer, last)
            .unwrap();
    let mut payload = payload.to_vec();
    let at = payload.len() - 1;
    payload[at] ^= 0x80;
    *last = header.frame(&payload);
    assert!(matches!(parties.client.open(&asked, &answers), Err(Error::FetchEnded)));
}

#[test]
fn keys_of_another_owner_open_no_sealed_table() {
    let (owner, other) = (Keys::from_master([6; 32]), Keys::from_master([7; 32]));
    let held = HashMap::from([(1, vec![1; 40]), (2, vec![])]);
    let file = built(&held, Some(&owner), 0);
    // No byte of a key or a record is there in clear.
    assert!(!file.windows(8).any(|bytes| bytes == [1; 8]));
    let table = KeyedTable::from_bytes(file.clone()).unwrap();
    assert!(table.description().seed().is_none());
    let description = || Description::from_bytes(&table.description().to_bytes()).unwrap();
    assert!(KeyedClient::new(description(), None).is_err());
    assert!(KeyedClient::new(description(), Some(&other)).is_err());
    assert!(read_record(&table, Some(&other), LookupKey::Integer(1)).is_err());
    assert!(read_record(&table, None, LookupKey::Integer(1)).is_err());
    // One bit of the number of records, or of a hash, is no owner's word.
    for at in [64, 100] {
        let mut bytes = table.description().to_bytes();
        bytes[at] ^= 1;
        let changed = Description::from_bytes(&bytes);
        assert!(changed.is_err() || KeyedClient::new(changed.unwrap(), Some(&owner)).is_err());
    }
}

#[test]
fn files_that_are_no_tables_are_refused() {
    let held: HashMap<i128, Vec<u8>> = (0..20).map(|key| (key, vec![1; 30])).collect();
    let file = built(&held, None, 0);
    assert!(KeyedTable::from_bytes(file.clone()).is_ok());
    for bad in [&file[..file.len() - 1], &file[..50], &[], b"CVKEYTAB", &[&file[..], b"x"].concat()]
    {
        assert!(KeyedTable::from_bytes(bad.to_vec()).is_err());
    }
    let description = KeyedTable::from_bytes(file.clone()).unwrap().description().to_bytes();
    for at in 0..82 {
        let mut bytes = file.clone();
        bytes[at] ^= 0x41;
        // Either the file is refused, or it is another table, with another fingerprint, none of whose buckets is right.
        if let Ok(table) = KeyedTable::from_bytes(bytes) {
            assert_ne!(table.description().to_bytes(), description);
            // What says how to look is in no bucket's hash; the fingerprint has it.
            assert!(table.verify().is_err() || at >= 29, "byte {at}");
        }
    }
    let mut crowded = description.clone();
    crowded[61..69].copy_from_slice(&1_000_000u64.to_le_bytes());
    assert!(Description::from_bytes(&crowded).is_err());
    for cut in 0..description.len() {
        assert!(Description::from_bytes(&description[..cut]).is_err());
    }
}
