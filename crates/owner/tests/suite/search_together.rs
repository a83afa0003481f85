//! Queries answered together: each answer is, bit for bit, what the query would have got alone, in every mode.

use ciphervec_arith::AlignedBytes;
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::search::{
    Owner, QueryOptions, Segment, SegmentDirectory, SegmentParser, SegmentSource, ServerIndex,
};
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision, Scheme};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

const D: usize = 24;
const KINDS: [(Mode, Precision, Scheme); 7] = [
    (Mode::Open, Precision::Standard, Scheme::Lattice),
    (Mode::SealedIndex, Precision::Standard, Scheme::Lattice),
    (Mode::SealedIndex, Precision::Small, Scheme::Lattice),
    (Mode::SealedIndex, Precision::Wide, Scheme::Lattice),
    (Mode::SealedQuery, Precision::Standard, Scheme::Lattice),
    (Mode::Sealed, Precision::Standard, Scheme::Lattice),
    (Mode::SealedIndex, Precision::Standard, Scheme::ElGamal),
];

fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let numbers = (0..count).map(|_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    });
    numbers.collect()
}

struct Both {
    owner: Owner,
    server: ServerIndex,
    directory: SegmentDirectory,
    segments: Vec<(AlignedBytes, FilterTags)>,
}

/// Three segments; in the first, every third row carries the tag, in the second none, in the third all.
fn both((mode, precision, scheme): (Mode, Precision, Scheme)) -> Both {
    let keys = if mode == Mode::Open { Keys::public() } else { Keys::generate().unwrap() };
    let spec = IndexSpec::new("faces", D as u32, Metric::Cosine, mode, precision)
        .and_then(|spec| spec.with_scheme(scheme, None))
        .unwrap();
    let owner = Owner::new(&keys, spec.clone()).unwrap();
    let mut server = ServerIndex::new(spec.clone()).unwrap();
    if scheme.is_additive() {
        owner.generate_key_pair().unwrap();
        server.set_evaluation_keys(&owner.public_key().unwrap()).unwrap();
    } else if let Some(evaluation) = keys.evaluation(&spec, 0).unwrap() {
        server.set_evaluation_keys(&evaluation.to_bytes()).unwrap();
    }
    let mut both = Both { owner, server, directory: SegmentDirectory::new(), segments: Vec::new() };
    let tag = both.owner.filter_tag("colour", b"red");
    for (number, (rows, every)) in [(70, 3), (9, usize::MAX), (1, 1)].into_iter().enumerate() {
        let ids: Vec<Id> =
            (0..rows as i64).map(|row| Id::Number(row + 1000 * number as i64)).collect();
        let sealed = both.owner.seal(&random(rows * D, number as u64), &ids).unwrap();
        let mut tags = FilterTags::new();
        for row in 0..rows {
            let carried = if (row + 1) % every == 0 { vec![tag] } else { vec![] };
            tags.push(&carried).unwrap();
        }
        both.directory.add(&both.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        both.server.add_tagged(sealed.segment.clone(), tags.clone()).unwrap();
        both.segments.push((sealed.segment, tags));
    }
    both
}

static ALL: LazyLock<Vec<Both>> = LazyLock::new(|| KINDS.map(both).into());

/// Answers of an additively homomorphic scheme are made with fresh noise: they are compared once opened.
fn comparable(both: &Both, query: &ciphervec_owner::search::Query, answer: &[u8]) -> Vec<u8> {
    if !both.owner.spec().scheme().is_additive() {
        return answer.to_vec();
    }
    let ask = ciphervec_owner::search::Retrieval::TopK(9);
    let opened = both.owner.open(query, answer, &both.directory, ask).unwrap();
    format!("{:?}", opened.hits).into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn together_is_as_alone(
        kind in 0..KINDS.len(),
        asked in proptest::collection::vec((0usize..4, any::<bool>(), any::<bool>(), any::<u64>()), 1..7),
    ) {
        let both = &ALL[kind];
        let tag = both.owner.filter_tag("colour", b"red");
        let queries: Vec<_> = asked
            .iter()
            .map(|(count, filtered, _, seed)| {
                let tags: &[_] = if *filtered { &[tag] } else { &[] };
                both.owner.query(&random((count + 1) * D, *seed), &both.directory, QueryOptions { tags, ..QueryOptions::default() }).unwrap()
            })
            .collect();
        let bytes: Vec<Vec<u8>> = queries
            .iter()
            .zip(&asked)
            .map(|(query, (_, _, broken, seed))| {
                let mut bytes = query.to_bytes().to_vec();
                if *broken {
                    let at = *seed as usize % bytes.len();
                    bytes[at] ^= 1;
                }
                bytes
            })
            .collect();
        let slices: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let together = both.server.evaluate_many(&slices);
        prop_assert_eq!(together.len(), slices.len());
        for (((answer, bytes), query), (_, _, broken, _)) in
            together.into_iter().zip(slices).zip(&queries).zip(&asked)
        {
            match (answer, both.server.evaluate(bytes)) {
                (Ok(many), Ok(one)) => {
                    prop_assert!(!broken);
                    prop_assert_eq!(comparable(both, query, &many.bytes), comparable(both, query, &one.bytes));
                }
                (Err(many), Err(one)) => {
                    prop_assert!(*broken);
                    prop_assert_eq!(many.to_string(), one.to_string());
                }
                _ => prop_assert!(false, "one of the two was refused"),
            }
        }
    }
}

/// Rows that lie elsewhere, and at times cannot be read.
struct Elsewhere {
    bytes: AlignedBytes,
    loads: AtomicUsize,
    broken: bool,
}

impl SegmentSource for Elsewhere {
    fn segment(&self, index: &dyn SegmentParser) -> ciphervec_owner::Result<Arc<Segment>> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        if self.broken {
            return Err(Error::NoPublicKey);
        }
        index.parse_checked(self.bytes.clone()).map(Arc::new)
    }

    fn load(&self, _index: &dyn SegmentParser) {}

    fn is_resident(&self) -> bool {
        false
    }
}

#[test]
fn rows_from_elsewhere_give_the_same_answers_and_one_pass_loads_them_once() {
    for (both, kind) in ALL.iter().zip(KINDS) {
        let mut server = both.server.clone();
        let heads: Vec<_> = server.heads().copied().collect();
        let mut sources = Vec::new();
        for (head, (bytes, tags)) in heads.iter().zip(&both.segments) {
            let loads = AtomicUsize::new(0);
            let source = Arc::new(Elsewhere { bytes: bytes.clone(), loads, broken: false });
            assert!(server.remove(head.id));
            server.add_stored(*head, bytes.len(), tags.clone(), source.clone()).unwrap();
            sources.push(source);
        }
        assert_eq!(
            (server.resident(), server.bytes(), server.rows()),
            (0, both.server.bytes(), 80)
        );
        let queries = [3, 4].map(|seed| {
            both.owner.query(&random(D, seed), &both.directory, QueryOptions::default()).unwrap()
        });
        let slices = queries.each_ref().map(|query| query.to_bytes());
        for ((answer, bytes), query) in
            server.evaluate_many(&slices).into_iter().zip(slices).zip(&queries)
        {
            let alone = both.server.evaluate(bytes).unwrap();
            let (many, one) = (answer.unwrap().bytes, alone.bytes);
            assert_eq!(comparable(both, query, &many), comparable(both, query, &one), "{kind:?}");
        }
        let plain = !kind.0.encrypts_queries();
        for source in sources {
            assert_eq!(source.loads.load(Ordering::Relaxed), if plain { 1 } else { 2 }, "{kind:?}");
        }
        let (bytes, tags) = both.segments[1].clone();
        let broken = Elsewhere { bytes: bytes.clone(), loads: AtomicUsize::new(0), broken: true };
        server.remove(heads[1].id);
        server.add_stored(heads[1], bytes.len(), tags, Arc::new(broken)).unwrap();
        assert!(server.evaluate_many(&slices).iter().all(Result::is_err));
        assert!(server.evaluate(slices[0]).is_err());
    }
}
