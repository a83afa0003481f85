//! Indexes under the additively homomorphic schemes, both halves: scores against float64, what is refused, what is bound.

use ciphervec_arith::AlignedBytes;
use ciphervec_he_secret::additive::Decrypt;
use ciphervec_he_secret::{Error as SchemeError, elgamal, paillier};
use ciphervec_owner::search::{
    Owner, QueryOptions, Retrieval, SealedSegment, SegmentDirectory, ServerIndex,
};
use ciphervec_owner::similarity::additive::EncryptedVectors;
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision, Scheme};

const D: usize = 24;
const METRICS: [Metric; 4] = [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming];

fn rows(metric: Metric, count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let numbers = (0..count * D).map(|_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    });
    if metric == Metric::Hamming {
        numbers.map(|x| if x < 0.0 { -1.0 } else { 1.0 }).collect()
    } else {
        numbers.collect()
    }
}

fn truth(metric: Metric, row: &[f32], query: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
    };
    match metric {
        Metric::Cosine => dot(row, query) / (dot(row, row) * dot(query, query)).sqrt(),
        Metric::InnerProduct => dot(row, query),
        Metric::L2 => dot(row, row) + dot(query, query) - 2.0 * dot(row, query),
        Metric::Hamming => row.iter().zip(query).filter(|(x, y)| x != y).count() as f64,
    }
}

struct Both {
    owner: Owner,
    server: ServerIndex,
    directory: SegmentDirectory,
    next: i64,
}

impl Both {
    fn new(keys: &Keys, spec: IndexSpec) -> Self {
        let spec = IndexSpec::from_bytes(&spec.to_bytes()).unwrap();
        let owner = Owner::new(keys, spec.clone()).unwrap();
        owner.generate_key_pair().unwrap();
        let mut server = ServerIndex::new(spec).unwrap();
        assert_eq!(server.set_evaluation_keys(&owner.public_key().unwrap()).unwrap(), 0);
        Both { owner, server, directory: SegmentDirectory::new(), next: 0 }
    }

    fn seal(&mut self, rows: &[f32]) -> SealedSegment {
        let count = (rows.len() / D) as i64;
        let ids: Vec<Id> = (self.next..self.next + count).map(Id::Number).collect();
        self.next += count;
        self.owner.seal(rows, &ids).unwrap()
    }

    fn add(&mut self, rows: &[f32]) {
        let sealed = self.seal(rows);
        self.directory.add(&self.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        let held = self.server.add(sealed.segment.clone()).unwrap();
        assert_eq!(held, sealed.id);
        // What is held in the form that is computed on is written as it came.
        let segment = self.server.segments().last().unwrap();
        assert_eq!(*segment.to_bytes(self.server.spec()).unwrap(), *sealed.segment);
        assert_eq!(segment.byte_len(), sealed.segment.len());
        let back = self.owner.unseal(&sealed.segment, &sealed.sidecar).unwrap();
        let last = rows.len() / D - 1;
        let rows_of = |wanted: Option<&[usize]>| {
            self.owner.unseal_rows(&sealed.segment, wanted, &self.directory).unwrap()
        };
        let (some, all) = (rows_of(Some(&[last, 0])), rows_of(None));
        assert_eq!(some, [&all[last * D..], &all[..D]].concat());
        for (row, back) in rows.chunks_exact(D).zip(back.chunks_exact(D)) {
            let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
            let scale = if self.owner.spec().metric() == Metric::Cosine { norm } else { 1.0 };
            for (x, y) in row.iter().zip(back) {
                assert!((x - y * scale).abs() <= 1.3e-4 * norm, "{x} {y}");
            }
        }
    }

    fn ask(&self, queries: &[f32], ask: Retrieval) -> Vec<Vec<(i64, f64)>> {
        let query = self.owner.query(queries, &self.directory, QueryOptions::default()).unwrap();
        let answer = self.server.evaluate(query.to_bytes()).unwrap();
        let opened = self.owner.open(&query, &answer.bytes, &self.directory, ask).unwrap();
        let number = |id: &Id| if let Id::Number(number) = id { *number } else { -1 };
        opened
            .hits
            .iter()
            .map(|hits| hits.iter().map(|hit| (number(&hit.id), hit.value)).collect())
            .collect()
    }
}

fn spec(scheme: Scheme, metric: Metric, precision: Precision) -> IndexSpec {
    let bits = (scheme.is_additive() && scheme != Scheme::ElGamal).then_some(2048);
    IndexSpec::new("faces", D as u32, metric, Mode::SealedIndex, precision)
        .unwrap()
        .with_scheme(scheme, bits)
        .unwrap()
}

/// One row alone, a few, and blocks of lanes with a last one that is not full, in one index.
fn ranks_like_float64(scheme: Scheme, precision: Precision, cosine_error: f64) {
    let keys = Keys::generate().unwrap();
    for metric in METRICS {
        let mut both = Both::new(&keys, spec(scheme, metric, precision));
        let all = rows(metric, 1 + 2 + 70, 1);
        let (first, rest) = all.split_at(D);
        let (second, third) = rest.split_at(2 * D);
        [first, second, third].iter().for_each(|part| both.add(part));
        let queries = rows(metric, 2, 2);
        let found = both.ask(&queries, Retrieval::TopK(73));
        for (query, hits) in queries.chunks_exact(D).zip(found) {
            assert_eq!(hits.len(), 73);
            for &(id, value) in &hits {
                let row = &all[id as usize * D..][..D];
                let norms = (truth(Metric::InnerProduct, row, row)
                    * truth(Metric::InnerProduct, query, query))
                .sqrt();
                let tolerance = match metric {
                    Metric::Cosine => cosine_error,
                    Metric::InnerProduct => cosine_error * norms + 1e-6,
                    Metric::L2 => 2.0 * cosine_error * norms + 1e-5,
                    Metric::Hamming => 0.0,
                };
                let exact = truth(metric, row, query);
                assert!(
                    (value - exact).abs() <= tolerance,
                    "{scheme:?} {metric:?}: {value} {exact}"
                );
            }
            let closer = |a: f64, b: f64| if metric.higher_is_closer() { a >= b } else { a <= b };
            assert!(hits.windows(2).all(|pair| closer(pair[0].1, pair[1].1)));
        }
    }
}

#[test]
fn paillier_ranks_like_float64() {
    ranks_like_float64(Scheme::Paillier, Precision::Standard, 2.2e-4);
    // Rows and queries are float32: their own rounding is what is left.
    ranks_like_float64(Scheme::Paillier, Precision::Wide, 1e-12);
}

#[test]
fn damgard_jurik_and_okamoto_uchiyama_rank_like_float64() {
    ranks_like_float64(Scheme::DamgardJurik, Precision::Standard, 2.2e-4);
    ranks_like_float64(Scheme::OkamotoUchiyama, Precision::Standard, 2.2e-4);
}

#[test]
fn elgamal_ranks_like_float64() {
    ranks_like_float64(Scheme::ElGamal, Precision::Small, 1.3e-3);
}

#[test]
fn a_few_rows_are_small_and_many_are_dense() {
    let mut both = Both::new(
        &Keys::generate().unwrap(),
        spec(Scheme::Paillier, Metric::Cosine, Precision::Standard),
    );
    let bytes = |rows: usize, both: &mut Both| both.seal(&vec![0.5; rows * D]).segment.len();
    // 24 coordinates fit in one ciphertext of 512 bytes; 24 ciphertexts of lanes hold 63 rows.
    let (one, three, four, block) =
        (bytes(1, &mut both), bytes(3, &mut both), bytes(4, &mut both), bytes(63, &mut both));
    assert!((512..900).contains(&one), "{one}");
    assert!((3 * 512..3 * 512 + 400).contains(&three), "{three}");
    assert_eq!(four, block);
    assert!((D * 512..D * 512 + 400).contains(&block), "{block}");
}

#[test]
fn the_key_pair_is_bound_to_its_index_and_its_owner() {
    let (keys, other) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let described = spec(Scheme::ElGamal, Metric::Cosine, Precision::Small);
    let mut both = Both::new(&keys, described.clone());
    both.add(&rows(Metric::Cosine, 3, 1));
    let sealed = both.owner.sealed_key_pair().unwrap();
    assert_ne!(sealed, both.owner.sealed_key_pair().unwrap(), "a nonce is used once");

    let again = Owner::new(&keys, described.clone()).unwrap();
    assert!(matches!(again.public_key(), Err(Error::NoKeyPair)));
    assert!(matches!(again.seal(&[1.0; D], &[Id::Number(9)]), Err(Error::NoKeyPair)));
    again.open_key_pair(&sealed).unwrap();
    assert_eq!(again.public_key().unwrap(), both.owner.public_key().unwrap());
    assert!(matches!(again.open_key_pair(&sealed), Err(Error::KeyPairHeld)));
    assert!(matches!(again.generate_key_pair(), Err(Error::KeyPairHeld)));

    let unauthentic = |keys: &Keys, spec: IndexSpec, sealed: &[u8]| {
        let refused = Owner::new(keys, spec).unwrap().open_key_pair(sealed);
        assert!(matches!(refused, Err(Error::Envelope(_))), "{refused:?}");
    };
    unauthentic(&other, described.clone(), &sealed);
    unauthentic(&keys, spec(Scheme::ElGamal, Metric::L2, Precision::Small), &sealed);
    for at in [0, 8, 12, 40, sealed.len() - 1] {
        let mut flipped = sealed.clone();
        flipped[at] ^= 1;
        unauthentic(&keys, described.clone(), &flipped);
    }
    unauthentic(&keys, described.clone(), &sealed[..sealed.len() - 1]);
    unauthentic(&keys, described, &[]);

    let plain = IndexSpec::new("faces", 4, Metric::L2, Mode::Sealed, Precision::Standard).unwrap();
    let sealed_scheme = Owner::new(&keys, plain).unwrap();
    assert!(matches!(sealed_scheme.generate_key_pair(), Err(Error::Choice { .. })));
    assert!(matches!(sealed_scheme.sealed_key_pair(), Err(Error::Choice { .. })));
}

#[test]
fn other_keys_and_other_indexes_are_refused() {
    let keys = Keys::generate().unwrap();
    let described = spec(Scheme::ElGamal, Metric::Cosine, Precision::Small);
    let mut both = Both::new(&keys, described.clone());
    both.add(&rows(Metric::Cosine, 4, 1));
    let mut stranger = Both::new(&keys, described.clone());
    stranger.add(&rows(Metric::Cosine, 4, 2));
    let wrong_key = |error: Error| {
        assert!(matches!(error, Error::Scheme(SchemeError::WrongKey { .. })), "{error}");
    };
    let segment = stranger.server.segments().next().unwrap();
    let segment = segment.to_bytes(&described).unwrap().into_owned();
    wrong_key(both.server.add(AlignedBytes::from_slice(&segment)).unwrap_err());
    wrong_key(both.owner.unseal_rows(&segment, None, &stranger.directory).unwrap_err());
    let foreign_key = stranger.owner.public_key().unwrap();
    wrong_key(both.server.set_evaluation_keys(&foreign_key).unwrap_err());
    let question = rows(Metric::Cosine, 1, 3);
    let query =
        stranger.owner.query(&question, &stranger.directory, QueryOptions::default()).unwrap();
    wrong_key(both.server.evaluate(query.to_bytes()).err().unwrap());
    let answer = stranger.server.evaluate(query.to_bytes()).unwrap();
    let query = both.owner.query(&question, &both.directory, QueryOptions::default()).unwrap();
    let opened = both.owner.open(&query, &answer.bytes, &both.directory, Retrieval::TopK(1));
    wrong_key(opened.err().unwrap());

    // No key yet; a key of another scheme; one of another length.
    let mut empty = ServerIndex::new(described.clone()).unwrap();
    assert!(matches!(empty.evaluate(query.to_bytes()), Err(Error::NoPublicKey)));
    let paillier = paillier::generate(2048).unwrap();
    assert!(empty.set_evaluation_keys(&paillier.public().to_bytes()).is_err());
    let longer = spec(Scheme::Paillier, Metric::Cosine, Precision::Small);
    let longer =
        IndexSpec::new("faces", D as u32, Metric::Cosine, Mode::SealedIndex, longer.precision())
            .unwrap()
            .with_scheme(Scheme::Paillier, Some(3072))
            .unwrap();
    let refused =
        ServerIndex::new(longer).unwrap().set_evaluation_keys(&paillier.public().to_bytes());
    assert!(refused.unwrap_err().to_string().contains("another scheme or length"));
    let elgamal = elgamal::SecretKey::generate().unwrap();
    assert!(empty.set_evaluation_keys(&elgamal.public().to_bytes()).is_ok());

    // A query of another number of dimensions, and one that another collection was asked.
    let other = Both::new(&keys, spec(Scheme::ElGamal, Metric::L2, Precision::Small));
    let foreign = other.owner.query(&question, &other.directory, QueryOptions::default()).unwrap();
    assert!(matches!(both.server.evaluate(foreign.to_bytes()), Err(Error::OtherIndex { .. })));
}

/// The vectors inside a segment say what they are; a segment of one index can't carry those of another.
#[test]
fn vectors_of_another_description_are_refused_inside_a_segment() {
    let keys = Keys::generate().unwrap();
    let described = spec(Scheme::ElGamal, Metric::Cosine, Precision::Small);
    let mut both = Both::new(&keys, described.clone());
    let sealed = both.seal(&rows(Metric::Cosine, 2, 1));
    let pair = both.owner.public_key().unwrap();
    let public = elgamal::PublicKey::from_bytes(&pair).unwrap();
    let inner = EncryptedVectors::from_bytes(&public, &sealed.segment[128..]).unwrap();
    let one = inner.select(&[0]).unwrap().to_bytes(&public).unwrap();
    let mut forged = sealed.segment[..128].to_vec();
    forged.extend_from_slice(&one);
    let length = (forged.len() - 64) as u64;
    forged[24..32].copy_from_slice(&length.to_le_bytes());
    let mut hasher = blake3::Hasher::new();
    hasher.update(&forged[..32]).update(&forged[64..]);
    forged[32..64].copy_from_slice(hasher.finalize().as_bytes());
    let refused = both.server.add(AlignedBytes::from_slice(&forged)).unwrap_err().to_string();
    assert!(refused.contains("2 vectors as the index describes them"), "{refused}");
}

/// Of two requests in one pass, the one whose probes are another grid's is refused, and the other one answered.
#[test]
fn probes_of_another_grid_are_refused_alone() {
    let keys = Keys::generate().unwrap();
    let mut both = Both::new(&keys, spec(Scheme::ElGamal, Metric::Cosine, Precision::Small));
    both.add(&rows(Metric::Cosine, 3, 1));
    let question = rows(Metric::Cosine, 1, 3);
    let query = both.owner.query(&question, &both.directory, QueryOptions::default()).unwrap();
    let finer = Both::new(&keys, spec(Scheme::ElGamal, Metric::Cosine, Precision::Standard));
    let other = finer.owner.query(&question, &finer.directory, QueryOptions::default()).unwrap();
    // Index id, count, level, epoch and number of tags stand before the probes.
    let body = 64 + 8 + 4 + 1 + 4 + 2;
    let mut forged = query.to_bytes()[..body].to_vec();
    forged.extend_from_slice(&other.to_bytes()[body..]);
    let length = (forged.len() - 64) as u64;
    forged[24..32].copy_from_slice(&length.to_le_bytes());
    let mut hasher = blake3::Hasher::new();
    hasher.update(&forged[..32]).update(&forged[64..]);
    forged[32..64].copy_from_slice(hasher.finalize().as_bytes());
    let alone = both.server.evaluate(&forged).err().unwrap().to_string();
    assert!(alone.contains("1 probes as the index describes them"), "{alone}");
    let answers = both.server.evaluate_many(&[query.to_bytes(), &forged]);
    assert!(answers[0].is_ok() && answers[1].is_err());
}

#[test]
fn choices_that_do_not_fit_are_refused_with_a_way_out() {
    let plain = |mode| IndexSpec::new("faces", 4, Metric::L2, mode, Precision::Standard).unwrap();
    for mode in [Mode::Open, Mode::SealedQuery, Mode::Sealed] {
        let refused = plain(mode).with_scheme(Scheme::Paillier, None).unwrap_err().to_string();
        assert!(refused.contains("mode must be sealed-index"), "{refused}");
    }
    let index = || plain(Mode::SealedIndex);
    assert_eq!(index().with_scheme(Scheme::Paillier, None).unwrap().bits(), Some(3072));
    assert_eq!(index().with_scheme(Scheme::ElGamal, None).unwrap().bits(), None);
    assert_eq!(index().with_scheme(Scheme::Lattice, None).unwrap(), index());
    for (scheme, bits) in [
        (Scheme::Lattice, 3072),
        (Scheme::ElGamal, 3072),
        (Scheme::Paillier, 1024),
        (Scheme::Paillier, 2049),
        (Scheme::Paillier, 8256),
    ] {
        let refused = index().with_scheme(scheme, Some(bits)).unwrap_err();
        assert!(matches!(refused, Error::Range { .. }), "{refused}");
    }
    let wide = IndexSpec::new("faces", 4, Metric::L2, Mode::SealedIndex, Precision::Wide).unwrap();
    assert!(wide.with_scheme(Scheme::ElGamal, None).is_err());
    // Every choice separates: other bytes, another id, and other secrets.
    let mut ids: Vec<[u8; 8]> = Scheme::ALL
        .into_iter()
        .map(|scheme| index().with_scheme(scheme, None).unwrap().id())
        .chain([index().with_scheme(Scheme::Paillier, Some(2048)).unwrap().id()])
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6);
    let security = index().with_scheme(Scheme::Paillier, None).unwrap().security();
    assert_eq!((security.bits, security.log_modulus, security.post_quantum), (128, 3072, false));
    let security = index().with_scheme(Scheme::OkamotoUchiyama, Some(2048)).unwrap().security();
    assert_eq!(security.bits, 112);
    assert_eq!(index().with_scheme(Scheme::ElGamal, None).unwrap().security().bits, 126);
}

const CHECKED: [(Scheme, Option<u32>); 4] = [
    (Scheme::Paillier, Some(2048)),
    (Scheme::DamgardJurik, Some(2048)),
    (Scheme::OkamotoUchiyama, Some(2048)),
    (Scheme::ElGamal, None),
];

/// An answer to another query, or about other rows, decrypts to scores that somebody might have; so do stored ciphertexts that
/// were exchanged.
#[test]
fn answers_and_rows_are_checked_under_every_scheme() {
    for (scheme, bits) in CHECKED {
        for (metric, precision) in [
            (Metric::Cosine, Precision::Standard),
            (Metric::L2, Precision::Small),
            (Metric::Hamming, Precision::Standard),
            (Metric::Cosine, Precision::Wide),
        ] {
            if scheme == Scheme::ElGamal && precision == Precision::Wide {
                continue;
            }
            let spec = IndexSpec::new("faces", D as u32, metric, Mode::SealedIndex, precision)
                .and_then(|spec| spec.with_scheme(scheme, bits))
                .unwrap();
            let mut both = Both::new(&Keys::generate().unwrap(), spec.clone());
            // One row, a few and many: laid out in different ways.
            for (count, seed) in [(1, 1), (2, 2), (30, 3)] {
                both.add(&rows(metric, count, seed));
            }
            assert_eq!(both.directory.unchecked_blocks(&both.owner), 0);
            let query = |seed| {
                both.owner
                    .query(&rows(metric, 2, seed), &both.directory, QueryOptions::default())
                    .unwrap()
            };
            let (asked, other) = (query(7), query(8));
            let answer = |bytes: &[u8]| both.server.evaluate(bytes).unwrap().bytes;
            let open = |answer: &[u8]| {
                both.owner.open(&asked, answer, &both.directory, Retrieval::TopK(40))
            };
            for _ in 0..4 {
                // Noise beside a score may move it by one.
                let opened = open(&answer(asked.to_bytes())).unwrap();
                assert!(opened.exact && opened.checked && opened.hits[0].len() == 33);
            }
            let opened = open(&answer(other.to_bytes()));
            assert!(matches!(opened, Err(Error::Tampered { .. })), "{scheme:?} {metric:?}");
            // A device's query, and the answer to another.
            if matches!(metric, Metric::Cosine | Metric::Hamming) {
                let foreign = ciphervec_owner::search::Probe::new(
                    spec.clone(),
                    Some(&both.owner.public_key().unwrap()),
                )
                .unwrap();
                let foreign =
                    both.owner.read_query(&foreign.query(&rows(metric, 1, 7)).unwrap()).unwrap();
                let one = both
                    .owner
                    .query(&rows(metric, 1, 8), &both.directory, QueryOptions::default())
                    .unwrap();
                let opened = both.owner.open(
                    &foreign,
                    &answer(one.to_bytes()),
                    &both.directory,
                    Retrieval::TopK(1),
                );
                assert!(matches!(opened, Err(Error::Mismatched { .. })));
            }
            // The same key's ciphertexts of other rows, under the name of a segment.
            let mut another = Both { directory: SegmentDirectory::new(), next: 0, ..both };
            for (count, seed) in [(1, 1), (2, 2), (30, 3)] {
                let honest = another.seal(&rows(metric, count, seed));
                let changed = another.seal(&rows(metric, count, seed + 10));
                another.directory.add(&another.owner, honest.id, &honest.sidecar, &[]).unwrap();
                let mut forged = changed.segment.to_vec();
                forged[64..80].copy_from_slice(&honest.id.0);
                crate::pruned::reseal(&mut forged);
                for wanted in [None, Some(&[0usize][..])] {
                    let open =
                        |bytes: &[u8]| another.owner.unseal_rows(bytes, wanted, &another.directory);
                    assert!(open(&honest.segment).is_ok());
                    assert!(
                        matches!(open(&forged), Err(Error::Tampered { .. })),
                        "{scheme:?} {metric:?} {count}"
                    );
                }
            }
        }
    }
}
