//! Queries whose clusters are folded, through bytes: what they find is what the chosen clusters give to a query that names
//! them; nothing that a server sees says which they are.

use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::{self, Header, Kind};
use ciphervec_owner::search::{
    Fold, Owner, QUERY_VERSION, Query, QueryOptions, Retrieval, SegmentDirectory, ServerIndex,
    merge_responses,
};
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision};
use std::collections::HashMap;

const D: usize = 24;
/// Rows of a cluster: more than a check has one a row of.
const ROWS: usize = 150;

fn random(rows: usize, seed: u8) -> Vec<f32> {
    let mut words = vec![0u64; rows * D];
    Stream::new(&[seed; 32], 0).uniform_bits(24, &mut words);
    words.iter().map(|&word| word as f32 / 8_388_608.0 - 1.0).collect()
}

/// Clusters and one segment beside.
struct Routed {
    owner: Owner,
    server: ServerIndex,
    directory: SegmentDirectory,
    clusters: Vec<SegmentId>,
    beside: SegmentId,
}

impl Routed {
    fn new(mode: Mode, metric: Metric, clusters: usize) -> Self {
        let keys = Keys::from_master([9; 32]);
        let spec = IndexSpec::new("faces", D as u32, metric, mode, Precision::Standard).unwrap();
        let mut server = ServerIndex::new(spec.clone()).unwrap();
        if let Some(evaluation) = keys.evaluation(&spec, 0).unwrap() {
            server.set_evaluation_keys(&evaluation.to_bytes()).unwrap();
        }
        let owner = Owner::new(&keys, spec).unwrap();
        let (mut directory, mut ids) = (SegmentDirectory::new(), 0..);
        let mut add = |rows: usize, seed: usize| {
            let ids: Vec<Id> = ids.by_ref().take(rows).map(Id::Number).collect();
            let sealed = owner.seal(&random(rows, seed as u8), &ids).unwrap();
            directory.add(&owner, sealed.id, &sealed.sidecar, &[]).unwrap();
            server.add(sealed.segment).unwrap()
        };
        let mut made: Vec<SegmentId> = (0..clusters).map(|seed| add(ROWS, seed)).collect();
        let beside = add(20, 99);
        made.sort_by_key(|id| id.0);
        Routed { owner, server, directory, clusters: made, beside }
    }

    fn fold(&self, chosen: &[SegmentId], seed: u8) -> Result<Query, Error> {
        let fold = Some(Fold { clusters: &self.clusters, chosen });
        let segments = Some(core::slice::from_ref(&self.beside));
        let options = QueryOptions { segments, fold, ..QueryOptions::default() };
        self.owner.query(&random(1, seed), &self.directory, options)
    }

    fn named(&self, segments: &[SegmentId], seed: u8) -> Query {
        let options = QueryOptions { segments: Some(segments), ..QueryOptions::default() };
        self.owner.query(&random(1, seed), &self.directory, options).unwrap()
    }

    fn found(&self, query: &Query) -> HashMap<Id, f64> {
        let answer = self.server.evaluate(query.to_bytes()).unwrap();
        let nearly = self.server.answer_len(query.to_bytes()).unwrap();
        assert!(nearly.abs_diff(answer.bytes.len() as u64) < 200, "{nearly}");
        assert!(self.server.working_len(query.to_bytes()).unwrap() > 0);
        let all = Retrieval::TopK(10_000);
        let opened = self.owner.open(query, &answer.bytes, &self.directory, all).unwrap();
        assert!(opened.checked);
        opened.hits[0].iter().map(|hit| (hit.id.clone(), hit.value)).collect()
    }

    fn check(&self, chosen: &[SegmentId], seed: u8) {
        let folded = self.found(&self.fold(chosen, seed).unwrap());
        let named = self.found(&self.named(&[chosen, &[self.beside]].concat(), seed));
        assert_eq!(folded.len(), ROWS * chosen.len() + 20);
        for (id, value) in &folded {
            // Deviations are 10⁻⁵ of a cosine, and rows some 2.8 long.
            assert!((value - named[id]).abs() < 2e-3, "{id:?}: {value} and {}", named[id]);
        }
    }
}

fn framed(header: Header, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; wire::HEADER_LEN];
    frame.extend_from_slice(payload);
    header.seal_version(QUERY_VERSION, &mut frame);
    frame
}

#[test]
fn chosen_clusters_give_what_they_give_where_they_are_named() {
    for (mode, metric, clusters) in [
        (Mode::Sealed, Metric::Cosine, 5),
        (Mode::Sealed, Metric::L2, 1),
        (Mode::SealedQuery, Metric::InnerProduct, 3),
    ] {
        let routed = Routed::new(mode, metric, clusters);
        for first in 0..clusters {
            let probes = 1 + first % clusters.min(3);
            let chosen: Vec<SegmentId> =
                (0..probes).map(|at| routed.clusters[(first + 2 * at) % clusters]).collect();
            routed.check(&chosen, 200 + first as u8);
        }
    }
}

#[test]
fn queries_and_answers_about_any_clusters_are_equally_long_and_begin_alike() {
    let routed = Routed::new(Mode::Sealed, Metric::Cosine, 6);
    let mut first: Option<(Vec<u8>, Vec<u8>)> = None;
    for chosen in [[0, 1], [5, 4], [2, 5]] {
        let query = routed.fold(&chosen.map(|at| routed.clusters[at]), 200).unwrap();
        let answer = routed.server.evaluate(query.to_bytes()).unwrap().bytes;
        let (asked, answered) =
            first.get_or_insert_with(|| (query.to_bytes().to_vec(), answer.clone()));
        assert_eq!((query.to_bytes().len(), answer.len()), (asked.len(), answered.len()));
        // The header but for its checksum; all that is said before the seed.
        let names = 64 + 19 + 4 + 16 * 7;
        assert_eq!(query.to_bytes()[..32], asked[..32]);
        assert_eq!(query.to_bytes()[64..names], asked[64..names]);
        let head = 64 + 8 + 4 + 1 + 4 + 22;
        assert_eq!((&answer[..32], &answer[64..head]), (&answered[..32], &answered[64..head]));
    }
}

#[test]
fn clusters_that_are_missing_or_of_another_shape_are_not_folded() {
    let mut routed = Routed::new(Mode::Sealed, Metric::Cosine, 3);
    let query = routed.fold(&routed.clusters[..1], 200).unwrap();
    let mut less = routed.server.clone();
    assert!(less.remove(routed.clusters[2]));
    let answer = less.evaluate(query.to_bytes()).unwrap().bytes;
    let all = Retrieval::TopK(9);
    assert!(routed.owner.open(&query, &answer, &routed.directory, all).is_err());
    // The one beside among them: the server refuses it as well.
    routed.clusters.push(routed.beside);
    let first = [routed.clusters[0]];
    let fold = Some(Fold { clusters: &routed.clusters, chosen: &first });
    let options = QueryOptions { segments: Some(&[]), fold, ..QueryOptions::default() };
    assert!(routed.owner.query(&random(1, 1), &routed.directory, options).is_err());
}

#[test]
fn a_cluster_that_was_changed_fails_where_it_was_chosen() {
    let routed = Routed::new(Mode::Sealed, Metric::Cosine, 4);
    let query = routed.fold(&[routed.clusters[1], routed.clusters[3]], 200).unwrap();
    let mut answer = routed.server.evaluate(query.to_bytes()).unwrap().bytes;
    // A word of the answer about the second one, which lies before that of the segment beside.
    let (version, header, payload) =
        wire::open_version(Kind::Response, QUERY_VERSION, &answer).unwrap();
    assert_eq!(version, QUERY_VERSION);
    let start = answer.len() - payload.len();
    let beside = answer.windows(16).position(|part| part == routed.beside.0).unwrap();
    answer[beside - 100..beside - 90].iter_mut().for_each(|byte| *byte ^= 0x55);
    let answer = framed(header, &answer[start..]);
    let all = Retrieval::TopK(9);
    let error = routed.owner.open(&query, &answer, &routed.directory, all).err();
    let Some(Error::Tampered { segments }) = error else { panic!("{error:?}") };
    assert_eq!(segments, [routed.clusters[3]]);
    assert_eq!(query.folded(), [routed.clusters[1], routed.clusters[3]]);
}

#[test]
fn folds_that_there_are_not_are_refused() {
    let routed = Routed::new(Mode::Sealed, Metric::Cosine, 3);
    let [a, b, _] = routed.clusters[..] else { panic!("three were made") };
    assert!(routed.fold(&[a, b], 1).is_ok());
    for wrong in [&[][..], &[a, a], &[routed.beside], &[SegmentId([7; 16])]] {
        assert!(routed.fold(wrong, 1).is_err(), "{wrong:?}");
    }
    let fold = Some(Fold { clusters: &routed.clusters, chosen: &[a] });
    let segments = Some(&[][..]);
    let ask = |rows, tags| {
        let options = QueryOptions { segments, fold, tags, ..QueryOptions::default() };
        routed.owner.query(&random(rows, 1), &routed.directory, options)
    };
    assert!(ask(1, &[]).is_ok() && ask(2, &[]).is_err() && ask(1, &[[1; 16]]).is_err());
    let other = Routed::new(Mode::SealedIndex, Metric::Cosine, 2);
    assert!(other.fold(&other.clusters[..1], 1).is_err());

    // What a stranger may send: numbers that are none, two queries, more clusters than segments are named.
    let query = routed.fold(&[a, b], 1).unwrap();
    let (_, header, payload) =
        wire::open_version(Kind::RoutedQuery, QUERY_VERSION, query.to_bytes()).unwrap();
    let numbers = payload.len() - 32 - 25_600 * (1 + 1) - (32 + 2 * 25_600) - 32 - 8;
    let mut changes = vec![(8, 2u32), (numbers, 0), (numbers, 5), (numbers, u32::MAX)];
    changes.extend([(numbers + 4, 0), (numbers + 4, 4), (numbers + 4, u32::MAX)]);
    for (at, number) in changes {
        let mut payload = payload.to_vec();
        payload[at..at + 4].copy_from_slice(&number.to_le_bytes());
        assert!(routed.server.evaluate(&framed(header, &payload)).is_err(), "{number} at {at}");
    }
    assert!(routed.server.evaluate(&framed(header, payload)).is_ok());
    assert!(routed.server.evaluate(&framed(header, &payload[..payload.len() - 1])).is_err());
    // All four as clusters: those of another shape.
    let mut payload = payload.to_vec();
    payload[numbers..numbers + 4].copy_from_slice(&4u32.to_le_bytes());
    assert!(routed.server.evaluate(&framed(header, &payload)).is_err());
    let order: Vec<SegmentId> = routed.directory.segments().map(|(id, ..)| id).collect();
    let answer = routed.server.evaluate(query.to_bytes()).unwrap().bytes;
    let merged = merge_responses(routed.owner.spec(), query.to_bytes(), &order, &[&answer]);
    assert!(merged.is_err(), "shares of clusters can't be folded");
}
