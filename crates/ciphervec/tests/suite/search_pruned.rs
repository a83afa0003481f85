//! Segments without their deleted rows: what is left answers, bit for bit, as it did, and nothing else is accepted.

use ciphervec::search::{Owner, Retrieval, Segment, SegmentDirectory, SegmentHead, ServerIndex};
use ciphervec::{Id, IndexSpec, Keys, Metric, Mode, Precision, Scheme};
use ciphervec_arith::AlignedBytes;
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

fn made(mode: Mode, precision: Precision, scheme: Scheme) -> Made {
    let spec = IndexSpec::new("faces", D as u32, Metric::Cosine, mode, precision)
        .and_then(|spec| spec.with_scheme(scheme, None))
        .unwrap();
    let owner = Owner::new(&Keys::generate().unwrap(), spec).unwrap();
    if scheme.is_additive() {
        owner.generate_key_pair().unwrap();
    }
    let ids: Vec<Id> = (0..ROWS as i64).map(Id::Number).collect();
    let sealed = owner.seal(&random(ROWS * D, 1), &ids).unwrap();
    let mut directory = SegmentDirectory::new();
    directory.add(&owner, sealed.id, &sealed.sidecar, &[]).unwrap();
    Made { owner, directory, bytes: sealed.segment }
}

impl Made {
    fn server(&self, segment: &AlignedBytes) -> ServerIndex {
        let mut server = ServerIndex::new(self.owner.spec().clone()).unwrap();
        server.add(segment.clone()).unwrap();
        server
    }

    fn parse(&self, bytes: &[u8]) -> ciphervec::Result<Segment> {
        let server = ServerIndex::new(self.owner.spec().clone()).unwrap();
        server.parse(AlignedBytes::from_slice(bytes))
    }

    fn prune(&self, bytes: &[u8], deleted: &[bool]) -> Option<AlignedBytes> {
        self.parse(bytes).unwrap().prune(self.owner.spec(), |row| deleted[row as usize])
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn the_rows_that_stay_answer_as_they_did(
        precision in prop::sample::select(PRECISIONS.to_vec()),
        deleted in prop::collection::vec(prop::bool::weighted(0.4), ROWS),
        more in prop::collection::vec(prop::bool::weighted(0.2), ROWS),
        queries in 1usize..4,
    ) {
        let mut made = made(Mode::SealedIndex, precision, Scheme::Lattice);
        let both: Vec<bool> = deleted.iter().zip(&more).map(|(a, b)| *a || *b).collect();
        prop_assume!(deleted.contains(&true) && both.contains(&false));
        let pruned = made.prune(&made.bytes, &deleted).unwrap();
        let kept = deleted.iter().filter(|deleted| !**deleted).count();
        let width = match precision {
            Precision::Standard => 4,
            Precision::Small => 3,
            Precision::Wide => 8,
        };
        prop_assert_eq!(pruned.len(), SegmentHead::LEN + 64 + kept * D * width);
        let head = SegmentHead::read(made.owner.spec(), &pruned).unwrap();
        prop_assert_eq!((head.rows as usize, head.kept as usize), (ROWS, kept));
        // In one step or in two, it is the same segment.
        let again = made.prune(&pruned, &both);
        let at_once = made.prune(&made.bytes, &both).unwrap();
        prop_assert_eq!(again.as_deref().unwrap_or(&pruned), &*at_once);
        prop_assert!(made.prune(&pruned, &deleted).is_none(), "nothing is left to take out");
        for (row, deleted) in deleted.iter().enumerate() {
            if *deleted {
                made.directory.mark_deleted(&Id::Number(row as i64));
            }
        }
        let query = made.owner.query(&random(queries * D, 9), &made.directory, 0, &[]).unwrap();
        let whole = made.server(&made.bytes).evaluate(query.to_bytes()).unwrap().bytes;
        let server = made.server(&pruned);
        let few = server.evaluate(query.to_bytes()).unwrap().bytes;
        prop_assert_eq!(whole.len(), few.len(), "the length of an answer says nothing new");
        let open = |answer: &[u8]| {
            made.owner.open(&query, answer, &made.directory, Retrieval::TopK(ROWS), None).unwrap().hits
        };
        let hits = open(&few);
        prop_assert_eq!(format!("{:?}", hits), format!("{:?}", open(&whole)));
        prop_assert_eq!(hits[0].len(), kept);
        let together = server.evaluate_many(&[query.to_bytes(), query.to_bytes()]);
        for one in together {
            prop_assert_eq!(&one.unwrap().bytes, &few);
        }
        let rows: Vec<usize> = (0..ROWS).filter(|&row| !deleted[row]).collect();
        prop_assert_eq!(
            made.owner.unseal_rows(&pruned, Some(&rows), &made.directory).unwrap(),
            made.owner.unseal_rows(&made.bytes, Some(&rows), &made.directory).unwrap()
        );
    }
}

#[test]
fn other_forms_keep_their_rows_and_so_does_a_segment_without_live_ones() {
    let deleted = vec![true; ROWS];
    let some: Vec<bool> = (0..ROWS).map(|row| row % 2 == 0).collect();
    let compact = made(Mode::SealedIndex, Precision::Standard, Scheme::Lattice);
    assert!(compact.prune(&compact.bytes, &deleted).is_none());
    assert!(compact.prune(&compact.bytes, &[false; ROWS]).is_none());
    assert!(compact.prune(&compact.bytes, &some).is_some());
    for mode in [Mode::Sealed, Mode::SealedQuery] {
        let ring = made(mode, Precision::Standard, Scheme::Lattice);
        assert!(ring.prune(&ring.bytes, &some).is_none());
    }
    let additive = made(Mode::SealedIndex, Precision::Standard, Scheme::ElGamal);
    let mut server = ServerIndex::new(additive.owner.spec().clone()).unwrap();
    server.set_evaluation_keys(&additive.owner.public_key().unwrap()).unwrap();
    let segment = server.parse(additive.bytes.clone()).unwrap();
    assert!(segment.prune(additive.owner.spec(), |row| row == 0).is_none());
}

#[test]
fn marks_of_pruned_segments_that_do_not_fit_are_refused() {
    let made = made(Mode::SealedIndex, Precision::Standard, Scheme::Lattice);
    let deleted: Vec<bool> = (0..ROWS).map(|row| row % 3 == 0).collect();
    let pruned = made.prune(&made.bytes, &deleted).unwrap();
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

/// A frame whose checksum is right although its bytes are not.
fn reseal(bytes: &mut [u8]) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..32]).update(&bytes[64..]);
    let checksum = *hasher.finalize().as_bytes();
    bytes[32..64].copy_from_slice(&checksum);
}
