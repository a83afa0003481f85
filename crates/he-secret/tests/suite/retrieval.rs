//! Private retrieval end to end through its messages: every record bit for bit, the noise against its bound, and
//! what a server sees.

use ciphervec_arith::Backend;
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::lattice::retrieval::{
    self, ANSWER_BYTES, MAX_RECORD, PAYLOAD_BYTES, RetrievalAnswer, RetrievalKey, RetrievalQuery,
    SelectorKeys, Shape, Table,
};
use ciphervec_he_secret::lattice::ring::Ring;
use ciphervec_he_secret::wire::{self, Kind};
use std::slice::from_ref;
use std::sync::LazyLock;

struct Owner {
    ring: Ring,
    key: RetrievalKey,
    keys: SelectorKeys,
}

static OWNER: LazyLock<Owner> = LazyLock::new(|| {
    let ring = Ring::new().unwrap();
    let master = MasterKey::from_bytes([5; 32]);
    let key = RetrievalKey::derive(&ring, &master, b"collection", 1 << 31);
    let bytes = key.selector_keys(&ring, &master, b"collection").to_bytes();
    assert_eq!(bytes.len(), SelectorKeys::BYTES);
    let keys = SelectorKeys::from_bytes(&ring, &bytes).unwrap();
    assert_eq!(keys.to_bytes(), bytes);
    Owner { ring, key, keys }
});

/// Bytes of a record that no other has; at the extremes, all ones or zeros.
fn content(record: usize, out: &mut [u8]) {
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = match record % 5 {
            3 => 0xff,
            4 => 0,
            _ => (record.wrapping_mul(0x9e37_79b9) >> (at % 4 * 8)) as u8 ^ at as u8,
        };
    }
}

impl Owner {
    /// Fetches records through bytes; the messages' lengths depend on their number alone.
    fn fetch(&self, table: &Table, records: &[usize]) -> RetrievalAnswer {
        let shape = table.shape();
        let asked = self.key.ask(&self.ring, shape, records).unwrap().to_bytes(shape);
        assert_eq!(asked.len(), 64 + 56 + shape.ciphertexts(records.len()) * 25_600);
        let query = RetrievalQuery::from_bytes(&self.ring, &asked, shape).unwrap();
        assert_eq!((query.fetches(), query.to_bytes(shape)), (records.len(), asked));
        let answer = retrieval::answer(&self.ring, &self.keys, from_ref(table), &query).unwrap();
        let answer = answer.to_bytes(shape);
        assert_eq!(answer.len(), 64 + 24 + records.len() * shape.layers() * ANSWER_BYTES);
        let read = RetrievalAnswer::from_bytes(&answer, shape, records.len()).unwrap();
        assert_eq!(read.to_bytes(shape), answer);
        read
    }

    fn check(&self, table: &Table, records: &[usize]) {
        let answer = self.fetch(table, records);
        let opened = self.key.open(&self.ring, table.shape(), records, &answer).unwrap();
        assert_eq!(opened.len(), records.len());
        let mut expected = vec![0; table.shape().record_len()];
        for (&record, opened) in records.iter().zip(opened) {
            content(record, &mut expected);
            assert!(*opened == expected, "record {record} of {:?}", table.shape());
        }
    }

    fn table(&self, records: usize, record_len: usize) -> Table {
        let shape = Shape::new([9; 16], records, record_len).unwrap();
        Table::new(&self.ring, shape, content)
    }
}

#[test]
fn every_record_of_small_tables_comes_bit_for_bit() {
    for (records, record_len) in [
        (1, 1),
        (1, MAX_RECORD),
        (2, PAYLOAD_BYTES),
        (3, PAYLOAD_BYTES + 1),
        (5, 4000),
        (37, 3000),
        (100, 1024),
        (20, PAYLOAD_BYTES),
        (70, PAYLOAD_BYTES),
    ] {
        let table = OWNER.table(records, record_len);
        let all: Vec<usize> = (0..records).collect();
        all.chunks(16).for_each(|records| OWNER.check(&table, records));
    }
}

#[test]
fn one_fetch_and_sixteen_of_a_table_of_many_columns() {
    // 517 polynomials are 32 nodes of 17 columns, the last of which is short.
    let shape = Shape::with_nodes([9; 16], 517, PAYLOAD_BYTES, 32).unwrap();
    let table = Table::new(&OWNER.ring, shape, content);
    assert_eq!((shape.columns(), shape.column_bits()), (17, 5));
    OWNER.check(&table, &[516]);
    OWNER.check(&table, &[0]);
    let spread: Vec<usize> = (0..16).map(|i| i * 34 + i / 15 * 6).collect();
    OWNER.check(&table, &spread);
    OWNER.check(&table, &[7, 7, 7]);
}

/// One node: columns in runs of 16 at sixteen fetches, whose first ones are folded at the end.
#[test]
fn columns_of_several_runs_are_folded() {
    let shape = Shape::with_nodes([1; 16], 67, PAYLOAD_BYTES, 1).unwrap();
    let table = Table::new(&OWNER.ring, shape, content);
    OWNER.check(&table, &[0, 1, 15, 16, 17, 31, 32, 47, 48, 60, 61, 62, 63, 64, 65, 66]);
    OWNER.check(&table, &[66, 64]);
}

/// Four fetches share a ciphertext, so that a round of three begins in one and ends in the next.
#[test]
fn fetches_of_several_parts_take_turns_across_ciphertexts() {
    let (owner, shape) = (&*OWNER, Shape::with_nodes([3; 16], 456, PAYLOAD_BYTES, 228).unwrap());
    assert_eq!(shape.fetches_per_ciphertext(), 4);
    let parts = [0, 1, 2].map(|part| {
        Table::new(&owner.ring, shape, |record, out| content(record + 1000 * part, out))
    });
    let records: Vec<usize> = (0..15).map(|at| at * 29 % 456).collect();
    for count in [3, 6, 15] {
        let query = owner.key.ask(&owner.ring, &shape, &records[..count]).unwrap();
        let answer = retrieval::answer(&owner.ring, &owner.keys, &parts, &query).unwrap();
        let opened = owner.key.open(&owner.ring, &shape, &records[..count], &answer).unwrap();
        for (at, opened) in opened.iter().enumerate() {
            let mut expected = vec![0; PAYLOAD_BYTES];
            content(records[at] + 1000 * (at % 3), &mut expected);
            assert!(**opened == expected, "fetch {at} of {count}");
        }
    }
    // No whole rounds, and no parts.
    let query = owner.key.ask(&owner.ring, &shape, &records[..4]).unwrap();
    assert!(retrieval::answer(&owner.ring, &owner.keys, &parts, &query).is_err());
    assert!(retrieval::answer(&owner.ring, &owner.keys, &[], &query).is_err());
}

#[test]
fn records_come_bit_for_bit_on_every_back_end() {
    for backend in Backend::available() {
        let ran = backend.run(|| {
            let owner = &*OWNER;
            let table = owner.table(40, 5000);
            owner.check(&table, &[0, 39, 17]);
        });
        assert!(ran.is_ok());
    }
}

#[test]
fn records_and_numbers_of_them_that_there_are_not_are_refused() {
    let (owner, table) = (&*OWNER, OWNER.table(10, 1000));
    let shape = table.shape();
    let ask = |records: &[usize]| owner.key.ask(&owner.ring, shape, records);
    assert!(ask(&[]).is_err() && ask(&[10]).is_err() && ask(&[usize::MAX]).is_err());
    assert!(ask(&[0; 16]).is_ok() && ask(&[0; 17]).is_err());
    let answer = owner.fetch(&table, &[3]);
    let open = |records: &[usize]| owner.key.open(&owner.ring, shape, records, &answer);
    assert!(open(&[3]).is_ok() && open(&[10]).is_err() && open(&[3, 4]).is_err());
}

#[test]
fn keys_of_another_owner_epoch_or_collection_are_refused_or_decrypt_nothing() {
    let (ring, table) = (&OWNER.ring, OWNER.table(10, 1000));
    let shape = table.shape();
    let other = |master: u8, collection: &[u8], epoch: u32| {
        RetrievalKey::derive(ring, &MasterKey::from_bytes([master; 32]), collection, epoch)
    };
    let of_master = other(6, b"collection", 1 << 31);
    let of_epoch = other(5, b"collection", 7);
    let of_collection = other(5, b"elsewhere", 1 << 31);
    let answer = |key: &RetrievalKey| {
        let query = key.ask(ring, shape, &[3]).unwrap();
        retrieval::answer(ring, &OWNER.keys, from_ref(&table), &query)
    };
    assert!(answer(&of_master).is_err() && answer(&of_epoch).is_err());
    // Names of collections are in the keys alone.
    let foreign = answer(&of_collection).unwrap();
    assert!(of_master.open(ring, shape, &[3], &foreign).is_err());
    assert!(of_epoch.open(ring, shape, &[3], &foreign).is_err());
    let mut expected = vec![0; 1000];
    content(3, &mut expected);
    for key in [&of_collection, &OWNER.key] {
        let opened = key.open(ring, shape, &[3], &foreign).unwrap();
        let equal = opened[0].iter().zip(&expected).filter(|(a, b)| a == b).count();
        assert!(equal < 50, "{equal} of 1000 bytes");
    }
}

/// One number a fetch: there is room for a thousand in the ciphertext.
#[test]
fn a_query_of_no_fetches_or_too_many_is_refused() {
    let (owner, shape) = (&*OWNER, Shape::new([9; 16], 1, 100).unwrap());
    assert_eq!((shape.numbers(), shape.ciphertexts(17)), (1, 1));
    let bytes = owner.key.ask(&owner.ring, &shape, &[0]).unwrap().to_bytes(&shape);
    let (header, payload) = wire::open(Kind::RetrievalQuery, &bytes).unwrap();
    let forged = |fetches: u32, ciphertexts: usize| {
        let mut payload = payload[..56 + ciphertexts * 25_600].to_vec();
        payload[20..24].copy_from_slice(&fetches.to_le_bytes());
        RetrievalQuery::from_bytes(&owner.ring, &header.frame(&payload), &shape)
    };
    assert!(forged(1, 1).is_ok() && forged(16, 1).is_ok());
    assert!(forged(0, 0).is_err() && forged(17, 1).is_err() && forged(u32::MAX, 1).is_err());
}

/// What a server sees of two fetches: nothing but the bytes of the ciphertexts and their seed differ, and those are uniform
/// whatever the record is. A coefficient's top bits over 400 queries of each record: χ² of 15 degrees is above 60 with 10⁻⁶.
#[test]
fn queries_of_two_records_differ_in_uniform_bytes_alone() {
    let (owner, table) = (&*OWNER, OWNER.table(64, PAYLOAD_BYTES));
    let shape = table.shape();
    let mut first: Option<Vec<u8>> = None;
    for record in [0usize, 63] {
        let mut counts = [[0f64; 16]; 3];
        for _ in 0..400 {
            let bytes = owner.key.ask(&owner.ring, shape, &[record]).unwrap().to_bytes(shape);
            let first = first.get_or_insert_with(|| bytes.clone());
            assert_eq!(bytes.len(), first.len());
            // The header but for its checksum, and the payload before the seed.
            assert_eq!((&bytes[..32], &bytes[64..88]), (&first[..32], &first[64..88]));
            // The seed, a residue's upper bits in the middle, another at the end.
            for (counts, at) in counts.iter_mut().zip([90, 120 + 25 * 500 - 1, bytes.len() - 1]) {
                counts[usize::from(bytes[at] >> 4)] += 1.0;
            }
        }
        for counts in counts {
            let chi: f64 = counts.iter().map(|n| (n - 25.0).powi(2) / 25.0).sum();
            assert!(chi < 60.0, "record {record}: {chi}");
        }
    }
}

#[test]
fn keys_and_noise_of_a_key_are_derived_and_queries_are_not() {
    let (owner, shape) = (&*OWNER, Shape::new([9; 16], 100, 100).unwrap());
    let again =
        owner.key.selector_keys(&owner.ring, &MasterKey::from_bytes([5; 32]), b"collection");
    assert_eq!(again.to_bytes(), owner.keys.to_bytes());
    let ask = || owner.key.ask(&owner.ring, &shape, &[1]).unwrap().to_bytes(&shape);
    assert_ne!(ask()[120..], ask()[120..]);
    assert!(!format!("{:?}", owner.key).contains("ternary"));
}

/// The noise of answers at the extremes: as many fetches to a ciphertext as fit, most nodes, all columns' bits. Its deviation
/// is that of the bound to within a tenth, and no coefficient is beyond six of them.
#[cfg(feature = "hazmat")]
#[test]
fn noise_is_as_large_as_the_bound_says() {
    use ciphervec_he_secret::lattice::retrieval::RetrievalNoise;
    let owner = &*OWNER;
    for (polynomials, nodes, fetches) in
        [(768, 256, 3), (768, 256, 1), (456, 228, 4), (512, 1, 16), (1, 1, 1)]
    {
        let shape = Shape::with_nodes([2; 16], polynomials, PAYLOAD_BYTES, nodes).unwrap();
        let table = Table::new(&owner.ring, shape, |record, out| {
            out.fill(if record % 2 == 0 { 0xff } else { 0x55 });
        });
        let bound = RetrievalNoise::of(&shape, fetches).unwrap();
        let (mut squares, mut count, mut most) = (0.0, 0.0, 0f64);
        for round in 0..4 {
            let records: Vec<usize> =
                (0..fetches).map(|at| (polynomials - 1).saturating_sub(at * 13 + round)).collect();
            let answer = owner.fetch(&table, &records);
            for noise in owner.key.noise(&owner.ring, &answer, 1) {
                squares += noise * noise;
                count += 1.0;
                most = most.max(noise.abs());
            }
        }
        let ratio = f64::sqrt(squares / count) / bound.total();
        println!(
            "{polynomials} {nodes} {fetches}: {ratio:.3} of {bound:?}, {:.1}",
            bound.deviations()
        );
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
        assert!(most < 6.0 * bound.total(), "{most} {bound:?}");
        assert!(bound.failure(1) < -64.0);
    }
}
