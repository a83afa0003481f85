//! Segments that a server took rows out of, as those of release 0.1 did: what is left answers, bit for bit, as it did; their
//! owner takes none of segments that have check sums, whatever was deleted.

use crate::pruned::{reseal, without_rows};
use ciphervec_arith::AlignedBytes;
use ciphervec_owner::search::{
    Owner, QueryOptions, Retrieval, Segment, SegmentDirectory, SegmentHead, ServerIndex,
};
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision};
use proptest::prelude::*;

const D: usize = 24;
/// More than one tile of 64 rows, the last one narrow.
const ROWS: usize = 150;
const PRECISIONS: [Precision; 3] = [Precision::Standard, Precision::Small, Precision::Wide];

fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let numbers = (0..count).map(|_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    });
    numbers.collect()
}

struct Made {
    owner: Owner,
    directory: SegmentDirectory,
    bytes: AlignedBytes,
}

fn made(precision: Precision) -> Made {
    let spec =
        IndexSpec::new("faces", D as u32, Metric::Cosine, Mode::SealedIndex, precision).unwrap();
    let owner = Owner::new(&Keys::generate().unwrap(), spec).unwrap();
    let ids: Vec<Id> = (0..ROWS as i64).map(Id::Number).collect();
    let sealed = owner.seal(&random(ROWS * D, 1), &ids).unwrap();
    let mut directory = SegmentDirectory::new();
    directory.add(&owner, sealed.id, &sealed.sidecar, &[]).unwrap();
    Made { owner, directory, bytes: sealed.segment }
}

fn word(precision: Precision) -> usize {
    match precision {
        Precision::Standard => 4,
        Precision::Small => 3,
        Precision::Wide => 8,
    }
}

impl Made {
    fn server(&self, segment: &AlignedBytes) -> ServerIndex {
        let mut server = ServerIndex::new(self.owner.spec().clone()).unwrap();
        server.add(segment.clone()).unwrap();
        server
    }

    fn parse(&self, bytes: &[u8]) -> ciphervec_owner::Result<Segment> {
        let server = ServerIndex::new(self.owner.spec().clone()).unwrap();
        server.parse(AlignedBytes::from_slice(bytes))
    }

    fn pruned(&self, deleted: &[bool]) -> AlignedBytes {
        without_rows(&self.bytes, D, word(self.owner.spec().precision()), deleted)
    }

    fn delete(&mut self, deleted: &[bool]) {
        for row in (0..ROWS).filter(|&row| deleted[row]) {
            self.directory.mark_deleted(&Id::Number(row as i64));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn the_rows_that_stay_answer_as_they_did_and_the_owner_takes_none(
        precision in prop::sample::select(PRECISIONS.to_vec()),
        deleted in prop::collection::vec(prop::bool::weighted(0.4), ROWS),
        queries in 1usize..4,
    ) {
        let mut made = made(precision);
        prop_assume!(deleted.contains(&true) && deleted.contains(&false));
        let pruned = made.pruned(&deleted);
        let kept = deleted.iter().filter(|deleted| !**deleted).count();
        let word = word(precision);
        prop_assert_eq!(pruned.len(), SegmentHead::LEN + 64 + kept * D * word);
        let head = SegmentHead::read(made.owner.spec(), &pruned).unwrap();
        prop_assert_eq!((head.rows as usize, head.kept as usize), (ROWS, kept));
        let query = made.owner.query(&random(queries * D, 9), &made.directory, QueryOptions::default()).unwrap();
        let mut whole = made.server(&made.bytes).evaluate(query.to_bytes()).unwrap().bytes;
        let server = made.server(&pruned);
        let few = server.evaluate(query.to_bytes()).unwrap().bytes;
        let start = whole.len() - queries * ROWS * word;
        for (row, words) in whole[start..].chunks_exact_mut(word).enumerate() {
            if deleted[row % ROWS] {
                words.fill(0);
            }
        }
        prop_assert_eq!(&whole[64..], &few[64..]);
        for one in server.evaluate_many(&[query.to_bytes(), query.to_bytes()]) {
            prop_assert_eq!(&one.unwrap().bytes, &few);
        }
        // Before the rows are deleted, and after: the sums are of all rows.
        let rows: Vec<usize> = (0..ROWS).filter(|&row| !deleted[row]).collect();
        for _ in 0..2 {
            let opened = made.owner.open(&query, &few, &made.directory, Retrieval::TopK(3));
            prop_assert!(matches!(opened, Err(Error::Tampered { .. })), "taken");
            let opened = made.owner.unseal_rows(&pruned, Some(&rows), &made.directory);
            prop_assert!(matches!(opened, Err(Error::Tampered { .. })), "taken");
            made.delete(&deleted);
        }
        prop_assert_eq!(made.directory.unchecked_blocks(&made.owner), 0);
        let honest = made.server(&made.bytes).evaluate(query.to_bytes()).unwrap().bytes;
        let opened = made.owner.open(&query, &honest, &made.directory, Retrieval::TopK(ROWS)).unwrap();
        prop_assert!(opened.checked && opened.hits.iter().all(|hits| hits.len() == kept));
    }
}

#[test]
fn marks_of_pruned_segments_that_do_not_fit_are_refused() {
    let made = made(Precision::Standard);
    let deleted: Vec<bool> = (0..ROWS).map(|row| row % 3 == 0).collect();
    let pruned = made.pruned(&deleted);
    let at = |offset: usize| SegmentHead::LEN - 64 + offset;
    let bad: [(&str, &[u8], usize, &[u8]); 10] = [
        ("marked, but all rows", &made.bytes, at(29), &[1]),
        ("kept rows without a mark", &made.bytes, at(32), &[100]),
        ("another mark", &pruned, at(29), &[2]),
        ("no mark", &pruned, at(29), &[0]),
        ("reserved", &pruned, at(30), &[1]),
        ("reserved at the end", &pruned, at(63), &[1]),
        ("no row", &pruned, at(32), &0u32.to_le_bytes()),
        ("more rows than there are", &pruned, at(32), &u32::MAX.to_le_bytes()),
        ("a bit too many", &pruned, at(64), &[0xff]),
        ("a bit beyond the last row", &pruned, at(64 + ROWS / 8), &[0xff]),
    ];
    for (what, bytes, offset, put) in bad {
        let mut bytes = bytes.to_vec();
        bytes[offset..][..put.len()].copy_from_slice(put);
        reseal(&mut bytes);
        assert!(made.parse(&bytes).is_err(), "{what}");
        let opened = made.owner.unseal_rows(&bytes, None, &made.directory);
        assert!(opened.is_err(), "{what}, at the owner");
    }
    let mut padded = pruned.to_vec();
    padded[at(64 + 63)] = 1;
    reseal(&mut padded);
    assert!(made.parse(&padded).is_err());
    for cut in [1, 64, pruned.len() / 2] {
        let mut bytes = pruned[..pruned.len() - cut].to_vec();
        bytes[24..32].copy_from_slice(&((pruned.len() - cut - 64) as u64).to_le_bytes());
        reseal(&mut bytes);
        assert!(made.parse(&bytes).is_err(), "{cut} bytes short");
    }
}
