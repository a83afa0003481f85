//! Private fetch between an owner and a server that share bytes alone: contents, classes, lies and ends.

use ciphervec_owner::fetch::{
    FetchKeys, FetchSession, FetchTable, MAX_FETCHED, RecordClass, Shape,
};
use ciphervec_owner::{Error, Keys};

const NAME: [u8; 16] = [7; 16];

struct Parties {
    keys: Keys,
    contents: Vec<Vec<u8>>,
    sealed: Vec<Vec<u8>>,
    shape: Shape,
    session: FetchSession,
}

impl Parties {
    /// Records of every length from 0 to that of the class.
    fn new(records: usize, content: usize) -> Self {
        let keys = Keys::from_master([2; 32]);
        let class = RecordClass::new(content).unwrap();
        let contents: Vec<Vec<u8>> = (0..records)
            .map(|at| {
                vec![at as u8 ^ 0x5a; if at == 0 { content } else { at * 37 % (content + 1) }]
            })
            .collect();
        let seal = |(at, content): (usize, &Vec<u8>)| class.seal(&keys, &NAME, at, content);
        let sealed = contents.iter().enumerate().map(seal).collect::<Result<Vec<_>, _>>().unwrap();
        assert!(sealed.iter().all(|record| record.len() == class.sealed_len()));
        let shape = class.shape(NAME, records).unwrap();
        let session = FetchSession::begin(&keys, b"collection").unwrap();
        Parties { keys, contents, sealed, shape, session }
    }

    fn server(&self) -> (FetchTable, FetchKeys) {
        let table = FetchTable::new(self.shape, &self.sealed).unwrap();
        let keys = FetchKeys::from_bytes(self.session.evaluation_keys()).unwrap();
        (table, keys)
    }

    fn fetch(
        &mut self,
        (table, keys): &(FetchTable, FetchKeys),
        places: &[usize],
    ) -> Result<Vec<Vec<u8>>, Error> {
        let (asked, query) = self.session.ask(&self.shape, places, places.len())?;
        let opened = self.session.open(&asked, &table.answer(keys, &query)?)?;
        Ok(opened.into_iter().map(|content| content.to_vec()).collect())
    }
}

#[test]
fn contents_come_as_they_were_sealed_in_every_class() {
    for (records, content) in [(1, 0), (1, 1), (5, 7124), (5, 7125), (40, 980), (300, 100)] {
        let mut parties = Parties::new(records, content);
        let server = parties.server();
        let last = records - 1;
        for places in
            [vec![0], vec![last], vec![last, 0], vec![last / 2; 5], vec![last; MAX_FETCHED]]
        {
            let expected: Vec<Vec<u8>> =
                places.iter().map(|&place| parties.contents[place].clone()).collect();
            assert_eq!(parties.fetch(&server, &places).unwrap(), expected, "{records} {content}");
        }
    }
}

/// Requests of one class are of one length, whatever and however many are asked for.
#[test]
fn a_query_shows_its_class_alone() {
    let mut parties = Parties::new(40, 980);
    for class in [1..=1, 2..=10] {
        let of_class: Vec<usize> = class
            .flat_map(|count| {
                let places: [Vec<usize>; 3] =
                    [vec![], vec![0; count], (0..count).map(|at| 39 - at).collect()];
                places.map(|places| (places, count))
            })
            .map(|(places, bound)| {
                parties.session.ask(&parties.shape, &places, bound).unwrap().1.len()
            })
            .collect();
        assert!(of_class.iter().all(|length| *length == of_class[0]), "{of_class:?}");
    }
    for (places, bound) in [(vec![], 0), (vec![40], 1), (vec![0; 11], 11), (vec![0; 2], 1)] {
        assert!(matches!(
            parties.session.ask(&parties.shape, &places, bound),
            Err(Error::Range { .. } | Error::Scheme(_))
        ));
    }
}

/// One changed record ends the session of a client that wanted it, with one error, and of no other.
#[test]
fn a_record_that_was_changed_or_moved_ends_the_session_that_wants_it() {
    let changed: [fn(&mut Vec<Vec<u8>>); 3] =
        [|all| all[3][50] ^= 1, |all| all.swap(3, 4), |all| all[3] = vec![0; all[3].len()]];
    for change in changed {
        let mut parties = Parties::new(10, 100);
        change(&mut parties.sealed);
        let server = parties.server();
        assert_eq!(parties.fetch(&server, &[2, 5]).unwrap().len(), 2);
        assert!(matches!(parties.fetch(&server, &[2, 3]), Err(Error::FetchEnded)));
        assert!(matches!(parties.fetch(&server, &[2]), Err(Error::FetchEnded)));
    }
    // A record that fills a class up is not looked at.
    let mut parties = Parties::new(10, 100);
    parties.sealed[0][7] ^= 1;
    let server = parties.server();
    assert!(parties.fetch(&server, &[1, 2]).is_ok());
}

#[test]
fn answers_to_other_queries_open_nothing_and_damaged_ones_end_nothing() {
    // A polynomial each: of records in one, the answers are the same.
    let mut parties = Parties::new(10, 7000);
    let (table, keys) = parties.server();
    let (asked, query) = parties.session.ask(&parties.shape, &[3], 1).unwrap();
    let answer = table.answer(&keys, &query).unwrap();
    let mut damaged = answer.clone();
    damaged[1000] ^= 4;
    assert!(matches!(parties.session.open(&asked, &damaged), Err(Error::Scheme(_))));
    assert!(matches!(parties.session.open(&asked, &answer[..900]), Err(Error::Scheme(_))));
    assert_eq!(*parties.session.open(&asked, &answer).unwrap()[0], parties.contents[3]);
    // Of another session, whose query has another key.
    let mut other = FetchSession::begin(&parties.keys, b"collection").unwrap();
    let (_, foreign) = other.ask(&parties.shape, &[3], 1).unwrap();
    assert!(table.answer(&keys, &foreign).is_err());
    // To another record.
    let (_, query) = parties.session.ask(&parties.shape, &[4], 1).unwrap();
    let answer = table.answer(&keys, &query).unwrap();
    assert!(matches!(parties.session.open(&asked, &answer), Err(Error::FetchEnded)));
}

#[test]
fn a_session_serves_1024_queries() {
    let mut parties = Parties::new(2, 10);
    for _ in 0..1024 {
        parties.session.ask(&parties.shape, &[1], 1).unwrap();
    }
    assert!(matches!(parties.session.ask(&parties.shape, &[1], 1), Err(Error::Range { .. })));
}

#[test]
fn another_state_of_a_table_and_records_of_other_sizes_are_refused() {
    let mut parties = Parties::new(10, 100);
    let (_, query) = parties.session.ask(&parties.shape, &[3], 1).unwrap();
    let class = RecordClass::new(100).unwrap();
    for (name, records) in [([8; 16], 10), (NAME, 9)] {
        let shape = class.shape(name, records).unwrap();
        let table = FetchTable::new(shape, &parties.sealed[..records]).unwrap();
        let keys = FetchKeys::from_bytes(parties.session.evaluation_keys()).unwrap();
        assert!(matches!(table.answer(&keys, &query), Err(Error::Scheme(_))));
    }
    assert!(FetchTable::new(parties.shape, &parties.sealed[..9]).is_err());
    parties.sealed[4].pop();
    assert!(FetchTable::new(parties.shape, &parties.sealed).is_err());
    assert!(class.seal(&parties.keys, &NAME, 0, &[0; 101]).is_err());
    assert!(RecordClass::new(RecordClass::MAX_CONTENT + 1).is_err());
    let largest = RecordClass::new(RecordClass::MAX_CONTENT).unwrap();
    assert!(largest.shape(NAME, 1).is_ok() && largest.shape(NAME, 0).is_err());
}
