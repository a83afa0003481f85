//! The whole pipeline through bytes, every mode and metric, against float64.

use ciphervec_arith::AlignedBytes;
use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::{self, Header, Kind};
use ciphervec_owner::search::{
    AnswerFormat, OpenOptions, Owner, QueryOptions, Retrieval, RotationState, SegmentDirectory,
    ServerIndex,
};
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision};

pub const MODES: [(Mode, Precision); 6] = [
    (Mode::Open, Precision::Standard),
    (Mode::SealedIndex, Precision::Standard),
    (Mode::SealedIndex, Precision::Small),
    (Mode::SealedIndex, Precision::Wide),
    (Mode::SealedQuery, Precision::Standard),
    (Mode::Sealed, Precision::Standard),
];

pub fn random(rows: usize, dimension: usize, seed: u8) -> Vec<f32> {
    let mut words = vec![0u64; rows * dimension];
    Stream::new(&[seed; 32], 0).uniform_bits(24, &mut words);
    words.iter().map(|&word| word as f32 / 8_388_608.0 - 1.0).collect()
}

pub fn signs(rows: usize, dimension: usize, seed: u8) -> Vec<f32> {
    random(rows, dimension, seed).iter().map(|x| x.signum()).collect()
}

fn truth(metric: Metric, x: &[f32], q: &[f32]) -> f64 {
    let pairs = || x.iter().zip(q).map(|(&x, &q)| (f64::from(x), f64::from(q)));
    let dot: f64 = pairs().map(|(x, q)| x * q).sum();
    let norm = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    match metric {
        Metric::Cosine => dot / norm(x) / norm(q),
        Metric::InnerProduct => dot,
        Metric::L2 => pairs().map(|(x, q)| (x - q).powi(2)).sum(),
        Metric::Hamming => pairs().filter(|(x, q)| x != q).count() as f64,
    }
}

struct Both {
    owner: Owner,
    server: ServerIndex,
    directory: SegmentDirectory,
    next: i64,
}

impl Both {
    fn new(
        keys: &Keys,
        metric: Metric,
        mode: Mode,
        precision: Precision,
        dimension: usize,
    ) -> Self {
        let spec = IndexSpec::new("faces", dimension as u32, metric, mode, precision).unwrap();
        let spec = IndexSpec::from_bytes(&spec.to_bytes()).unwrap();
        let mut server = ServerIndex::new(spec.clone()).unwrap();
        if let Some(evaluation) = keys.evaluation(&spec, 3).unwrap() {
            assert!(evaluation.to_bytes().len() <= 1_500_000);
            server.set_evaluation_keys(&evaluation.to_bytes()).unwrap();
        }
        Both {
            owner: Owner::new(keys, spec).unwrap(),
            server,
            directory: SegmentDirectory::new(),
            next: 0,
        }
    }

    fn add(&mut self, rows: &[f32]) {
        let count = (rows.len() / self.owner.spec().dimension()) as i64;
        let ids: Vec<Id> = (self.next..self.next + count).map(Id::Number).collect();
        self.next += count;
        let sealed = self.owner.seal(rows, &ids).unwrap();
        self.directory.add(&self.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        assert_eq!(self.server.add(sealed.segment).unwrap(), sealed.id);
    }

    fn ask(&self, queries: &[f32], ask: Retrieval) -> Vec<Vec<(Id, f64)>> {
        let query = self
            .owner
            .query(queries, &self.directory, QueryOptions { epoch: 3, ..QueryOptions::default() })
            .unwrap();
        let answer = self.server.evaluate(query.to_bytes()).unwrap();
        let opened = self.owner.open(&query, &answer.bytes, &self.directory, ask).unwrap();
        opened
            .hits
            .into_iter()
            .map(|hits| hits.into_iter().map(|hit| (hit.id, hit.value)).collect())
            .collect()
    }
}

#[test]
fn every_mode_and_metric_ranks_like_float64() {
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES {
        for metric in [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming] {
            for dimension in [1usize, 5, 96, 300] {
                let make = if metric == Metric::Hamming { signs } else { random };
                let mut both = Both::new(&keys, metric, mode, precision, dimension);
                // Segments of several sizes, so that ring segments of several levels answer one query.
                let rows = make(1 + 7 + 900, dimension, 1);
                let (first, rest) = rows.split_at(dimension);
                let (second, third) = rest.split_at(7 * dimension);
                [first, second, third].iter().for_each(|part| both.add(part));
                let queries = make(3, dimension, 2);
                let step = match (mode, precision) {
                    (Mode::Open, _) => 1e-6,
                    (_, Precision::Small) => 2.2e-3,
                    _ => 2e-4,
                };
                for (query, hits) in
                    queries.chunks_exact(dimension).zip(both.ask(&queries, Retrieval::TopK(908)))
                {
                    assert_eq!(hits.len(), 908);
                    let norm =
                        |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
                    for (id, value) in &hits {
                        let Id::Number(id) = id else { panic!("numbers were given") };
                        let row = &rows[*id as usize * dimension..][..dimension];
                        let truth = truth(metric, row, query);
                        let tolerance = match metric {
                            Metric::Cosine => step,
                            Metric::InnerProduct | Metric::L2 => {
                                2.0 * step * norm(row) * norm(query) + 1e-6
                            }
                            Metric::Hamming => 0.0,
                        };
                        assert!(
                            (value - truth).abs() <= tolerance,
                            "{mode:?} {precision:?} {metric:?} d={dimension}: {value} {truth}"
                        );
                    }
                    let keys: Vec<f64> = hits
                        .iter()
                        .map(|(_, v)| if metric.higher_is_closer() { -v } else { *v })
                        .collect();
                    // Ranked in full precision, reported rounded: sorted up to one rounding step.
                    let scale = keys.iter().fold(1.0f64, |a, b| a.max(b.abs()));
                    assert!(keys.windows(2).all(|pair| pair[0] <= pair[1] + 4.0 * step * scale));
                }
                let few = both.ask(&queries, Retrieval::TopK(10));
                assert!(few.iter().all(|hits| hits.len() == 10));
            }
        }
    }
}

#[test]
fn a_threshold_returns_all_within() {
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES {
        let mut both = Both::new(&keys, Metric::Hamming, mode, precision, 64);
        let rows = signs(500, 64, 1);
        both.add(&rows);
        let queries = signs(2, 64, 2);
        for (query, hits) in
            queries.chunks_exact(64).zip(both.ask(&queries, Retrieval::Range(30.0)))
        {
            let expected = rows
                .chunks_exact(64)
                .filter(|row| truth(Metric::Hamming, row, query) <= 30.0)
                .count();
            assert_eq!(hits.len(), expected);
            assert!(expected > 50);
        }
    }
}

#[test]
fn recall_against_float64_is_complete() {
    let keys = Keys::generate().unwrap();
    let (rows, queries) = (random(20_000, 64, 1), random(20, 64, 2));
    for (mode, precision) in MODES {
        let mut both = Both::new(&keys, Metric::Cosine, mode, precision, 64);
        rows.chunks(8000 * 64).for_each(|part| both.add(part));
        let mut found = 0;
        for (query, hits) in queries.chunks_exact(64).zip(both.ask(&queries, Retrieval::TopK(10))) {
            let mut order: Vec<(f64, i64)> = rows
                .chunks_exact(64)
                .enumerate()
                .map(|(id, row)| (-truth(Metric::Cosine, row, query), id as i64))
                .collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0));
            found += hits
                .iter()
                .filter(|(id, _)| order[..10].iter().any(|(_, best)| *id == Id::Number(*best)))
                .count();
        }
        let wanted = if precision == Precision::Small { 195 } else { 199 };
        assert!(found >= wanted, "{mode:?} {precision:?}: {found} of 200");
    }
}

/// What is done ahead changes nothing, whichever levels it was done for.
#[test]
fn a_query_may_be_prepared_while_its_server_works() {
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES {
        let mut both = Both::new(&keys, Metric::Cosine, mode, precision, 16);
        both.add(&random(3000, 16, 1));
        both.add(&random(5, 16, 2));
        let levels = both.directory.levels(None);
        assert!(levels.len() == 2 || !mode.encrypts_queries(), "{levels:?}");
        let question = random(2, 16, 9);
        for ahead in [&levels[..], &levels[..1], &[]] {
            let options = QueryOptions { epoch: 3, ..QueryOptions::default() };
            let query = both.owner.query(&question, &both.directory, options).unwrap();
            let answer = both.server.evaluate(query.to_bytes()).unwrap().bytes;
            let open = |answer: &[u8]| {
                both.owner.open(&query, answer, &both.directory, Retrieval::TopK(9))
            };
            let before = open(&answer).unwrap();
            both.owner.prepare(&query, ahead).unwrap();
            both.owner.prepare(&query, &levels).unwrap();
            let after = open(&answer).unwrap();
            assert_eq!(before.hits, after.hits, "{mode:?} {ahead:?}");
            assert_eq!(before.checked, after.checked);
        }
    }
}

#[test]
fn deleted_and_filtered_rows_stay_out() {
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES {
        let mut both = Both::new(&keys, Metric::Cosine, mode, precision, 16);
        let rows = random(50, 16, 1);
        both.add(&rows);
        let best = both.ask(&rows[..16], Retrieval::TopK(1))[0][0].0.clone();
        assert_eq!(best, Id::Number(0));
        assert!(both.directory.mark_deleted(&best).is_some());
        assert_eq!(both.directory.len(), 49);
        assert!(both.ask(&rows[..16], Retrieval::TopK(50))[0].iter().all(|(id, _)| *id != best));
        let allowed = [Id::Number(3), Id::Number(9), Id::Number(0)];
        let selection = both.directory.select(&allowed);
        let query = both
            .owner
            .query(
                &rows[..16],
                &both.directory,
                QueryOptions { epoch: 3, ..QueryOptions::default() },
            )
            .unwrap();
        let answer = both.server.evaluate(query.to_bytes()).unwrap();
        let opened = both
            .owner
            .open(
                &query,
                &answer.bytes,
                &both.directory,
                OpenOptions {
                    selection: Some(&selection),
                    ..OpenOptions::new(Retrieval::TopK(50))
                },
            )
            .unwrap();
        let mut ids: Vec<&Id> = opened.hits[0].iter().map(|hit| &hit.id).collect();
        ids.sort();
        assert_eq!(ids, [&Id::Number(3), &Id::Number(9)]);
    }
}

#[test]
fn server_side_filters_choose_rows_by_tag() {
    use ciphervec_owner::protect::filter::FilterTags;
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES {
        let mut both = Both::new(&keys, Metric::Cosine, mode, precision, 16);
        let (red, blue) =
            (both.owner.filter_tag("colour", b"red"), both.owner.filter_tag("colour", b"blue"));
        assert_ne!(red, blue);
        let rows = random(40, 16, 1);
        let ids: Vec<Id> = (0..40).map(Id::Number).collect();
        let sealed = both.owner.seal(&rows, &ids).unwrap();
        let mut tags = FilterTags::new();
        (0..40).for_each(|row| tags.push(&[if row % 4 == 0 { red } else { blue }]).unwrap());
        both.directory.add(&both.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        both.server.add_tagged(sealed.segment, tags).unwrap();
        both.next = 40;
        both.add(&random(5, 16, 3));
        let query = both
            .owner
            .query(
                &rows[..16],
                &both.directory,
                QueryOptions { epoch: 3, tags: &[red], ..QueryOptions::default() },
            )
            .unwrap();
        let answer = both.server.evaluate(query.to_bytes()).unwrap();
        let opened =
            both.owner.open(&query, &answer.bytes, &both.directory, Retrieval::TopK(50)).unwrap();
        assert_eq!(opened.hits[0].len(), 10);
        assert!(opened.hits[0].iter().all(|hit| matches!(hit.id, Id::Number(id) if id % 4 == 0)));
    }
}

fn framed(version: u16, header: Header, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&[0; wire::HEADER_LEN][..], payload].concat();
    header.seal_version(version, &mut frame);
    frame
}

/// The same question about all segments, which a frame of another kind and without names asks.
fn about_all(routed: &[u8]) -> Vec<u8> {
    let (version, header, payload) = wire::open_version(Kind::RoutedQuery, 2, routed).unwrap();
    let (head, rest) = payload.split_at(19);
    let named = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
    let payload = [head, &rest[4 + 16 * named..]].concat();
    framed(version, Header { kind: Kind::Query, ..header }, &payload)
}

#[test]
fn a_query_that_names_segments_is_answered_from_those_as_it_would_be_from_all() {
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES {
        let mut both = Both::new(&keys, Metric::Cosine, mode, precision, 33);
        (1..=4).for_each(|seed| both.add(&random(30, 33, seed)));
        let ids: Vec<_> = both.directory.segments().map(|(id, ..)| id).collect();
        for named in [&ids[1..2], &ids[2..], &ids[..]] {
            let named: Vec<_> = named.iter().rev().copied().collect();
            let question = random(2, 33, 9);
            let query = both
                .owner
                .query(
                    &question,
                    &both.directory,
                    QueryOptions { epoch: 3, segments: Some(&named), ..QueryOptions::default() },
                )
                .unwrap();
            let answer = both.server.evaluate(query.to_bytes()).unwrap().bytes;
            let whole = both.server.evaluate(&about_all(query.to_bytes())).unwrap().bytes;
            let at = |bytes: &[u8], id: SegmentId| bytes.windows(16).position(|part| part == id.0);
            for id in &ids {
                assert_eq!(at(&answer, *id).is_some(), named.contains(id));
            }
            // Parts follow in the order of the segments; each is found in the whole answer, bit for bit.
            let mut starts: Vec<_> = named.iter().map(|id| at(&answer, *id).unwrap()).collect();
            starts.sort_unstable();
            let ends = starts[1..].iter().copied().chain([answer.len()]);
            for (start, end) in starts.iter().zip(ends) {
                let part = &answer[*start..end];
                assert!(whole.windows(part.len()).any(|other| other == part), "{mode:?}");
            }
            let ask = Retrieval::TopK(200);
            for format in [AnswerFormat::First, AnswerFormat::Short] {
                let asked = Some(&named[..]);
                let short = both
                    .owner
                    .query(
                        &question,
                        &both.directory,
                        QueryOptions {
                            epoch: 3,
                            segments: asked,
                            format,
                            ..QueryOptions::default()
                        },
                    )
                    .unwrap();
                let answer = both.server.evaluate(short.to_bytes()).unwrap().bytes;
                let opened = both.owner.open(&short, &answer, &both.directory, ask).unwrap();
                assert_eq!(opened.hits[0].len(), 30 * named.len(), "{mode:?} {format:?}");
            }
            let opened = both.owner.open(&query, &answer, &both.directory, ask).unwrap();
            let mut rows: Vec<_> = opened.hits[0].iter().map(|hit| hit.id.clone()).collect();
            rows.sort();
            let expected = both.directory.records().filter(|(_, id, _)| named.contains(id));
            assert_eq!(rows, expected.map(|(name, ..)| name.clone()).collect::<Vec<_>>());
            if named.len() < ids.len() {
                let more = both.owner.open(&query, &whole, &both.directory, ask).err();
                assert!(more.is_some(), "segments that were not asked about came");
            }
            if named.len() > 1 {
                let mut other = both.server.clone();
                assert!(other.remove(named[0]));
                let less = other.evaluate(query.to_bytes()).unwrap().bytes;
                assert!(both.owner.open(&query, &less, &both.directory, ask).is_err());
            }
        }
        let twice = [ids[0], ids[0]];
        for wrong in [&twice[..], &[SegmentId([7; 16])]] {
            let question = random(1, 33, 9);
            let made = both.owner.query(
                &question,
                &both.directory,
                QueryOptions { epoch: 3, segments: Some(wrong), ..QueryOptions::default() },
            );
            assert!(made.is_err());
        }
        let good = both.owner.query(
            &random(1, 33, 9),
            &both.directory,
            QueryOptions { epoch: 3, segments: Some(&ids[..2]), ..QueryOptions::default() },
        );
        let good = good.unwrap();
        let (version, header, payload) =
            wire::open_version(Kind::RoutedQuery, 2, good.to_bytes()).unwrap();
        let mut repeated = payload.to_vec();
        repeated.copy_within(23..39, 39);
        let endless = [&payload[..19], &[255; 4], &payload[23..]].concat();
        for bytes in [repeated, endless] {
            assert!(both.server.evaluate(&framed(version, header, &bytes)).is_err());
        }
    }
}

/// Keys of a session are not installed: who has them at hand gets answers with them, as long as the owner's keys are the same.
#[test]
fn a_session_is_answered_with_its_keys_at_hand() {
    let (keys, other) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let session = 1u32 << 31 | 9;
    for mode in [Mode::Sealed, Mode::SealedQuery] {
        let make = |keys: &Keys| {
            let mut both = Both::new(keys, Metric::Cosine, mode, Precision::Standard, 16);
            both.add(&random(300, 16, 1));
            both
        };
        let (both, stranger) = (make(&keys), make(&other));
        let frame = |owner: &Owner, epoch| owner.evaluation(epoch).unwrap().unwrap().to_bytes();
        let bytes = frame(&both.owner, session);
        assert_eq!(bytes, frame(&both.owner, session));
        let held = both.server.session_keys(&bytes).unwrap();
        assert_eq!((held.epoch(), held.byte_len()), (session, 7 * 4 * 4096 * 8));
        let probe = random(1, 16, 3);
        let query = both
            .owner
            .query(
                &probe,
                &both.directory,
                QueryOptions { epoch: session, ..QueryOptions::default() },
            )
            .unwrap();
        assert_eq!(both.server.session_of(query.to_bytes()), Some(session));
        let missing =
            |answer| matches!(answer, Err(Error::NoEvaluationKeys { epoch }) if epoch == session);
        assert!(missing(both.server.evaluate(query.to_bytes())));
        let answer = both.server.evaluate_with(query.to_bytes(), &held).unwrap().bytes;
        let ask = Retrieval::TopK(5);
        let opened = both.owner.open(&query, &answer, &both.directory, ask).unwrap();
        let found: Vec<Id> = opened.hits[0].iter().map(|hit| hit.id.clone()).collect();
        let known: Vec<Id> = both.ask(&probe, ask)[0].iter().map(|hit| hit.0.clone()).collect();
        assert_eq!(found[0], known[0]);
        // With these keys the collection's own epochs are answered as well, and nothing was installed.
        let own = both
            .owner
            .query(&probe, &both.directory, QueryOptions { epoch: 3, ..QueryOptions::default() })
            .unwrap();
        assert_eq!(both.server.session_of(own.to_bytes()), None);
        assert!(both.server.evaluate_with(own.to_bytes(), &held).is_ok());
        assert!(missing(both.server.evaluate(query.to_bytes())));
        // Keys of the collection's own epochs, of another owner, of another index, under other masks, damaged.
        assert!(both.server.session_keys(&frame(&both.owner, 4)).is_err());
        assert!(both.server.session_keys(&frame(&stranger.owner, session)).is_err());
        let index = Both::new(&keys, Metric::L2, mode, Precision::Standard, 16);
        assert!(both.server.session_keys(&frame(&index.owner, session)).is_err());
        let state = RotationState { mask_seed: Some([5; 32]), previous: None };
        let masked = Owner::with_rotation(&keys, both.owner.spec().clone(), &state).unwrap();
        assert!(both.server.session_keys(&frame(&masked, session)).is_err());
        assert!(both.server.session_keys(&bytes[..bytes.len() - 1]).is_err());
        // Once the index has the keys of another owner, the session is over.
        let mut rotated = both.server.clone();
        rotated.set_evaluation_keys(&frame(&stranger.owner, 4)).unwrap();
        rotated.forget_epoch(3);
        assert!(missing(rotated.evaluate_with(query.to_bytes(), &held)));
    }
    let plain = Both::new(&keys, Metric::Cosine, Mode::SealedIndex, Precision::Standard, 16);
    assert!(plain.server.session_keys(&[]).is_err());
    let query = plain
        .owner
        .query(
            &random(1, 16, 3),
            &plain.directory,
            QueryOptions { epoch: session, ..QueryOptions::default() },
        )
        .unwrap();
    assert_eq!(plain.server.session_of(query.to_bytes()), None);
}

#[test]
fn wrong_keys_and_foreign_bytes_are_refused_before_any_work() {
    let (keys, other) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    for (mode, precision) in MODES.into_iter().filter(|(mode, _)| *mode != Mode::Open) {
        let mut both = Both::new(&keys, Metric::Cosine, mode, precision, 16);
        both.add(&random(20, 16, 1));
        let stranger = Both::new(&other, Metric::Cosine, mode, precision, 16);
        let sealed = both
            .owner
            .seal(&random(5, 16, 2), &[1, 2, 3, 4, 5].map(|id| Id::Number(id + 100)))
            .unwrap();
        assert!(stranger.owner.unseal(&sealed.segment, &sealed.sidecar).is_err());
        let mut directory = SegmentDirectory::new();
        assert!(directory.add(&stranger.owner, sealed.id, &sealed.sidecar, &[]).is_err());
        let query = stranger
            .owner
            .query(
                &random(1, 16, 3),
                &both.directory,
                QueryOptions { epoch: 3, ..QueryOptions::default() },
            )
            .unwrap();
        if mode.encrypts_queries() {
            let refused = both.server.evaluate(query.to_bytes());
            assert!(matches!(
                refused,
                Err(Error::Scheme(ciphervec_he_secret::Error::WrongKey { .. }))
            ));
            let late = both
                .owner
                .query(
                    &random(1, 16, 3),
                    &both.directory,
                    QueryOptions { epoch: 4, ..QueryOptions::default() },
                )
                .unwrap();
            assert!(matches!(
                both.server.evaluate(late.to_bytes()),
                Err(Error::NoEvaluationKeys { epoch: 4 })
            ));
        }
        // Another index under the same keys.
        let foreign = Both::new(&keys, Metric::L2, mode, precision, 16);
        let query = foreign
            .owner
            .query(
                &random(1, 16, 3),
                &foreign.directory,
                QueryOptions { epoch: 3, ..QueryOptions::default() },
            )
            .unwrap();
        assert!(matches!(both.server.evaluate(query.to_bytes()), Err(Error::OtherIndex { .. })));
        assert!(both.server.add(AlignedBytes::from_slice(&sealed.segment)).is_ok());
        assert!(matches!(both.server.add(sealed.segment), Err(Error::DuplicateSegment(_))));
        // An answer that leaves out a segment the owner knows of, or names one it does not.
        let query = both
            .owner
            .query(
                &random(1, 16, 3),
                &both.directory,
                QueryOptions { epoch: 3, ..QueryOptions::default() },
            )
            .unwrap();
        let answer = both.server.evaluate(query.to_bytes()).unwrap();
        let opened = both.owner.open(&query, &answer.bytes, &both.directory, Retrieval::TopK(1));
        assert!(matches!(opened, Err(Error::Directory { .. })));
    }
}

#[test]
fn an_empty_index_answers_with_nothing() {
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES {
        let both = Both::new(&keys, Metric::Cosine, mode, precision, 16);
        assert_eq!(both.ask(&random(2, 16, 1), Retrieval::TopK(5)), vec![vec![], vec![]]);
        assert_eq!(both.ask(&[], Retrieval::TopK(5)), Vec::<Vec<(Id, f64)>>::new());
        assert!(both.owner.seal(&[], &[]).is_err());
    }
}
